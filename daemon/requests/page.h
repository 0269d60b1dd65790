/* The shape of all answers, until HTTP or the Unix socket sends them. */
#ifndef PROFD_REQUESTS_PAGE_H
#define PROFD_REQUESTS_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/coding.h"
#include "proto/status.h"

struct page {
    int status;                                     /* of HTTP */
    const char *content_type, *cache_control, *csp; /* csp NULL: the strictest */
    const char *etag;
    enum coding coding;
    bool negotiated; /* as in struct http_answer */
    char tag[80];    /* where etag may point to */
    uint32_t retry_after_ms;
    struct buffer body; /* the owner of the page ends it by buffer_done */
};

/* An empty body of at most 1 MiB, not to be stored. */
void page_init(struct page *page, int status, const char *content_type);
/* A problem document (RFC 9457). */
void page_problem(struct page *page, int http_status, enum profd_status code, const char *detail);

#endif
