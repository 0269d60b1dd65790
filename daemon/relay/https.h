/* Sends requests to the centre over one TLS connection, which is kept. */
#ifndef PROFD_RELAY_HTTPS_H
#define PROFD_RELAY_HTTPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "proto/status.h"

#define HTTPS_TOKEN_SIZE 514
#define HTTPS_ANSWER_MAX (2u << 20) /* bytes of an answer */

struct https; /* the connection and its settings */

struct https_request {
    const char *method, *path; /* POST or PUT; path below the configured prefix */
    const char *type;          /* of the body */
    const char *coding;        /* of the body; NULL: none */
    const uint8_t *body;
    size_t size;
};

struct https_answer {
    long status;   /* of HTTP */
    char type[64]; /* of the body, without parameters; "": none */
    char *body;    /* owned; ends with a NUL that is not counted */
    size_t size;
    bool has_retry; /* Retry-After: */
    uint64_t retry_ms;
};

/* Call once in a process, before other threads exist. NO_MEMORY. */
enum profd_status https_new(struct https **out, struct profd_error *e);
/* Accepts NULL. */
void https_free(struct https *h);

/* Reads the token file, sends a request with the token, and takes the answer, which may have any status.
 * https_answer_done frees the answer. A receiver of OTLP may need no token: then the file may be missing. Redirections
 * are not followed. CONFIG: the token file is wrong. UNTRUSTED: the
 * certificate of the centre is not accepted. UNAVAILABLE, TIMEOUT or NO_MEMORY: there is no whole answer, and the
 * request may or may not have arrived. Blocks for up to 90 seconds, and longer for a large body on a slow connection.
 */
enum profd_status https_send(struct https *h, const struct config *c, const struct https_request *request,
                             struct https_answer *out, struct profd_error *e);
void https_answer_done(struct https_answer *a);
/* Bytes of a URL without the slashes at its end: with and without them it is the same place. */
size_t https_measure_base(const char *url);

#endif
