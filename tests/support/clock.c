// The wall clock that a test gives a server: preloaded (LD_PRELOAD), it answers from a file that the
// test writes. Clocks that measure durations pass through, so that timeouts and timers work as ever.
//
// Servers ask for the time before main and from within malloc. So this calls the kernel directly,
// allocates nothing and takes no lock.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// From `since` on the clock is at `shown`, and goes on at `rate`. All in microseconds since 1970.
struct motion {
    int64_t shown, since;
    double rate;
};

// The test fills the next motion, then names it as the current one by a single byte.
struct page {
    _Atomic uint8_t current;
    struct motion motions[256];
};

static const struct page *page;

__attribute__((constructor)) static void map_page(void) {
    int file = open(getenv("SLIDE_CLOCK") ?: "", O_RDONLY | O_CLOEXEC);
    page = mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        perror("SLIDE_CLOCK");
        _exit(1);
    }
    close(file);
}

static int64_t micros(void) {
    struct timespec real;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
    int64_t now = real.tv_sec * 1000000LL + real.tv_nsec / 1000;
    if (page == NULL)
        return now;
    struct motion motion = page->motions[page->current];
    return motion.shown + (int64_t)((double)(now - motion.since) * motion.rate);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, time);
    int64_t now = micros();
    *time = (struct timespec){now / 1000000, now % 1000000 * 1000};
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    int64_t now = micros();
    *time = (struct timeval){now / 1000000, now % 1000000};
    return 0;
}

time_t time(time_t *seconds) {
    time_t now = micros() / 1000000;
    if (seconds != NULL)
        *seconds = now;
    return now;
}

// Valkey 9 reckons the time from the processor's counter if it finds the counter's speed here.
static FILE *open_unless_cpuinfo(const char *real, const char *path, const char *mode) {
    if (strcmp(path, "/proc/cpuinfo") == 0)
        return NULL;
    FILE *(*open_file)(const char *, const char *) = dlsym(RTLD_NEXT, real);
    return open_file(path, mode);
}

FILE *fopen(const char *restrict path, const char *restrict mode) {
    return open_unless_cpuinfo("fopen", path, mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode) {
    return open_unless_cpuinfo("fopen64", path, mode);
}
