#include "client/collect/option.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "client/collect/raw.h"
#include "proto/attach_memory.h"
#include "proto/label.h"
#include "proto/runtime.h"

#define RATE_DEFAULT 99u
#define RATE_MAX 10000u
#define MEMORY_DEFAULT 64u
#define LABEL_PREFIX "PROFD_LABEL_"
#define HOST_LABEL "host="

extern char **environ;
extern void *__libc_stack_end __attribute__((weak)); /* of the loader: address at which the kernel wrote argc */

struct option_values option;

/* libc has not set environ while objects are relocated, and a resolver may be instrumented. */
static char **variables(void)
{
    if (environ || !&__libc_stack_end || !__libc_stack_end) {
        return environ;
    }
    long *count = __libc_stack_end;
    return (char **)(count + 1) + *count + 1;
}

static const char *value_of(const char *name)
{
    for (char **at = variables(); at && *at; at++) {
        const char *rest = raw_after(*at, name);
        if (rest && *rest == '=') {
            return rest + 1;
        }
    }
    return NULL;
}

/* Reads a number up to most; otherwise returns the default. */
static uint32_t number_of(const char *name, uint32_t normal, uint32_t most)
{
    const char *text = value_of(name);
    uint64_t n = 0;
    if (!text || !*text) {
        return normal;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9') {
            return normal;
        }
        n = n * 10 + (uint64_t)(*text - '0');
        if (n > most) {
            return most;
        }
    }
    return (uint32_t)n;
}

static void socket_write(struct sockaddr_un *to, const char *folder, const char *name)
{
    size_t a = raw_length(folder), b = raw_length(name);
    if (a + b == 0 || a + b >= sizeof to->sun_path) {
        return;
    }
    raw_zero(to, sizeof *to);
    raw_copy(to->sun_path, folder, a);
    raw_copy(to->sun_path + a, name, b + 1);
    to->sun_family = AF_UNIX;
}

static void sockets_read(void)
{
    const char *named = value_of("PROFD_SOCKET"), *runtime = value_of("XDG_RUNTIME_DIR");
    const uint32_t uid = (uint32_t)raw_call(SYS_geteuid, 0, 0, 0, 0);
    char own[RUNTIME_SIZE];
    if (named && *named) {
        const char *path = raw_after(named, "unix:");
        socket_write(&option.sockets[0], "", path ? path : named);
        return;
    }
    socket_write(&option.sockets[0], RUNTIME_SYSTEM_SOCKET, "");
    if (runtime && *runtime == '/') {
        socket_write(&option.sockets[1], runtime, RUNTIME_SOCKET);
    }
    runtime_directory(RUNTIME_USER, uid, own);
    socket_write(&option.sockets[2], own, RUNTIME_SOCKET);
    runtime_directory(RUNTIME_SHARED, uid, own);
    socket_write(&option.sockets[OPTION_SOCKET_SHARED], own, RUNTIME_SHARED_SOCKET);
}

void option_read(void)
{
    const char *clock = value_of("PROFD_CLOCK");
    uint32_t mib = number_of("PROFD_COLLECT_MEMORY", MEMORY_DEFAULT, ATTACH_SIZE_MAX >> 20), power = 1;
    while (power * 2 <= mib) {
        power *= 2;
    }
    option.memory = (uint64_t)power << 20;
    option.timers = !clock || !raw_after(clock, "off");
    option.rate = option.timers ? number_of("PROFD_RATE", RATE_DEFAULT, RATE_MAX) : 0;
    option.leave_out = value_of("PROFD_LEAVE_OUT");
    option.rewrite = number_of("PROFD_REWRITE", 0, 1) == 1 || (option.leave_out && *option.leave_out);
    option.daemon_uid = number_of("PROFD_DAEMON_UID", UINT32_MAX, UINT32_MAX);
    option.mode = option.rate == 0 ? ATTACH_MODE_OFF : ATTACH_MODE_CPU;
    sockets_read();
    /* The socket of profctl run, and the root directory below which the collector is. */
    const char *name = value_of("PROFD_RUN");
    struct stat st;
    raw_zero(&st, sizeof st);
    if (name && *name && raw_call(SYS_newfstatat, AT_FDCWD, "/", &st, 0) == 0) {
        socket_write(&option.run, "@", name);
        option.run.sun_path[0] = '\0';
        option.root_device = st.st_dev;
        option.root_inode = st.st_ino;
    }
}

/* Reads a label of the environment: sizes of its name and value; false if it breaks the rules or was given before. */
static bool label_take(char **at, const char *text, size_t *name, size_t *value)
{
    *name = 0;
    while (text[*name] && text[*name] != '=') {
        ++*name;
    }
    if (text[*name] != '=') {
        return false;
    }
    *value = raw_length(text + *name + 1);
    for (char **before = variables(); before < at; before++) {
        const char *other = raw_after(*before, LABEL_PREFIX);
        size_t same = 0;
        while (other && same <= *name && other[same] == text[same]) {
            same++;
        }
        if (other && same > *name) {
            return false;
        }
    }
    return label_judge(text, *name, text + *name + 1, *value) == LABEL_GOOD;
}

/* Labels that were taken. */
struct taken {
    char *to; /* NULL: measured only */
    uint32_t size, used, count;
    size_t bytes;
    bool host; /* one of them is the label host */
};

/* Adds a valid label of name bytes, '=' and value bytes. False if there is no capacity. */
static bool taken_add(struct taken *t, const char *text, size_t name, size_t value)
{
    if (t->count == LIMIT_LABELS || t->bytes + name + value > LIMIT_LABEL_BYTES ||
        name + value + 2 > t->size - t->used) {
        return false;
    }
    if (t->to) {
        raw_copy(t->to + t->used, text, name + value + 2);
    }
    t->used += (uint32_t)(name + value + 2);
    t->bytes += name + value;
    t->count++;
    t->host = t->host || raw_after(text, HOST_LABEL) != NULL;
    return true;
}

uint32_t option_labels(char *to, uint32_t size, uint32_t *left_out)
{
    static const char host[] = HOST_LABEL;
    struct taken taken = {to, size, 0, 0, 0, false};
    struct utsname machine;
    char own[sizeof host + sizeof machine.nodename];
    size_t name, value;
    *left_out = 0;
    for (char **at = variables(); at && *at; at++) {
        const char *text = raw_after(*at, LABEL_PREFIX);
        if (text && (!label_take(at, text, &name, &value) || !taken_add(&taken, text, name, value))) {
            ++*left_out;
        }
    }
    /* The label host, as `profctl upload` adds it. */
    if (!taken.host && raw_call(SYS_uname, &machine, 0, 0, 0) == 0) {
        size_t n = raw_length(machine.nodename);
        raw_copy(own, host, sizeof host - 1);
        raw_copy(own + sizeof host - 1, machine.nodename, n + 1);
        if (n > 0 && label_judge(own, sizeof host - 2, machine.nodename, n) == LABEL_GOOD) {
            taken_add(&taken, own, sizeof host - 2, n);
        }
    }
    return taken.used;
}
