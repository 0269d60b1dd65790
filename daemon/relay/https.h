/* Requests to the centre: one connection that is kept, over TLS. */
#ifndef PROFD_RELAY_HTTPS_H
#define PROFD_RELAY_HTTPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "proto/status.h"

#define HTTPS_TOKEN_SIZE 514
#define HTTPS_ANSWER_MAX (2u << 20) /* bytes of an answer */

struct https; /* a connection, and what is kept for the next one */

struct https_request {
    const char *method, *path; /* POST or PUT; below the prefix of the configuration */
    const char *type;          /* of the body */
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

/* Sends a request with the token that is in the file now, and takes the answer, whatever its status, which
 * https_answer_done frees. Redirections are not followed. CONFIG: the token file. UNTRUSTED: certificate of the centre.
 * UNAVAILABLE, TIMEOUT or NO_MEMORY: there is no whole answer; whether the request has arrived is not known. Blocks for
 * a minute, and longer for a large body on a slow line. */
enum profd_status https_send(struct https *h, const struct config *c, const struct https_request *request,
                             struct https_answer *out, struct profd_error *e);
void https_answer_done(struct https_answer *a);

/* Reads the first line of the file, 20 to 512 printable characters. It must be a regular file of root or of the own
 * user that no other user may access, or one in $CREDENTIALS_DIRECTORY, which systemd protects. CONFIG. */
enum profd_status https_read_token(const char *path, char out[HTTPS_TOKEN_SIZE], struct profd_error *e);

#endif
