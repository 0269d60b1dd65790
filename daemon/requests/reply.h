/* A page on its way to the Unix socket: cut into REPLY frames, each made when the reader has taken the ones before. */
#ifndef PROFD_REQUESTS_REPLY_H
#define PROFD_REQUESTS_REPLY_H

#include <stdint.h>

#include "net/conn.h"
#include "net/http.h"
#include "requests/page.h"

/* Bytes of answers that readers have not taken yet; shared by all that reply. Must outlive the connections. */
struct replies {
    uint64_t bytes;
};

/* Answers over HTTP. Frees the page's body. */
void reply_tell(struct http_exchange *x, struct page *page);
/* Takes over the body of the page. A body that has failed is answered by a NACK, NO_MEMORY. */
void reply_send(struct replies *replies, struct conn *c, uint32_t tag, const struct page *page);

#endif
