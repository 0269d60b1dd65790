#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/net_internal.h"
#include "proto/deflate.h"
#include "proto/http_text.h"
#include "proto/whole.h"

/* Bodies of requests: that of a PUT goes into a file in memory, that of a POST into memory, decoded when it is whole.
 * What all bodies hold is bounded before it is taken. From top to bottom: what is held, framing, decoding. */

#define CHUNK_DIGITS 8

/* Of all servers, which one thread runs. */
static TAILQ_HEAD(, http_body) body_all = TAILQ_HEAD_INITIALIZER(body_all);

/* Returns the bytes that a body with `size` bytes of memory counts for. */
static size_t body_count(size_t size)
{
    return size < LIMIT_HTTP_POST_LEAST ? LIMIT_HTTP_POST_LEAST : size;
}

/* Checks that b may have `size` bytes of memory beside all other bodies. BUSY. */
static enum profd_status body_admit(const struct http_body *b, size_t size, struct profd_error *e)
{
    const struct http_body *other;
    size_t own = body_count(size), all = own;

    TAILQ_FOREACH(other, &body_all, next)
    {
        if (other != b && !other->put) {
            all += body_count(other->capacity);
            own += other->token == b->token ? body_count(other->capacity) : 0;
        }
    }
    FAIL_IF(own > LIMIT_HTTP_POSTS_OF_ONE, e, PROFD_BUSY,
            "bodies of this token's requests would take %zu bytes, at most %u; try again", own,
            LIMIT_HTTP_POSTS_OF_ONE);
    FAIL_IF(all > LIMIT_HTTP_POSTS, e, PROFD_BUSY, "bodies of all requests would take %zu bytes, at most %u; try again",
            all, LIMIT_HTTP_POSTS);
    return PROFD_OK;
}

/* Checks that no other file of this token is received or handled, and that all files with n more bytes of this one
 * are within the limit. A slow client holds what it has sent, not what it has announced. */
static enum profd_status body_admit_file(const struct http_body *b, size_t n, struct profd_error *e)
{
    const struct http_body *other;
    uint64_t all = n;

    TAILQ_FOREACH(other, &body_all, next)
    {
        FAIL_IF(other != b && other->put && other->token == b->token, e, PROFD_BUSY,
                "another file of this token is being read; try again");
        all += other->put ? other->got : 0;
    }
    FAIL_IF(all > LIMIT_HTTP_PUTS, e, PROFD_BUSY, "all files that are being read would take over %u bytes; try again",
            LIMIT_HTTP_PUTS);
    return PROFD_OK;
}

void http_body_free(struct http_body *b)
{
    if (!b) {
        return;
    }
    TAILQ_REMOVE(&body_all, b, next);
    close(b->file); /* a POST has -1, which is no descriptor */
    free(b->bytes);
    free(b);
}

enum profd_status http_body_new(const struct http_head *head, uint64_t token, struct http_body **out,
                                struct profd_error *e)
{
    const struct http_body begun = {.put = head->method == HTTP_METHOD_PUT,
                                    .token = token,
                                    .file = -1,
                                    .coding = head->coding,
                                    .chunked = head->transfer_encoding.at != 0,
                                    .left = head->body};
    struct http_body *b;

    TRY(begun.put ? body_admit_file(&begun, 0, e) : body_admit(&begun, 0, e));
    b = malloc(sizeof *b);
    TRY(b ? PROFD_OK : profd_no_memory(e));
    *b = begun;
    b->part = b->chunked ? HTTP_BODY_SIZE : b->left > 0 ? HTTP_BODY_BYTES : HTTP_BODY_WHOLE;
    TAILQ_INSERT_TAIL(&body_all, b, next);
    if (b->put && (b->file = memfd_create("profd-put", MFD_CLOEXEC | MFD_ALLOW_SEALING)) < 0) {
        http_body_free(b);
        return profd_error_set(e, PROFD_BUSY, "no memory for the file: %s", strerror(errno));
    }
    *out = b;
    return PROFD_OK;
}

static enum profd_status body_write(struct http_body *b, const char *bytes, size_t n, struct profd_error *e)
{
    TRY(body_admit_file(b, n, e));
    return whole_write(b->file, bytes, n)
               ? PROFD_OK
               : profd_error_set(e, PROFD_BUSY, "no memory for the file: %s", strerror(errno));
}

