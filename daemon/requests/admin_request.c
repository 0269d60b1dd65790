#include "requests/admin_request.h"

#include <stdlib.h>
#include <string.h>

#include "proto/attach.h"
#include "proto/noun.h"

#define INSTANCE_PREFIX 4u
#define PID_DIGITS 7u /* numbers of processes are below 4194304; what is longer begins an instance */
#define RATE "rate="
#define TOKEN_SECONDS_MAX 3155760000u /* 100 years */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-"

static enum profd_status request_parse_build(const char *text, struct request *out, struct profd_error *e)
{
    const size_t size = strlen(text);

    if (!size || size >= sizeof out->build) {
        return profd_error_set(e, PROFD_USAGE, "a build-id of %zu bytes; it must have 1 to %zu", size,
                               sizeof out->build - 1);
    }
    memcpy(out->build, text, size + 1);
    return PROFD_OK;
}

/* 1 to STORE_NAME_MOST characters of those allowed; what is the subject of the sentence. */
static enum profd_status request_parse_name(const char *what, const char *text, const char *allowed,
                                            char out[STORE_NAME_MOST + 1], struct profd_error *e)
{
    const size_t n = strlen(text);

    if (!n || n > STORE_NAME_MOST || strspn(text, allowed) < n) {
        return profd_error_set(e, PROFD_USAGE,
                               "%s \"%.100s\" must have 1 to %u letters, digits and characters of \"%s\"", what, text,
                               STORE_NAME_MOST, strstr(allowed, "._@-"));
    }
    memcpy(out, text, n + 1);
    return PROFD_OK;
}

static enum profd_status request_parse_tenant(const char *text, char out[STORE_NAME_MOST + 1], struct profd_error *e)
{
    return strcmp(text, "all") ? request_parse_name("the name of a tenant,", text, NAME_CHARACTERS, out, e)
                               : profd_error_set(e, PROFD_USAGE, "\"all\" is every tenant, and the name of none");
}

/* Words of "read", "write" and "admin" with commas. The right admin includes read. */
static enum profd_status request_parse_rights(const char *text, unsigned *out, struct profd_error *e)
{
    static const struct {
        const char *name;
        unsigned rights;
    } words[] = {{"read", STORE_MAY_READ}, {"write", STORE_MAY_WRITE}, {"admin", STORE_MAY_ADMIN | STORE_MAY_READ}};

    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        size_t i = 0;

        while (i < sizeof words / sizeof *words && (strlen(words[i].name) != n || memcmp(words[i].name, at, n) != 0)) {
            i++;
        }
        if (i == sizeof words / sizeof *words) {
            return profd_error_set(e, PROFD_USAGE, "\"%.100s\" is not a list of the rights read, write and admin",
                                   text);
        }
        *out |= words[i].rights;
        at += n;
        if (!*at) {
            return PROFD_OK;
        }
    }
}

/* Name, rights, tenant or "all", end ("" for ever, "+SECONDS", or a time), "token" or "proxy", pattern of hosts or "".
 */
static enum profd_status request_parse_token(const char *const *arguments, struct request *out, struct profd_error *e)
{
    const char *const end = arguments[3], *const kind = arguments[4], *const hosts = arguments[5];
    struct store_token *t = &out->token;
    TRY(request_parse_name("the name of a token,", arguments[0], NAME_CHARACTERS, t->name, e));
    TRY(request_parse_rights(arguments[1], &t->rights, e));

    t->all = !strcmp(arguments[2], "all");
    t->has_hash = strcmp(kind, "proxy") != 0;
    if (t->all) {
        memcpy(t->tenant, "all", sizeof "all");
    } else {
        TRY(request_parse_tenant(arguments[2], t->tenant, e));
    }
    if (t->all && (t->rights & STORE_MAY_WRITE)) {
        return profd_error_set(e, PROFD_USAGE,
                               "a token with the right write belongs to one tenant, which owns what it sends, and not "
                               "to all");
    }
    if (*hosts) {
        TRY(request_parse_name("the pattern of the names of hosts,", hosts, NAME_CHARACTERS "*?", t->hosts, e));
    }
    if (*hosts && !(t->rights & STORE_MAY_WRITE)) {
        return profd_error_set(e, PROFD_USAGE, "only a token with the right write has a pattern of the names of hosts");
    }
    if (t->has_hash && strcmp(kind, "token") != 0) {
        return profd_error_set(e, PROFD_USAGE, "a token is shown (token) or named by a proxy (proxy), not \"%.100s\"",
                               kind);
    }
    if (*end == '+') {
        const size_t n = strspn(end + 1, "0123456789");
        const unsigned long long seconds = n && n < 12 && !end[n + 1] ? strtoull(end + 1, NULL, 10) : 0;

        if (!seconds || seconds > TOKEN_SECONDS_MAX) {
            return profd_error_set(e, PROFD_USAGE, "token-add: \"%.100s\" is not 1 to %u seconds", end + 1,
                                   TOKEN_SECONDS_MAX);
        }
        out->lasts = (int64_t)seconds * 1000000000;
        return PROFD_OK;
    }
    if (strlen(end) >= sizeof out->until) {
        return profd_error_set(e, PROFD_USAGE, "token-add: \"%.100s\" is not a time", end);
    }
    memcpy(out->until, end, strlen(end) + 1);
    return PROFD_OK;
}

