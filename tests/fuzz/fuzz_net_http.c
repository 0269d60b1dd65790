/* Law: however the bytes of a request are split, the result is the same; a head that is taken obeys the limits, and
 * what is taken is taken again from a copy of exactly its size. The same is true of the body of a POST, which is
 * decoded within its limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/net_internal.h"
#include "proto/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SPLITS_MAX 64 /* of long inputs only some are tried: the law costs a parse each */

static void check_split(const struct http_parser *whole, enum http_parse_result wanted, const char *data, size_t size,
                        size_t split)
{
    struct http_parser p = {0};
    enum http_parse_result result = http_parse(&p, data, split);
    if (result == HTTP_PARSE_MORE) {
        result = http_parse(&p, data, size);
    }
    if (result != wanted || p.at != whole->at || p.status != whole->status || p.reason != whole->reason ||
        memcmp(&p.head, &whole->head, sizeof p.head) != 0) {
        abort();
    }
}

static void check_head(const struct http_parser *p, const char *data)
{
    const struct http_head *h = &p->head;
    if (p->at > HTTP_HEAD_MAX || memcmp(data + p->at - 4, "\r\n\r\n", 4) != 0 || h->host.at == 0 ||
        !http_host_valid(data + h->host.at, h->host.size) ||
        (size_t)h->if_none_match.at + h->if_none_match.size > p->at) {
        abort();
    }
    bool read =
        h->method == HTTP_METHOD_GET || h->method == HTTP_METHOD_HEAD; /* nothing is answered about other targets */
    if (read && (data[h->target.at] != '/' || memchr(data + h->target.at, ' ', h->target.size) != NULL)) {
        abort();
    }
    char *copy = malloc(p->at);
    struct http_parser again = {0};
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, data, p->at);
    if (http_parse(&again, copy, p->at) != HTTP_PARSE_DONE) {
        abort();
    }
    free(copy);
}

/* The body, of which a first part comes before the others. */
static struct http_body *take_body(const struct http_head *head, const char *data, size_t size, size_t split,
                                   size_t *took, enum profd_status *status)
{
    struct http_body *b = NULL;
    size_t more = 0;
    if (http_body_new(head, 1, &b, NULL) != PROFD_OK) {
        abort();
    }
    *status = http_body_take(b, data, split, took, NULL);
    if (*status == PROFD_OK && b->part != HTTP_BODY_WHOLE) {
        *status = http_body_take(b, data + *took, size - *took, &more, NULL);
        *took += more;
    }
    return b;
}

static void check_body(const struct http_head *head, const char *data, size_t size)
{
    size_t took = 0, again = 0;
    enum profd_status status = PROFD_OK, other = PROFD_OK;
    struct http_body *whole = take_body(head, data, size, size, &took, &status);
    if (status == PROFD_OK && whole->part == HTTP_BODY_WHOLE &&
        (took > size || whole->bytes == NULL || whole->size > LIMIT_HTTP_POST)) {
        abort();
    }
    for (size_t split = 0; split < size; split += size / SPLITS_MAX + 1) {
        struct http_body *b = take_body(head, data, size, split, &again, &other);
        if (other != status || (!status && (again != took || b->part != whole->part || b->size != whole->size ||
                                            (b->size > 0 && memcmp(b->bytes, whole->bytes, b->size) != 0)))) {
            abort();
        }
        http_body_free(b);
    }
    http_body_free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_parser p = {0};
    enum http_parse_result result = http_parse(&p, (const char *)data, size);
    size_t step = size / SPLITS_MAX + 1;
    for (size_t split = 0; split <= size; split += step) {
        check_split(&p, result, (const char *)data, size, split);
    }
    if (result == HTTP_PARSE_DONE) {
        check_head(&p, (const char *)data);
        if (p.head.method == HTTP_METHOD_POST && p.head.body <= LIMIT_HTTP_POST && p.head.coding != CODING_NONE) {
            check_body(&p.head, (const char *)data + p.at, size - p.at);
        }
    }
    if (result == HTTP_PARSE_BAD && (p.reason == NULL || p.status < 400)) {
        abort();
    }
    return 0;
}