/* Appends bytes. The memory grows with the received bytes. The announced size only bounds it. */
static enum profd_status body_add(struct http_body *b, const char *bytes, size_t n, struct profd_error *e)
{
    const size_t size = b->size + n, most = b->chunked ? LIMIT_HTTP_POST : b->size + (size_t)b->left;

    if (size > b->capacity) {
        size_t capacity = size + size / 4 + HTTP_INPUT_MAX;
        capacity = capacity > most ? most : capacity;
        TRY(body_admit(b, capacity, e));
        uint8_t *grown = realloc(b->bytes, capacity);
        TRY(grown ? PROFD_OK : profd_no_memory(e));
        b->bytes = grown;
        b->capacity = capacity;
    }
    memcpy(b->bytes + b->size, bytes, n);
    b->size = size;
    return PROFD_OK;
}

/* Takes a byte of the line with a chunk's size, up to the carriage return. */
static enum profd_status body_take_digit(struct http_body *b, char c, struct profd_error *e)
{
    const int digit = http_hex_value(c);

    if (digit >= 0 && b->digits < CHUNK_DIGITS) {
        b->digits++;
        b->left = b->left * 16 + (unsigned)digit;
        return PROFD_OK;
    }
    FAIL_IF(c != '\r' || b->digits == 0, e, PROFD_MALFORMED,
            "a chunk does not begin with a size of 1 to %d hexadecimal digits and a line end, without extension (byte "
            "%llu of the body)",
            CHUNK_DIGITS, (unsigned long long)b->at);
    FAIL_IF(b->left > LIMIT_HTTP_POST - b->got, e, PROFD_TOO_LARGE,
            "the body has %llu bytes or more, at most %u are taken", (unsigned long long)(b->got + b->left),
            LIMIT_HTTP_POST);
    b->part = HTTP_BODY_SIZE_END;
    return PROFD_OK;
}

/* Takes a byte that the framing prescribes. */
static enum profd_status body_take_mark(struct http_body *b, char c, struct profd_error *e)
{
    static const struct {
        char wanted;
        enum http_body_part next;
        const char *rule;
    } marks[] = {
        [HTTP_BODY_SIZE_END] = {'\n', HTTP_BODY_BYTES, "the size of a chunk does not end in a line end"},
        [HTTP_BODY_DATA_CR] = {'\r', HTTP_BODY_DATA_LF, "a chunk is longer than its size"},
        [HTTP_BODY_DATA_LF] = {'\n', HTTP_BODY_SIZE, "a chunk does not end in a line end"},
        [HTTP_BODY_LAST_CR] = {'\r', HTTP_BODY_LAST_LF, "fields after the last chunk are not accepted"},
        [HTTP_BODY_LAST_LF] = {'\n', HTTP_BODY_WHOLE, "the body does not end in a line end"},
    };
    const bool last = b->part == HTTP_BODY_SIZE_END && b->left == 0;

    FAIL_IF(c != marks[b->part].wanted, e, PROFD_MALFORMED, "%s (byte %llu of the body)", marks[b->part].rule,
            (unsigned long long)b->at);
    b->part = last ? HTTP_BODY_LAST_CR : marks[b->part].next;
    b->digits = 0;
    return PROFD_OK;
}

/* Inflates one gzip member, which no bytes may follow. TOO_LARGE: it holds more than `most` bytes. */
static enum profd_status body_inflate(const struct http_body *b, uint8_t *out, size_t most, size_t *size,
                                      struct profd_error *e)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t took = 0;

    TRY(d ? PROFD_OK : profd_no_memory(e));
    enum libdeflate_result result = libdeflate_gzip_decompress_ex(d, b->bytes, b->size, out, most, &took, size);
    libdeflate_free_decompressor(d);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
        return PROFD_TOO_LARGE;
    }
    FAIL_IF(result != LIBDEFLATE_SUCCESS, e, PROFD_MALFORMED, "the gzip of %zu bytes is damaged or cut", b->size);
    return took == b->size
               ? PROFD_OK
               : profd_error_set(e, PROFD_MALFORMED, "%zu bytes follow the one gzip member that a body may have",
                                 b->size - took);
}

/* Finds the size of the decoded content: as the end of a gzip member or the head of a zstd frame states it, otherwise
 * an upper bound. */