static enum profd_status request_parse_rate(const char *verb, const char *text, struct request *out,
                                            struct profd_error *e)
{
    const char *digits = text + strlen(RATE);
    const size_t n = strspn(digits, "0123456789");
    const unsigned long rate = n && n < 9 && !digits[n] ? strtoul(digits, NULL, 10) : ATTACH_RATE_MAX + 1ul;

    if (rate > ATTACH_RATE_MAX) {
        return profd_error_set(e, PROFD_USAGE, "%s: \"%.100s\" is not a rate from 0 to %u ticks per second", verb, text,
                               ATTACH_RATE_MAX);
    }
    out->processes.has_rate = true;
    out->processes.rate = (uint32_t)rate;
    return PROFD_OK;
}

/* A number is a process, K=V a label, and hexadecimal digits are the beginning of an instance. */
static enum profd_status request_parse_selector(const char *verb, const char *text, struct live_selector *out,
                                                struct profd_error *e)
{
    const size_t n = strlen(text), digits = strspn(text, "0123456789"), hex = strspn(text, "0123456789abcdef");
    const char *equals = strchr(text, '=');
    struct live_selector s = {.text = text};

    if (equals && equals > text) {
        s.kind = LIVE_LABEL;
        s.name_size = (size_t)(equals - text);
        s.value = equals + 1;
    } else if (n && digits == n && n <= PID_DIGITS && strtoull(text, NULL, 10) <= INT32_MAX) {
        s.kind = LIVE_PID;
        s.pid = (uint32_t)strtoul(text, NULL, 10);
    } else if (hex == n && n >= INSTANCE_PREFIX && n <= 2 * ATTACH_INSTANCE_SIZE) {
        s.kind = LIVE_INSTANCE;
    } else {
        return profd_error_set(
            e, PROFD_USAGE,
            "%s: \"%.100s\" is neither a process id, nor a label K=V, nor %u to %d hexadecimal digits of an instance",
            verb, text, INSTANCE_PREFIX, 2 * ATTACH_INSTANCE_SIZE);
    }
    *out = s;
    return PROFD_OK;
}

static enum profd_status request_parse_switch(const char *verb, const char *const *arguments, size_t n,
                                              struct request *out, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;

    if (n > LIMIT_ADMIN_ARGUMENTS) {
        return profd_error_set(e, PROFD_USAGE, "%s takes at most %u arguments, not %zu", verb, LIMIT_ADMIN_ARGUMENTS,
                               n);
    }
    for (size_t i = 0; i < n && !status; i++) {
        if (!strncmp(arguments[i], RATE, strlen(RATE))) {
            status = request_parse_rate(verb, arguments[i], out, e);
        } else {
            status = request_parse_selector(verb, arguments[i],
                                            &out->processes.selectors[out->processes.selector_count++], e);
        }
    }
    if (!status && !out->processes.selector_count) {
        status =
            profd_error_set(e, PROFD_USAGE, "%s: no process given; name a process id, labels K=V or an instance", verb);
    }
    return status;
}

static const struct {
    const char *name;
    enum request_verb verb;
    size_t arguments;
} verbs[] = {{"delete", REQUEST_DELETE, 1},
             {"verify", REQUEST_VERIFY, 0},
             {"backup", REQUEST_BACKUP, 0},
             {"pause", REQUEST_PAUSE, 0},
             {"resume", REQUEST_RESUME, 0},
             {"reload", REQUEST_RELOAD, 0},
             {"confirm-clock", REQUEST_CONFIRM_CLOCK, 0},
             {"token-add", REQUEST_TOKEN_ADD, 6},
             {"token-list", REQUEST_TOKEN_LIST, 0},
             {"token-remove", REQUEST_TOKEN_REMOVE, 1},
             {"relay-move", REQUEST_RELAY_MOVE, 0},
             {"tier-init", REQUEST_TIER_INIT, 0}};

const char *request_verb_name(enum request_verb verb)
{
    size_t i = 0;

    while (verbs[i].verb != verb) {
        i++;
    }
    return verbs[i].name;
}

enum profd_status request_parse(const char *verb, const char *const *arguments, size_t n, struct request *out,
                                struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    struct request r = {.verb = REQUEST_DELETE};
    size_t i = 0;

    while (i < sizeof verbs / sizeof *verbs && strcmp(verbs[i].name, verb) != 0) {
        i++;
    }
    if (i == sizeof verbs / sizeof *verbs) {
        return profd_error_set(e, PROFD_METHOD,
                               "unknown command \"%.100s\"; known are delete, verify, backup, pause, resume, reload, "
                               "confirm-clock, token-add, token-list, token-remove, relay-move and tier-init",
                               verb);
    }
    r.verb = verbs[i].verb;
    if (r.verb == REQUEST_PAUSE || r.verb == REQUEST_RESUME) {
        r.processes.pause = r.verb == REQUEST_PAUSE;
        status = request_parse_switch(verb, arguments, n, &r, e);
    } else if (n != verbs[i].arguments) {
        status = profd_error_set(e, PROFD_USAGE, "%s takes %zu %s, not %zu", verb, verbs[i].arguments,
                                 noun_for(verbs[i].arguments, "argument", "arguments"), n);
    } else if (r.verb == REQUEST_TOKEN_ADD) {
        status = request_parse_token(arguments, &r, e);
    } else if (r.verb == REQUEST_TOKEN_REMOVE) {
        status = request_parse_name("the name of a token,", arguments[0], NAME_CHARACTERS, r.token.name, e);
    } else if (n) {
        status = request_parse_build(arguments[0], &r, e);
    }
    if (!status) {
        *out = r;
    }
    return status;
}
