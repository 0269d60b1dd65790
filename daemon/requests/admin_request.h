/* Parses administrative commands (ADMIN frames) before anything is executed. Pure. */
#ifndef PROFD_REQUESTS_ADMIN_REQUEST_H
#define PROFD_REQUESTS_ADMIN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/live.h"
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

struct request {
    enum request_verb verb;
    char build[160];                 /* DELETE: a build-id or a prefix of one, not yet looked for. Else "" */
    struct live_selection processes; /* PAUSE and RESUME */
    struct store_token token;        /* TOKEN_ADD: without times, numbers and hash; TOKEN_REMOVE: its name */
    int64_t lasts;                   /* TOKEN_ADD: ns; 0: it has no end, or until says when it ends */
    char until[40];                  /* TOKEN_ADD: a time as query/params.h has it, not yet read; "" */
};

/* METHOD names a verb that there is not; USAGE: a wrong number of arguments, or one that cannot be what the verb takes.
 * Texts are borrowed from arguments. */
enum profd_status request_parse(const char *verb, const char *const *arguments, size_t n, struct request *out,
                                struct profd_error *e);

#endif
