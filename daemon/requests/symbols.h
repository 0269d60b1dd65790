/* PUT /api/v1/builds/{id}/symbols: an executable from a reader with the role admin. It names functions of the reader's
 * tenants, or for all users if the reader sees everything. On the loop's thread. */
#ifndef PROFD_REQUESTS_SYMBOLS_H
#define PROFD_REQUESTS_SYMBOLS_H

#include "net/http.h"

struct object_service;
struct readers;

struct symbols {
    struct object_service *objects;
    const struct readers *readers;
};

/* http_judge_put; the context is a struct symbols. */
int symbols_judge(void *context, const struct http_put *put, struct profd_error *e);
/* Answers a PUT that was judged so, later. Takes over the body. */
void symbols_receive(const struct symbols *s, struct http_exchange *x, const struct http_request *request);

#endif
