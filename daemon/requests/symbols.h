/* PUT /api/v1/builds/{id}/symbols: an executable, by a token with the right admin. It names functions of the token's
 * tenant, or for all users if the token is for all. On the loop's thread. */
#ifndef PROFD_REQUESTS_SYMBOLS_H
#define PROFD_REQUESTS_SYMBOLS_H

#include "net/http.h"

struct object_service;
struct tokens;

struct symbols {
    struct object_service *objects;
    const struct tokens *tokens;
};

/* http_judge_body; the context is a struct symbols. */
int symbols_judge(void *context, const struct http_body_head *head, struct profd_error *e);
/* Answers a PUT that was judged so, later. Takes over the body. */
void symbols_receive(const struct symbols *s, struct http_exchange *x, const struct http_request *request);

#endif