static enum profd_status body_find_size(const struct http_body *b, uint64_t *size, struct profd_error *e)
{
    FAIL_IF(b->size < 4, e, PROFD_MALFORMED, "the %s of %zu bytes is cut", coding_name(b->coding), b->size);
    if (b->coding == CODING_GZIP) {
        const uint8_t *end = b->bytes + b->size - 4;
        *size = end[0] | (uint32_t)end[1] << 8 | (uint32_t)end[2] << 16 | (uint32_t)end[3] << 24;
        *size = *size < LIMIT_HTTP_POST ? *size : LIMIT_HTTP_POST; /* a truncated member may state any size */
        return PROFD_OK;
    }
    TRY(deflate_find_size(b->bytes, b->size, size, e));
    if (*size == UINT64_MAX) {
        *size = deflate_content_max(b->size) < LIMIT_HTTP_POST ? deflate_content_max(b->size) : LIMIT_HTTP_POST;
    }
    return PROFD_OK;
}

/* Decodes the whole body at once. The size is checked before memory is allocated. */
static enum profd_status body_decode(struct http_body *b, struct profd_error *e)
{
    uint64_t stated = 0;
    size_t size = 0;

    TRY(body_find_size(b, &stated, e));
    FAIL_IF(stated > LIMIT_HTTP_POST, e, PROFD_TOO_LARGE,
            "the body has %llu bytes when it is decoded, at most %u are taken", (unsigned long long)stated,
            LIMIT_HTTP_POST);
    TRY(body_admit(b, b->capacity + (size_t)stated, e));
    uint8_t *out = malloc(stated > 0 ? (size_t)stated : 1);
    TRY(out ? PROFD_OK : profd_no_memory(e));
    enum profd_status status = b->coding == CODING_GZIP
                                   ? body_inflate(b, out, (size_t)stated, &size, e)
                                   : deflate_unpack_foreign(b->bytes, b->size, out, (size_t)stated, &size, e);
    if (status == PROFD_TOO_LARGE) {
        profd_error_set(e, stated < LIMIT_HTTP_POST ? PROFD_MALFORMED : PROFD_TOO_LARGE,
                        "the %s holds more than %llu bytes, which %s", coding_name(b->coding),
                        (unsigned long long)stated, stated < LIMIT_HTTP_POST ? "it states" : "a body may have");
        status = stated < LIMIT_HTTP_POST ? PROFD_MALFORMED : PROFD_TOO_LARGE;
    }
    if (status) {
        free(out);
        return status;
    }
    free(b->bytes);
    uint8_t *fitting = realloc(out, size > 0 ? size : 1);
    b->bytes = fitting ? fitting : out;
    b->capacity = fitting ? size : (size_t)stated;
    b->size = size;
    return PROFD_OK;
}

size_t http_body_wants(const struct http_body *b, size_t n)
{
    return !b->chunked && b->left < n ? (size_t)b->left : n;
}

enum profd_status http_body_take(struct http_body *b, const char *data, size_t n, size_t *took, struct profd_error *e)
{
    size_t at = 0;
    enum profd_status status = PROFD_OK;

    while (at < n && b->part != HTTP_BODY_WHOLE && !status) {
        size_t run = 1;
        if (b->part == HTTP_BODY_BYTES) {
            run = n - at < b->left ? n - at : (size_t)b->left;
            status = b->put ? body_write(b, data + at, run, e) : body_add(b, data + at, run, e);
            if (!status) {
                b->left -= run;
                b->got += run;
                b->part = b->left ? HTTP_BODY_BYTES : b->chunked ? HTTP_BODY_DATA_CR : HTTP_BODY_WHOLE;
            }
        } else {
            status = b->part == HTTP_BODY_SIZE ? body_take_digit(b, data[at], e) : body_take_mark(b, data[at], e);
        }
        at += run;
        b->at += run;
    }
    *took = at;
    if (status || b->part != HTTP_BODY_WHOLE) {
        return status;
    }
    if (b->put) { /* the reader of executables accepts only sealed files in memory; a failure is reported there */
        (void)fcntl(b->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
        return PROFD_OK;
    }
    if (b->coding != CODING_IDENTITY) {
        return body_decode(b, e);
    }
    if (!b->bytes) { /* NULL would mean that the request is not a POST */
        b->bytes = malloc(1);
    }
    return b->bytes ? PROFD_OK : profd_no_memory(e);
}
