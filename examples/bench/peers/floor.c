// The floor: commands that ask of the server what SLIDE.COUNTER and SLIDE.LOG ask of it, and decide
// nothing. What they cost is what no module that stores this can save.
//
//   FLOOR.COUNTER key limit window          reads the field of a hash and writes it, propagates HSET
//   FLOOR.COUNTERLIMITED key limit window   reads it
//   FLOOR.LOG key limit window              reads the last and the first member of a sorted set, adds one
//                                           and propagates ZADD; every sixteenth call adds one more, and
//                                           removes the fifteen before it and the oldest
//   FLOOR.LOGLIMITED key limit window       reads the last and the first member
//
// The arguments are read, as the module reads them, and mean nothing. The server's API is declared here
// as far as it is used.

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct RedisModuleCtx Ctx;
typedef struct RedisModuleString String;
typedef struct RedisModuleKey Key;
typedef struct RedisModuleServerInfoData Info;
typedef int Command(Ctx *, String **, int);

enum { OK, ERROR };
enum { READ_WRITE = 3, HASH_NONE = 0, HASH_COUNT_ALL = 1 << 4 };
enum { NOTIFY_HASH = 1 << 6, NOTIFY_ZSET = 1 << 7, NOTIFY_MODULE = 1 << 13 };
enum { NO_IMPLICIT_SIGNAL_MODIFIED = 1 << 1, HANDLE_REPL_ASYNC_LOAD = 1 << 2 };
enum { SKIP_COMMAND_VALIDATION = 1 << 4 }; // Valkey's

// X(result, name, arguments)
#define API(X)                                                                                          \
    X(void, SetModuleAttribs, (Ctx *, const char *, int, int))                                          \
    X(void, SetModuleOptions, (Ctx *, int))                                                             \
    X(int, CreateCommand, (Ctx *, const char *, Command *, const char *, int, int, int))                \
    X(Info *, GetServerInfo, (Ctx *, const char *))                                                     \
    X(const char *, ServerInfoGetFieldC, (Info *, const char *))                                        \
    X(void, FreeServerInfo, (Ctx *, Info *))                                                            \
    X(Key *, OpenKey, (Ctx *, String *, int))                                                           \
    X(void, CloseKey, (Key *))                                                                          \
    X(int, KeyType, (Key *))                                                                            \
    X(size_t, ValueLength, (Key *))                                                                     \
    X(long long, GetAbsExpire, (Key *))                                                                 \
    X(long long, Milliseconds, (void))                                                                  \
    X(float, GetUsedMemoryRatio, (void))                                                                \
    X(String *, CreateString, (Ctx *, const char *, size_t))                                            \
    X(void, FreeString, (Ctx *, String *))                                                              \
    X(const char *, StringPtrLen, (const String *, size_t *))                                           \
    X(int, HashGet, (Key *, int, ...))                                                                  \
    X(int, HashSet, (Key *, int, ...))                                                                  \
    X(int, ZsetFirstInScoreRange, (Key *, double, double, int, int))                                    \
    X(int, ZsetLastInScoreRange, (Key *, double, double, int, int))                                     \
    X(String *, ZsetRangeCurrentElement, (Key *, double *))                                             \
    X(int, ZsetRangePrev, (Key *))                                                                      \
    X(int, ZsetAdd, (Key *, double, String *, int *))                                                   \
    X(int, ZsetRem, (Key *, String *, int *))                                                           \
    X(int, Replicate, (Ctx *, const char *, const char *, ...))                                         \
    X(int, SignalModifiedKey, (Ctx *, String *))                                                        \
    X(int, NotifyKeyspaceEvent, (Ctx *, int, const char *, String *))                                   \
    X(int, ReplyWithArray, (Ctx *, long))                                                               \
    X(int, ReplyWithLongLong, (Ctx *, long long))

#define DECLARE(result, name, arguments) static result(*name) arguments;
API(DECLARE)
static long long (*CachedMicroseconds)(void); // not on 7.0

