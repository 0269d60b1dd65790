#include "query/coded.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "proto/deflate.h"

#define GZIP_QUICK 1
#define GZIP_HARD 9

bool coded_suits(const char *content_type)
{
    return strncmp(content_type, "text/", 5) == 0 || strstr(content_type, "json") != NULL ||
           strstr(content_type, "svg+xml") != NULL;
}

static size_t code_gzip(int level, const struct buffer *body, char *out, size_t bound)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
    size_t n = c != NULL ? libdeflate_gzip_compress(c, body->data, body->size, out, bound) : 0;
    libdeflate_free_compressor(c);
    return n;
}

static size_t code_zstd(const struct buffer *body, char *out, size_t bound)
{
    size_t n = 0;
    return deflate_pack((const uint8_t *)body->data, body->size, true, (uint8_t *)out, bound, &n, NULL) == PROFD_OK ? n
                                                                                                                    : 0;
}

bool coded_body(enum coding coding, bool hard, bool must, struct buffer *body)
{
    if (body->failed || body->size == 0 || (coding != CODING_GZIP && coding != CODING_ZSTD)) {
        return false;
    }
    size_t bound = deflate_bound(body->size) + 64; /* gzip's bound is less: 5 bytes for each block of 5,000 at worst */
    char *out = malloc(bound);
    size_t n = 0;
    if (out != NULL) {
        n = coding == CODING_GZIP ? code_gzip(hard ? GZIP_HARD : GZIP_QUICK, body, out, bound)
                                  : code_zstd(body, out, bound);
    }
    if (n == 0 || (n >= body->size && !must)) {
        free(out);
        return false;
    }
    buffer_done(body);
    body->data = out; /* what of it was not written to takes no memory */
    body->size = n;
    body->capacity = bound;
    return true;
}
