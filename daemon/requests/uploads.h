/* POST /api/v1/uploads at a centre. A host sends a batch of uploads (Batch of proto/profd.proto), which may be empty.
 * Its write token determines the tenant and the host. The answer follows the commit. On the loop's thread. */
#ifndef PROFD_REQUESTS_UPLOADS_H
#define PROFD_REQUESTS_UPLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/http.h"
#include "proto/status.h"
#include "store/store.h"

struct intake;
struct tokens;
struct writer;

#define UPLOADS_LOG_STATUSES 100u

/* The server fills it in. All parts outlive the writer's thread. */
struct uploads_service {
    uint8_t centre[STORE_CENTRE_SIZE]; /* name */
    bool relays;                       /* this daemon sends to a centre, and refuses batches of others */
    struct intake *intake;
    const struct tokens *tokens;
    struct writer *writer;
    uint64_t logged[UPLOADS_LOG_STATUSES]; /* ms of loop_now of the latest line, by HTTP status − 400 */
};

struct uploads_host {
    char name[256];
    uint8_t identity[STORE_HOST_SIZE];
};
/* Finds the host of a request with a write token. Its name is that of the token, or, with a token for several hosts,
 * the name that the request states ("" if it states none). FORBIDDEN if the token is not for this host. MALFORMED if
 * the name is not valid. */
enum profd_status uploads_find_host(const struct store_token *token, const char *stated, struct uploads_host *out,
                                    struct profd_error *e);

/* The http_judge_body of these requests. A request needs a token with the right write. */
int uploads_judge(struct uploads_service *s, const struct http_body_head *head, struct profd_error *e);
/* Takes a request that uploads_judge accepted, and answers it later. */
void uploads_receive(struct uploads_service *s, struct http_exchange *x, const struct http_request *request);

#endif