static String *field, *value;

static long long now(void) { return CachedMicroseconds ? CachedMicroseconds() / 1000 : Milliseconds(); }

static Key *open_key(Ctx *ctx, String **argv, int argc) {
    size_t length;
    for (int index = 2; index < argc; index++)
        StringPtrLen(argv[index], &length);
    Key *key = OpenKey(ctx, argv[1], READ_WRITE);
    KeyType(key);
    StringPtrLen(argv[1], &length);
    return key;
}

static int reply(Ctx *ctx, int limited) {
    ReplyWithArray(ctx, 5);
    ReplyWithLongLong(ctx, limited);
    ReplyWithLongLong(ctx, 1000000000);
    ReplyWithLongLong(ctx, 999999000);
    ReplyWithLongLong(ctx, limited ? 43210 : 0);
    return ReplyWithLongLong(ctx, 54321);
}

static int reply_limited(Ctx *ctx, String *name) {
    NotifyKeyspaceEvent(ctx, NOTIFY_MODULE, "floor.limited", name);
    return reply(ctx, 1);
}

static void read_field(Ctx *ctx, Key *key) {
    String *old = NULL;
    size_t length;
    HashGet(key, HASH_NONE, field, &old, NULL);
    if (old == NULL)
        return;
    StringPtrLen(old, &length);
    FreeString(ctx, old);
}

static int counter(Ctx *ctx, String **argv, int argc) {
    Key *key = open_key(ctx, argv, argc);
    now();
    read_field(ctx, key);
    GetUsedMemoryRatio();
    size_t length;
    const char *bytes = StringPtrLen(value, &length);
    String *new = CreateString(ctx, bytes, length);
    HashSet(key, HASH_COUNT_ALL, field, new, NULL);
    Replicate(ctx, "HSET", "sss", argv[1], field, new);
    FreeString(ctx, new);
    CloseKey(key);
    SignalModifiedKey(ctx, argv[1]);
    NotifyKeyspaceEvent(ctx, NOTIFY_HASH, "hset", argv[1]);
    return reply(ctx, 0);
}

static int counter_limited(Ctx *ctx, String **argv, int argc) {
    Key *key = open_key(ctx, argv, argc);
    now();
    read_field(ctx, key);
    CloseKey(key);
    return reply_limited(ctx, argv[1]);
}

static String *element(Key *key) {
    double score;
    size_t length;
    String *member = ZsetRangeCurrentElement(key, &score);
    if (member != NULL)
        StringPtrLen(member, &length);
    return member;
}

static String *last(Key *key) {
    return ZsetLastInScoreRange(key, -INFINITY, INFINITY, 0, 0) == OK ? element(key) : NULL;
}

// The module asks for the first that is live; the scores here are the oldest's or later.
static String *first(Key *key) {
    return ZsetFirstInScoreRange(key, 0, INFINITY, 1, 0) == OK ? element(key) : NULL;
}

static void free_member(Ctx *ctx, String *member) {
    if (member != NULL)
        FreeString(ctx, member);
}

static void read_ends(Ctx *ctx, Key *key) {
    free_member(ctx, last(key));
    free_member(ctx, first(key));
}

static void add(Ctx *ctx, Key *key, long long time, const char *text, int length, String **added) {
    *added = CreateString(ctx, text, length);
    ZsetAdd(key, time, *added, NULL);
}

static void remove_all(Ctx *ctx, Key *key, String *name, String **members, size_t count) {
    for (size_t index = 0; index < count; index++)
        ZsetRem(key, members[index], NULL);
    Replicate(ctx, "ZREM", "sv", name, members, count);
    for (size_t index = 0; index < count; index++)
        FreeString(ctx, members[index]);
}

