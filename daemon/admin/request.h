/* Parses administrative commands (ADMIN frames) before anything is executed. Pure. */
#ifndef PROFD_ADMIN_REQUEST_H
#define PROFD_ADMIN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/status.h"
#include "store/store.h"

enum request_verb {
    REQUEST_DELETE,
    REQUEST_VERIFY,
    REQUEST_BACKUP,
    REQUEST_PAUSE,
    REQUEST_RESUME,
    REQUEST_RELOAD,
    REQUEST_CONFIRM_CLOCK,
    REQUEST_TOKEN_ADD,
    REQUEST_TOKEN_LIST,
    REQUEST_TOKEN_REMOVE,
    REQUEST_RELAY_MOVE,
    REQUEST_TIER_INIT
};

/* As it was asked for: "delete". Static. */
const char *request_verb_name(enum request_verb verb);

/* Which live processes. */
enum request_kind { REQUEST_PID, REQUEST_INSTANCE, REQUEST_LABEL };
struct request_selector {
    enum request_kind kind;
    const char *text; /* as it was given, borrowed */
    uint32_t pid;
    size_t name_size;  /* LABEL: bytes of the name that text begins with */
    const char *value; /* LABEL */
};

struct request {
    enum request_verb verb;
    char build[160]; /* DELETE: a build-id or a prefix of one, not yet looked for. Else "" */
    /* PAUSE and RESUME: one of the pids and instances, if any are given, with all of the labels. At least one selector.
     */
    size_t selector_count;
    struct request_selector selectors[LIMIT_ADMIN_ARGUMENTS];
    bool has_rate;
    uint32_t rate;            /* ticks per second from now on, 0: as the process was started */
    struct store_token token; /* TOKEN_ADD: without times, numbers and hash; TOKEN_REMOVE: its name */
    int64_t lasts;            /* TOKEN_ADD: ns; 0: it has no end, or until says when it ends */
    char until[40];           /* TOKEN_ADD: a time as query/when.h has it, not yet read; "" */
};

/* METHOD names a verb that there is not; USAGE: a wrong number of arguments, or one that cannot be what the verb takes.
 * Texts are borrowed from arguments. */
enum profd_status request_parse(const char *verb, const char *const *arguments, size_t n, struct request *out,
                                struct profd_error *e);

#endif
