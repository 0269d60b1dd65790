/* PUT /api/v1/builds/{id}/symbols: an executable, by a token with the right admin, which names functions of the token's
 * tenant, or for all users if the token is for all; or the parsed object of a build of which a host has sent counts, by
 * its token with the right write. On the loop's thread. */
#ifndef PROFD_REQUESTS_SYMBOLS_H
#define PROFD_REQUESTS_SYMBOLS_H

#include "net/http.h"

struct intake;
struct object_service;
struct tokens;
struct writer;

struct symbols {
    struct object_service *objects;
    const struct tokens *tokens;
    struct intake *intake;
    struct writer *writer;
};

/* http_judge_body, of a PUT. */
int symbols_judge(const struct symbols *s, const struct http_body_head *head, struct profd_error *e);
/* Answers a PUT that was judged so, later. Takes over the body. */
void symbols_receive(const struct symbols *s, struct http_exchange *x, const struct http_request *request);

#endif
