/* POST /api/v1/uploads at a centre: a host says that it is there, and sends a batch of uploads (Batch of
 * proto/profd.proto) with a write token, which names its tenant and the host. It is answered after the commit. On the
 * loop's thread. */
#ifndef PROFD_REQUESTS_UPLOADS_H
#define PROFD_REQUESTS_UPLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/http.h"
#include "proto/status.h"
#include "store/store.h"

struct intake;
struct tokens;
struct uploads_service;
struct writer;

/* All parts outlive the service. */
struct uploads_config {
    uint8_t centre[STORE_CENTRE_SIZE]; /* name */
    bool relays;                       /* this daemon itself sends to another centre: then it is none */
    struct intake *intake;
    const struct tokens *tokens;
    struct writer *writer;
};

enum profd_status uploads_service_new(const struct uploads_config *config, struct uploads_service **out,
                                      struct profd_error *e);
/* After the intake. Accepts NULL. */
void uploads_service_free(struct uploads_service *s);

struct uploads_host {
    char name[256];
    uint8_t identity[STORE_HOST_SIZE];
};
/* The host of a request with a write token: that of the token's name, or with a token for several hosts the one that
 * the request states, else "". FORBIDDEN: the token is not for it; MALFORMED: it cannot be one. */
enum profd_status uploads_find_host(const struct store_token *token, const char *stated, struct uploads_host *out,
                                    struct profd_error *e);

/* http_judge_body, of a POST: it needs a token with the right write. */
int uploads_judge(struct uploads_service *s, const struct http_body_head *head, struct profd_error *e);
/* Answers a POST that was judged so, later. */
void uploads_receive(struct uploads_service *s, struct http_exchange *x, const struct http_request *request);

#endif
