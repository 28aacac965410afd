// A module that is told of keyspace events and does there what servers advise against: it opens,
// deletes and replaces keys, in the middle of the command that the events are of.
//
//   MEDDLE.ON event action key [key ...]   at the next such event, which may be *, do this to the keys:
//                                          drop (by their handles), delete (by DEL) or replace (by SET)
//   MEDDLE.SEEN                            the event that came, and how many keys there were just then;
//                                          nothing if none came
//
// It declares what it needs of the servers' API, as all of them have it.

#include <stdlib.h>
#include <string.h>

typedef struct Ctx Ctx;
typedef struct Key Key;
typedef struct String String;
typedef struct Reply Reply;
typedef int (*Command)(Ctx *, String **, int);
typedef int (*Callback)(Ctx *, int type, const char *event, String *key);

enum { OK = 0, ERR = 1 };
enum { READ = 1, WRITE = 2 };
enum { EMPTY = 0 };
// All classes but `new`, which the server tells of before a key holds anything, also in its own commands.
enum { EVENTS = ((1 << 14) - 1) & ~3 };
enum { MOST_KEYS = 64 };

static int (*get_api)(const char *, void *);
static void (*set_module_attribs)(Ctx *, const char *, int, int);
static int (*create_command)(Ctx *, const char *, Command, const char *, int, int, int);
static int (*subscribe)(Ctx *, int, Callback);
static Key *(*open_key)(Ctx *, String *, int);
static int (*key_type)(Key *);
static int (*delete_key)(Key *);
static void (*close_key)(Key *);
static String *(*create_string)(Ctx *, const char *, size_t);
static void (*free_string)(Ctx *, String *);
static const char *(*bytes_of)(const String *, size_t *);
static Reply *(*call)(Ctx *, const char *, const char *, ...);
static void (*free_reply)(Reply *);
static int (*reply_error)(Ctx *, const char *);
static int (*reply_simple)(Ctx *, const char *);
static int (*reply_array)(Ctx *, long);
static int (*reply_integer)(Ctx *, long long);

static char awaited[64], action[16], seen[64];
static String *keys[MOST_KEYS];
static int count, there;

static String *copy_of(String *text) {
    size_t length;
    const char *bytes = bytes_of(text, &length);
    return create_string(NULL, bytes, length);
}

static void copy_text(char *to, size_t room, String *from) {
    size_t length;
    const char *bytes = bytes_of(from, &length);
    length = length < room ? length : room - 1;
    memcpy(to, bytes, length);
    to[length] = 0;
}

static void meddle_with(Ctx *ctx, String *name) {
    Key *key = open_key(ctx, name, READ | WRITE);
    there += key_type(key) != EMPTY;
    if (strcmp(action, "drop") == 0)
        delete_key(key);
    close_key(key);
    Reply *reply = NULL;
    if (strcmp(action, "delete") == 0)
        reply = call(ctx, "DEL", "!s", name);
    else if (strcmp(action, "replace") == 0)
        reply = call(ctx, "SET", "!sc", name, "replaced");
    if (reply != NULL)
        free_reply(reply);
}

static int on_event(Ctx *ctx, int type, const char *event, String *key) {
    (void)type;
    (void)key;
    if (awaited[0] == 0 || (strcmp(awaited, "*") != 0 && strcmp(awaited, event) != 0))
        return OK;
    // What it does makes events of its own.
    awaited[0] = 0;
    strncpy(seen, event, sizeof seen - 1);
    there = 0;
    for (int place = 0; place < count; place++)
        meddle_with(ctx, keys[place]);
    return OK;
}

static int meddle_on(Ctx *ctx, String **words, int length) {
    if (length < 4 || length - 3 > MOST_KEYS)
        return reply_error(ctx, "ERR MEDDLE.ON event action key [key ...]");
    while (count > 0)
        free_string(NULL, keys[--count]);
    for (int place = 3; place < length; place++)
        keys[count++] = copy_of(words[place]);
    copy_text(action, sizeof action, words[2]);
    memset(seen, 0, sizeof seen);
    copy_text(awaited, sizeof awaited, words[1]);
    return reply_simple(ctx, "OK");
}

static int meddle_seen(Ctx *ctx, String **words, int length) {
    (void)words;
    (void)length;
    awaited[0] = 0;
    reply_array(ctx, 2);
    reply_simple(ctx, seen);
    return reply_integer(ctx, there);
}

int RedisModule_OnLoad(Ctx *ctx, String **words, int length) {
    (void)words;
    (void)length;
    get_api = ((void **)ctx)[0];
    const struct {
        const char *name;
        void *place;
    } needed[] = {
        {"RedisModule_SetModuleAttribs", &set_module_attribs},
        {"RedisModule_CreateCommand", &create_command},
        {"RedisModule_SubscribeToKeyspaceEvents", &subscribe},
        {"RedisModule_OpenKey", &open_key},
        {"RedisModule_KeyType", &key_type},
        {"RedisModule_DeleteKey", &delete_key},
        {"RedisModule_CloseKey", &close_key},
        {"RedisModule_CreateString", &create_string},
        {"RedisModule_FreeString", &free_string},
        {"RedisModule_StringPtrLen", &bytes_of},
        {"RedisModule_Call", &call},
        {"RedisModule_FreeCallReply", &free_reply},
        {"RedisModule_ReplyWithError", &reply_error},
        {"RedisModule_ReplyWithSimpleString", &reply_simple},
        {"RedisModule_ReplyWithArray", &reply_array},
        {"RedisModule_ReplyWithLongLong", &reply_integer},
    };
    for (size_t place = 0; place < sizeof needed / sizeof *needed; place++)
        if (get_api(needed[place].name, needed[place].place) != OK)
            return ERR;
    set_module_attribs(ctx, "meddler", 1, 1);
    if (create_command(ctx, "meddle.on", meddle_on, "write", 0, 0, 0) != OK ||
        create_command(ctx, "meddle.seen", meddle_seen, "readonly", 0, 0, 0) != OK ||
        subscribe(ctx, EVENTS, on_event) != OK)
        return ERR;
    return OK;
}
