/* The list of all outcomes of an operation: each with its code on the wire, its HTTP status and its exit status. */
#ifndef PROFD_PROTO_STATUS_H
#define PROFD_PROTO_STATUS_H

#include <stdbool.h>

#pragma GCC visibility push(default) /* part of libprofd's interface */

/* X(name, wire code, retry the same request?, HTTP status, exit status, text). Wire codes are never reused. Exit
 * statuses are those of sysexits(3), and 1 for a query that selects nothing. */
#define PROFD_STATUS_LIST(X)                                                                                           \
    X(OK, 0, false, 200, 0, "ok")                                                                                      \
    X(MALFORMED, 1, false, 400, 65, "malformed data")                                                                  \
    X(TOO_LARGE, 2, false, 413, 65, "too large")                                                                       \
    X(PROTOCOL, 3, false, 400, 76, "protocol error")                                                                   \
    X(UNKNOWN_VERSION, 4, false, 400, 76, "unknown protocol version")                                                  \
    X(UNKNOWN_TYPE, 5, false, 400, 76, "unknown message type")                                                         \
    X(REFUSED, 6, false, 422, 65, "refused by a rule")                                                                 \
    X(WRONG_BUILD, 7, false, 422, 65, "not the executable that was profiled")                                          \
    X(NOT_FOUND, 8, false, 404, 66, "not found")                                                                       \
    X(AMBIGUOUS, 9, false, 409, 65, "ambiguous")                                                                       \
    X(BAD_QUERY, 10, false, 400, 64, "bad query")                                                                      \
    X(CONFLICT, 11, false, 409, 65, "conflict")                                                                        \
    X(FORBIDDEN, 12, false, 403, 77, "permission denied")                                                              \
    X(UNAUTHORIZED, 13, false, 401, 77, "not authenticated")                                                           \
    X(METHOD, 14, false, 405, 64, "method not allowed")                                                                \
    X(BUSY, 15, true, 503, 75, "busy")                                                                                 \
    X(FULL, 16, true, 507, 75, "no space")                                                                             \
    X(IO, 17, true, 500, 74, "input/output error")                                                                     \
    X(DAMAGED, 18, false, 500, 74, "damaged data")                                                                     \
    X(NEWER, 19, false, 500, 78, "from a newer version")                                                               \
    X(NO_MEMORY, 20, true, 503, 71, "out of memory")                                                                   \
    X(LIMIT, 21, false, 422, 65, "limit exceeded")                                                                     \
    X(TIMEOUT, 22, true, 504, 75, "timed out")                                                                         \
    X(UNAVAILABLE, 23, true, 503, 69, "no daemon")                                                                     \
    X(CONFIG, 24, false, 500, 78, "bad configuration")                                                                 \
    X(USAGE, 25, false, 400, 64, "bad usage")                                                                          \
    X(NO_INPUT, 26, false, 404, 66, "cannot open input")                                                               \
    X(CANT_CREATE, 27, false, 500, 73, "cannot create output")                                                         \
    X(UNTRUSTED, 28, false, 403, 77, "daemon not accepted")                                                            \
    X(INTERNAL, 29, false, 500, 70, "internal error")                                                                  \
    X(STOPPING, 30, true, 503, 75, "stopping")                                                                         \
    X(NOTHING, 31, false, 404, 1, "nothing matches")

enum profd_status {
#define X(name, code, retry, http, exit, text) PROFD_##name = code,
    PROFD_STATUS_LIST(X)
#undef X
};

/* A sentence for a person, which names the rule and the value. It always ends with a NUL, and is cut between characters
 * if it is too long. Nothing is allocated to report an error. */
struct profd_error {
    char sentence[512];
};

/* Formats the sentence and returns status, so that a failing function can `return profd_error_set(…)`. e may be NULL.
 * Control characters in the result are replaced by '?', because values come from untrusted peers and sentences go to
 * terminals and logs. */
enum profd_status profd_error_set(struct profd_error *e, enum profd_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends context to the sentence: "context: sentence". Returns status. */
enum profd_status profd_error_wrap(struct profd_error *e, enum profd_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the sentence for an allocation that failed. Returns PROFD_NO_MEMORY. */
enum profd_status profd_no_memory(struct profd_error *e);

/* Returns the status of the expression from the function, unless it is OK. */
#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        enum profd_status try_status = (expression);                                                                   \
        if (try_status) {                                                                                              \
            return try_status;                                                                                         \
        }                                                                                                              \
    } while (0)

/* Returns this status from the function, with its sentence as profd_error_set formats it, if the condition holds. */
#define FAIL_IF(condition, e, ...)                                                                                     \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            return profd_error_set(e, __VA_ARGS__);                                                                    \
        }                                                                                                              \
    } while (0)

/* Columns of the list. An unknown code is described as INTERNAL (text "unknown status"). */
const char *profd_status_name(enum profd_status status); /* "MALFORMED" */
const char *profd_status_text(enum profd_status status); /* "malformed data" */
bool profd_status_retry(enum profd_status status);
int profd_status_http(enum profd_status status);
int profd_status_exit(enum profd_status status);
/* Returns whether the code is in the list. For codes that come from a peer. */
bool profd_status_known(unsigned code);

#pragma GCC visibility pop

#endif