// What packing does: one more member in the place of those that were added since the last time. The
// oldest one goes too, so that the set stays as long as it is.
static void pack(Ctx *ctx, Key *key, String *name, long long time, const char *score, int digits) {
    enum { SINGLES = 15 };
    static unsigned long long packed;
    String *gone[SINGLES + 1], *added;
    size_t count = 0;
    String *member = first(key);
    if (member != NULL)
        gone[count++] = member;
    for (member = last(key); member != NULL && count <= SINGLES; member = element(key)) {
        gone[count++] = member;
        if (!ZsetRangePrev(key))
            break;
    }
    char text[64];
    int length = snprintf(text, sizeof text, "%llu:1:", packed++ + 5000000000);
    memset(text + length, '1', sizeof text - length);
    add(ctx, key, time, text, sizeof text, &added);
    Replicate(ctx, "ZADD", "sbs", name, score, (size_t)digits, added);
    FreeString(ctx, added);
    remove_all(ctx, key, name, gone, count);
    NotifyKeyspaceEvent(ctx, NOTIFY_ZSET, "zrem", name);
}

static int log_call(Ctx *ctx, String **argv, int argc) {
    static unsigned long long total = 1000000;
    Key *key = open_key(ctx, argv, argc);
    long long time = now();
    read_ends(ctx, key);
    GetUsedMemoryRatio();
    char score[24], text[32];
    int digits = snprintf(score, sizeof score, "%lld", time);
    if ((ValueLength(key) + 1) % 16 == 0)
        pack(ctx, key, argv[1], time, score, digits);
    String *added;
    add(ctx, key, time, text, snprintf(text, sizeof text, "%llu:1", total++), &added);
    Replicate(ctx, "ZADD", "sbs", argv[1], score, (size_t)digits, added);
    FreeString(ctx, added);
    GetAbsExpire(key);
    CloseKey(key);
    SignalModifiedKey(ctx, argv[1]);
    NotifyKeyspaceEvent(ctx, NOTIFY_ZSET, "zadd", argv[1]);
    return reply(ctx, 0);
}

static int log_limited(Ctx *ctx, String **argv, int argc) {
    Key *key = open_key(ctx, argv, argc);
    now();
    read_ends(ctx, key);
    CloseKey(key);
    return reply_limited(ctx, argv[1]);
}

static int is_valkey(Ctx *ctx) {
    Info *info = GetServerInfo(ctx, "server");
    const char *name = ServerInfoGetFieldC(info, "server_name");
    int found = name != NULL && strcmp(name, "valkey") == 0;
    FreeServerInfo(ctx, info);
    return found;
}

int RedisModule_OnLoad(Ctx *ctx, String **argv, int argc) {
    (void)argv, (void)argc;
    // The way to all else is the first word of the context.
    int (*get)(const char *, void *) = *(int (**)(const char *, void *))ctx;
#define GET(result, name, arguments)                                                                    \
    if (get("RedisModule_" #name, &name) != OK)                                                         \
        return ERROR;
    API(GET)
    get("RedisModule_CachedMicroseconds", &CachedMicroseconds);
    SetModuleAttribs(ctx, "floor", 1, 1);
    SetModuleOptions(ctx, NO_IMPLICIT_SIGNAL_MODIFIED | HANDLE_REPL_ASYNC_LOAD |
                              (is_valkey(ctx) ? SKIP_COMMAND_VALIDATION : 0));
    static const char fixed[] = "29500000:1234:0";
    field = CreateString(NULL, "60000", 5);
    value = CreateString(NULL, fixed, sizeof fixed - 1);
    static const struct {
        const char *name;
        Command *run;
    } commands[] = {
        {"floor.counter", counter},
        {"floor.counterlimited", counter_limited},
        {"floor.log", log_call},
        {"floor.loglimited", log_limited},
    };
    for (size_t index = 0; index < sizeof commands / sizeof *commands; index++)
        if (CreateCommand(ctx, commands[index].name, commands[index].run, "write fast", 1, 1, 1) != OK)
            return ERROR;
    return OK;
}
