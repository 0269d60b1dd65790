/* Law: however the bytes of a request are split, the result is the same; a head that is taken obeys the limits, and
 * what is taken is taken again from a copy of exactly its size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/http_parse.h"
#include "net/http_target.h"

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
    }
    if (result == HTTP_PARSE_BAD && (p.reason == NULL || p.status < 400)) {
        abort();
    }
    return 0;
}
