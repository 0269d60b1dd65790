/* Bodies of requests: what is refused before a byte of it is read, framing and codings of hostile senders, the exact
 * end of a body, and memory that is bounded before it is taken. */
#include <criterion/criterion.h>
#include <event2/event.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "net/net_internal.h"
#include "proto/limits.h"
#include "tests/unit/net/http_scene.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define HEAD "POST /up HTTP/1.1\r\nHost: localhost\r\n"
#define CHUNKED HEAD "Transfer-Encoding: chunked\r\n\r\n"
#define NEXT "GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define MOST LIMIT_HTTP_POST

struct text {
    char *data;
    size_t size;
};

/* The data may be the text's own. */
static void text_add(struct text *t, const void *data, size_t n)
{
    char *grown = malloc(t->size + n + 1);
    if (t->size > 0) {
        memcpy(grown, t->data, t->size);
    }
    memcpy(grown + t->size, data, n);
    free(t->data);
    t->data = grown;
    t->size += n;
}

/* A POST of n bytes with a length and a coding, and NEXT behind it. */
static struct text text_post(const char *coding, const void *body, size_t n)
{
    struct text t = {0};
    char head[200];
    const int size = snprintf(head, sizeof head, HEAD "Content-Length: %zu\r\nContent-Encoding: %s\r\n\r\n", n, coding);
    text_add(&t, head, (size_t)size);
    text_add(&t, body, n);
    text_add(&t, NEXT, sizeof NEXT - 1);
    return t;
}

/* What came of a request, without a server. */
struct outcome {
    enum profd_status status;
    bool whole;
    size_t took, size; /* bytes of the request, and of the decoded body */
    char hash[65];
    struct profd_error error;
};

/* The bytes come in pieces of `piece`, but the first is `first`. */
static struct outcome receive(const char *text, size_t n, size_t first, size_t piece)
{
    struct outcome o = {0};
    struct http_parser p = {0};
    struct http_body *b = NULL;
    cr_assert_eq(http_parse(&p, text, n), HTTP_PARSE_DONE, "%s", p.reason);
    cr_assert_eq(http_body_new(&p.head, 1, &b, &o.error), PROFD_OK);
    o.took = p.at;
    for (size_t come = p.at + first;; come += piece) {
        size_t took = 0;
        come = come < n ? come : n;
        char *copy = malloc(come - o.took + 1); /* of exactly that size, so that the sanitizer sees a read behind it */
        memcpy(copy, text + o.took, come - o.took);
        o.status = http_body_take(b, copy, come - o.took, &took, &o.error);
        free(copy);
        o.took += took;
        if (o.status || come == n || b->part == HTTP_BODY_WHOLE) {
            break;
        }
    }
    o.whole = !o.status && b->part == HTTP_BODY_WHOLE;
    if (o.whole) {
        o.size = b->size;
        cr_assert_not_null(b->bytes);
        scene_hash(b->bytes, b->size, o.hash);
    }
    http_body_free(b);
    return o;
}

/* The result, having seen that it does not depend on how the bytes arrive. */
static struct outcome receive_all_ways(const char *text, size_t n)
{
    const struct outcome whole = receive(text, n, n, 1);
    for (size_t first = 0; first <= n; first++) {
        const struct outcome o = first < n ? receive(text, n, first, n) : receive(text, n, 1, 1);
        cr_assert_eq(o.status, whole.status, "%zu: %s", first, o.error.sentence);
        cr_assert(o.status || o.took == whole.took, "%zu", first);
        cr_assert_eq(o.whole, whole.whole, "%zu", first);
        cr_assert_eq(o.size, whole.size);
        cr_assert_str_eq(o.hash, whole.hash);
        cr_assert_str_eq(o.error.sentence, whole.error.sentence);
    }
    return whole;
}

/* The request is whole, the body is this, and not a byte of NEXT was taken. Cut anywhere it is not whole. */
static void assert_body(const struct text *t, const void *body, size_t n)
{
    char hash[65];
    const struct outcome o = receive_all_ways(t->data, t->size);
    scene_hash(body, n, hash);
    cr_assert(o.whole, "%s: %s", t->data, o.error.sentence);
    cr_assert_eq(o.size, n);
    cr_assert_str_eq(o.hash, hash);
    cr_assert_eq(o.took, t->size - (sizeof NEXT - 1), "what follows is left alone");
    const char *begin = (const char *)memmem(t->data, t->size, "\r\n\r\n", 4) + 4;
    for (size_t cut = (size_t)(begin - t->data); cut < o.took; cut++) {
        cr_assert_not(receive(t->data, cut, cut, 1).whole, "cut at %zu", cut);
    }
}

Test(net_http_body, chunks_and_lengths_end_where_they_say)
{
    static const struct {
        const char *request, *body;
    } rows[] = {
        {HEAD "Content-Length: 5\r\n\r\nhello" NEXT, "hello"},
        {HEAD "Content-Length: 0005\r\nExpect: 100-CONTINUE\r\n\r\nhello" NEXT, "hello"},
        {HEAD "Content-Length: 0\r\n\r\n" NEXT, ""},
        {HEAD "Content-Encoding: Identity\r\ncontent-length:1\r\n\r\n\n" NEXT, "\n"},
        {CHUNKED "0\r\n\r\n" NEXT, ""},
        {CHUNKED "00000000\r\n\r\n" NEXT, ""},
        {CHUNKED "5\r\nhello\r\n0\r\n\r\n" NEXT, "hello"},
        {CHUNKED "0000000A\r\nGET / HTTP\r\n00a\r\n0\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n" NEXT,
         "GET / HTTP0\r\n\r\n0\r\n\r\n"},
        {HEAD "transfer-encoding: Chunked\r\n\r\n1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n" NEXT, "\r\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text t = {0};
        text_add(&t, rows[i].request, strlen(rows[i].request));
        assert_body(&t, rows[i].body, strlen(rows[i].body));
        free(t.data);
    }
}

Test(net_http_body, chunks_that_could_be_read_in_two_ways_are_refused)
{
    static const struct {
        enum profd_status status;
        const char *chunks, *word;
    } rows[] = {
        {PROFD_MALFORMED, "\r\n0\r\n\r\n", "1 to 8 hexadecimal digits"},
        {PROFD_MALFORMED, "5;x=y\r\nhello\r\n0\r\n\r\n", "without extension (byte 1 of"},
        {PROFD_MALFORMED, "5 \r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, " 5\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "5\t\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "0x5\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "+5\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "-1\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "5_\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "g\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "5\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "5\r\rhello\r\n0\r\n\r\n", "line end"},
        {PROFD_MALFORMED, "5\rhello\r\n0\r\n\r\n", "line end"},
        {PROFD_MALFORMED, "000000005\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "10000000000000005\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "ffffffffffffffff\r\nhello\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "4\r\nhello\r\n0\r\n\r\n", "longer than its size (byte 7 of"},
        {PROFD_MALFORMED, "6\r\nhello\r\n0\r\n\r\n", "longer than its size (byte 9 of"},
        {PROFD_MALFORMED, "5\r\nhello0\r\n\r\n", "longer than its size"},
        {PROFD_MALFORMED, "5\r\nhello\n0\r\n\r\n", "longer than its size"},
        {PROFD_MALFORMED, "5\r\nhello\r0\r\n\r\n", "line end"},
        {PROFD_MALFORMED, "5\r\nhello\r\n\r\n0\r\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, "0\r\nX-Trailer: y\r\n\r\n", "fields after the last chunk"},
        {PROFD_MALFORMED, "0\r\nContent-Length: 5\r\n\r\n", "fields after the last chunk"},
        {PROFD_MALFORMED, "0\r\n\n", "fields after the last chunk"},
        {PROFD_MALFORMED, "0\r\n\rx", "line end"},
        {PROFD_MALFORMED, "0\n\r\n", "hexadecimal"},
        {PROFD_MALFORMED, NEXT, "hexadecimal"},
        {PROFD_TOO_LARGE, "ffffffff\r\nhello", "4294967295 bytes or more, at most 16777216"},
        {PROFD_TOO_LARGE, "1000001\r\nhello", "16777217"},
        {PROFD_TOO_LARGE, "5\r\nhello\r\n1000000\r\n", "16777221"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[300];
        const int n = snprintf(text, sizeof text, CHUNKED "%s", rows[i].chunks);
        const struct outcome o = receive_all_ways(text, (size_t)n);
        cr_assert_eq(o.status, rows[i].status, "%s: %d", rows[i].chunks, o.status);
        cr_assert_not_null(strstr(o.error.sentence, rows[i].word), "%s: %s", rows[i].chunks, o.error.sentence);
    }
}

/* One gzip member of n bytes. */
static struct text gzip(const void *bytes, size_t n)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    struct text t = {.data = malloc(libdeflate_gzip_compress_bound(c, n))};
    t.size = libdeflate_gzip_compress(c, bytes, n, t.data, libdeflate_gzip_compress_bound(c, n));
    cr_assert_gt(t.size, 0);
    libdeflate_free_compressor(c);
    return t;
}

/* One zstd frame of n bytes. */
static struct text zstd(const void *bytes, size_t n, bool sized, bool checked)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    struct text t = {.data = malloc(ZSTD_compressBound(n))};
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, sized);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checked);
    t.size = ZSTD_compress2(c, t.data, ZSTD_compressBound(n), bytes, n);
    cr_assert_not(ZSTD_isError(t.size));
    ZSTD_freeCCtx(c);
    return t;
}

Test(net_http_body, gzip_and_zstd_are_decoded)
{
    static const char plain[] = "hello, hello, hello, hello, hello, hello, hello, hello, hello, hello";
    for (int i = 0; i < 10; i++) {
        const size_t n = i < 5 ? sizeof plain : 0;
        struct text coded = i % 5 == 0 ? gzip(plain, n) : zstd(plain, n, i % 5 > 2, i % 2);
        struct text t = text_post(i % 5 == 0 ? "gzip" : "ZSTD", coded.data, coded.size);
        assert_body(&t, plain, n);
        free(coded.data);
        free(t.data);
    }
}

static void refuse_coded(const char *coding, const struct text *coded, enum profd_status status, const char *word)
{
    struct text t = text_post(coding, coded->data, coded->size);
    const struct outcome o = receive(t.data, t.size, t.size, 1);
    cr_assert_eq(o.status, status, "%s of %zu bytes: %d %s", coding, coded->size, o.status, o.error.sentence);
    cr_assert_not_null(strstr(o.error.sentence, word), "%s", o.error.sentence);
    free(t.data);
}

static void take_coded(const char *coding, const struct text *coded, size_t size)
{
    struct text t = text_post(coding, coded->data, coded->size);
    const struct outcome o = receive(t.data, t.size, t.size, 1);
    cr_assert_eq(o.size, size, "%s: %s", coding, o.error.sentence);
    free(t.data);
}

/* Each cut, each bit changed, and more behind it: never another body, never a read outside of it. */
Test(net_http_body, damaged_codings_are_refused)
{
    static const char plain[] = "damaged, damaged, damaged, or not";
    const char *const codings[] = {"gzip", "zstd"};
    struct text coded[] = {gzip(plain, sizeof plain), zstd(plain, sizeof plain, true, true)};
    char hash[65];
    scene_hash(plain, sizeof plain, hash);
    for (size_t i = 0; i < COUNT(coded); i++) {
        struct text *c = &coded[i];
        for (size_t cut = 0; cut < c->size; cut++) {
            refuse_coded(codings[i], &(struct text){c->data, cut}, PROFD_MALFORMED, "");
        }
        for (size_t bit = 0; bit < c->size * 8; bit++) {
            c->data[bit / 8] ^= (char)(1 << bit % 8);
            struct text t = text_post(codings[i], c->data, c->size);
            const struct outcome o = receive(t.data, t.size, t.size, 1);
            cr_assert(!o.whole || strcmp(o.hash, hash) == 0, "bit %zu of %s", bit, codings[i]);
            free(t.data);
            c->data[bit / 8] ^= (char)(1 << bit % 8);
        }
        const size_t one = c->size;
        text_add(c, "x", 1);
        refuse_coded(codings[i], c, PROFD_MALFORMED, i == 0 ? "" : "1 bytes follow");
        c->size = one;
        text_add(c, c->data, one);
        refuse_coded(codings[i], c, PROFD_MALFORMED, "follow the");
        c->size = one;
        refuse_coded(codings[1 - i], c, PROFD_MALFORMED, "");
        free(c->data);
    }
    char skippable[] = "\x50\x2a\x4d\x18\x04\0\0\0abcd";
    refuse_coded("zstd", &(struct text){skippable, 12}, PROFD_MALFORMED, "magic");
    refuse_coded("gzip", &(struct text){skippable, 0}, PROFD_MALFORMED, "0 bytes");
    refuse_coded("zstd", &(struct text){skippable, 0}, PROFD_MALFORMED, "0 bytes");
}

/* Megabytes from a few bytes: refused by what they state, and where they state nothing or lie, at the limit. */
Test(net_http_body, bombs_are_refused_at_the_limit)
{
    char *zeros = calloc(4, MOST);
    struct text t = gzip(zeros, MOST);
    take_coded("gzip", &t, MOST);
    free(t.data);
    for (int sized = 0; sized < 2; sized++) {
        t = zstd(zeros, MOST, sized, true);
        take_coded("zstd", &t, MOST);
        free(t.data);
        t = zstd(zeros, MOST + 1, sized, true);
        refuse_coded("zstd", &t, PROFD_TOO_LARGE, "16777216");
        free(t.data);
        t = zstd(zeros, 4 * MOST, sized, false);
        refuse_coded("zstd", &t, PROFD_TOO_LARGE, sized ? "67108864 bytes" : "16777216");
        free(t.data);
    }
    t = gzip(zeros, MOST + 1);
    refuse_coded("gzip", &t, PROFD_TOO_LARGE, "more than 16777216 bytes, which a body may have");
    memcpy(t.data + t.size - 4, "\x10\0\0\0", 4);
    refuse_coded("gzip", &t, PROFD_MALFORMED, "more than 16 bytes, which it states");
    memcpy(t.data + t.size - 4, "\0\0\0\x01", 4);
    refuse_coded("gzip", &t, PROFD_TOO_LARGE, "more than 16777216 bytes, which a body may have");
    memcpy(t.data + t.size - 4, "\xff\xff\xff\xff", 4);
    refuse_coded("gzip", &t, PROFD_TOO_LARGE, "which a body may have");
    free(t.data);
    t = gzip(zeros, 1);
    for (int i = 0; i < 10; i++) { /* members by the thousand */
        text_add(&t, t.data, t.size);
    }
    refuse_coded("gzip", &t, PROFD_MALFORMED, "follow the one gzip member");
    free(t.data);
    free(zeros);
}

/* Who asks is the first letter of X-Remote-User. POST is for /up and /file, PUT for /file. */
static int admit(void *context, const struct http_credentials *c, uint64_t *token, struct profd_error *e)
{
    (void)context;
    *token = c->user != NULL ? (uint64_t)c->user[0] : 0;
    if (*token == 'x') {
        profd_error_set(e, PROFD_UNAUTHORIZED, "nobody knows x");
        return 401;
    }
    return 0;
}

static int judge(void *context, const struct http_body_head *head, struct profd_error *e)
{
    snprintf(context, 300, "%s %.*s %c %d %llu %.*s", head->post ? "POST" : "PUT", (int)head->n, head->path,
             head->token != 0 ? (char)head->token : '-', head->sized, (unsigned long long)head->size,
             (int)head->type_size, head->type);
    (void)e;
    return 0;
}

static const char *find_methods(const char *path, size_t n)
{
    return n == 3 && memcmp(path, "/up", 3) == 0     ? "GET, HEAD, POST"
           : n == 5 && memcmp(path, "/file", 5) == 0 ? "POST, PUT"
                                                     : "GET, HEAD";
}

static char judged[300];
static const struct http_server_config server = {
    .admit = admit, .find_methods = find_methods, .judge_body = judge, .body_context = judged};

#define PUT_FILE "PUT /file HTTP/1.1\r\nHost: a\r\n"

Test(net_http_body, what_cannot_be_a_body_is_refused_before_it_is_read)
{
    static const struct {
        int status;
        const char *request, *word;
    } rows[] = {
        {405, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "Allow: GET, HEAD\r\n"},
        {405, "POST /up/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
         "Allow: GET, HEAD\r\n"},
        {405, "PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "Allow: GET, HEAD, POST\r\n"},
        {405, "GET /file?x HTTP/1.1\r\nHost: a\r\n\r\n", "Allow: POST, PUT\r\n"},
        {405, "POS /file HTTP/1.1\r\nHost: a\r\n\r\n", "Allow: POST, PUT\r\n"},
        {405, "OPTIONS /file HTTP/1.1\r\nHost: a\r\n\r\n", "Allow: POST, PUT\r\n"},
        {401, HEAD "X-Remote-User: x\r\nContent-Length: 5\r\n\r\nhello", "nobody knows"},
        {403, HEAD "Origin: http://b\r\nContent-Length: 5\r\n\r\nhello", "'http://b'"},
        {411, HEAD "\r\n", "Content-Length or Transfer-Encoding"},
        {411, PUT_FILE "\r\n", "a PUT needs a Content-Length"},
        {411, PUT_FILE "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "a PUT needs a Content-Length"},
        {413, HEAD "Content-Length: 16777217\r\n\r\n", "16777217 bytes, at most 16777216"},
        {413, HEAD "Content-Length: 18446744073709551615\r\n\r\n", "18446744073709551615"},
        {415, HEAD "Content-Length: 5\r\nContent-Encoding: br\r\n\r\nhello", "gzip or zstd; Content-Encoding: 'br'"},
        {415, HEAD "Content-Length: 5\r\nContent-Encoding: gzip, zstd\r\n\r\nhello", "'gzip, zstd'"},
        {415, HEAD "Content-Length: 5\r\nContent-Encoding:\r\n\r\nhello", "Content-Encoding"},
        {415, PUT_FILE "Content-Length: 5\r\nContent-Encoding: gzip\r\n\r\nhello", "'gzip'"},
        {417, HEAD "Content-Length: 5\r\nExpect: 200-ok\r\n\r\nhello", "Expect"},
        {417, HEAD "Content-Length: 5\r\nExpect:\r\n\r\nhello", "Expect"},
        {417, HEAD "Content-Length: 5\r\nExpect: 100-continue, x\r\n\r\nhello", "Expect"},
        {417, "GET /up HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", "Expect"},
        {400, HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT, "both Content-Length and"},
        {400, HEAD "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", "both Content-Length and"},
        {400, HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "twice"},
        {400, HEAD "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"},
        {400, HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"},
        {400, HEAD "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", "Transfer-Encoding"},
        {400, HEAD "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"},
        {400, HEAD "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", "Transfer-Encoding"},
        {400, HEAD "Transfer-Encoding:\r\n\r\n0\r\n\r\n", "Transfer-Encoding"},
        {400,
         HEAD "Transfer-Encoding:\x0b"
              "chunked\r\n\r\n0\r\n\r\n",
         "control character"},
        {400, HEAD "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"},
        {400, HEAD "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "white space"},
        {400, HEAD "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "field name"},
        {400, "POST /up HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1"},
        {400, "GET /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "PUT and POST only"},
        {400, HEAD "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "twice"},
        {400, HEAD "Content-Length: 5, 5\r\n\r\nhello", "digits"},
        {400, HEAD "Content-Length: +5\r\n\r\nhello", "digits"},
        {400, HEAD "Content-Length: 0x5\r\n\r\nhello", "digits"},
        {400, HEAD "Content-Length: 5\r\nContent-Type: a\r\nContent-Type: b\r\n\r\nhello", "twice"},
        {400, HEAD "Content-Length: 5\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\nhello", "twice"},
        {413, "GET /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "GET or HEAD"},
        {400, "POST //up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "(byte"},
        {400, CHUNKED "5;x\r\nhello\r\n0\r\n\r\n" NEXT, "without extension"},
        {400, CHUNKED "5\r\nhello\r\n0\r\nX: y\r\n\r\n" NEXT, "fields after"},
        {400, HEAD "Content-Length: 5\r\nContent-Encoding: gzip\r\n\r\nhello" NEXT, "gzip"},
        {413, CHUNKED "ffffffff\r\nhello", "4294967295"},
    };
    struct scene s;
    scene_open(&s, &server);
    for (size_t i = 0; i < COUNT(rows); i++) {
        scene_connect(&s);
        scene_say(&s, rows[i].request, strlen(rows[i].request));
        scene_pump(&s, 0);
        cr_assert(s.ended, "%s", rows[i].request);
        cr_assert_eq(scene_status(&s), rows[i].status, "%s\n%.*s", rows[i].request, (int)s.got_size, s.got);
        scene_assert_problem(&s, rows[i].status, rows[i].word);
        cr_assert_eq(scene_count_heads(&s), 1);
    }
    cr_assert_eq(s.handled, 0);
    scene_close(&s);
}

static void assert_handled(const struct scene *s, const char *body)
{
    char hash[65];
    scene_hash(body, strlen(body), hash);
    cr_assert_eq(s->size, strlen(body), "%zu", s->size);
    cr_assert_str_eq(s->hash, hash);
}

Test(net_http_body, a_body_is_judged_and_handed_on)
{
    struct scene s;
    scene_open(&s, &server);
    static const char post[] = "POST /up?x=/file HTTP/1.1\r\nHost: a\r\nX-Remote-User: r\r\nContent-Type: "
                               "application/x-protobuf\r\nContent-Length: 5\r\n\r\nhello";
    scene_say(&s, post, sizeof post - 1);
    scene_pump(&s, 1);
    cr_assert_eq(scene_status(&s), 200);
    cr_assert_str_eq(judged, "POST /up r 1 5 application/x-protobuf");
    cr_assert_str_eq(s.target, "/up?x=/file");
    cr_assert_str_eq(s.type, "application/x-protobuf");
    assert_handled(&s, "hello");
    s.got_size = 0;
    scene_say(&s, CHUNKED "0\r\n\r\n", sizeof CHUNKED + 4);
    scene_pump(&s, 1);
    cr_assert_str_eq(judged, "POST /up - 0 0 ");
    cr_assert_not_null(s.bytes, "empty, not absent");
    assert_handled(&s, "");
    s.got_size = 0;
    scene_say(&s, NEXT, sizeof NEXT - 1);
    scene_pump(&s, 1);
    cr_assert(s.bytes == NULL && !s.file);
    s.got_size = 0;
    scene_say(&s, PUT_FILE "Content-Length: 5\r\n\r\nhello", sizeof PUT_FILE + 25);
    scene_pump(&s, 0);
    cr_assert_str_eq(judged, "PUT /file - 1 5 ");
    cr_assert(s.file && s.ended);
    assert_handled(&s, "hello");
    cr_assert_eq(s.handled, 4);
    scene_close(&s);
}

/* A body that holds a request, and a request behind it that came with it. */
Test(net_http_body, the_next_request_begins_where_the_body_ends)
{
    static const char *const posts[] = {
        HEAD "Content-Length: 39\r\n\r\n" NEXT,
        CHUNKED "27\r\n" NEXT "\r\n0\r\n\r\n",
        CHUNKED "1\r\nG\r\n26\r\nET /next HTTP/1.1\r\nHost: localhost\r\n\r\n\r\n0\r\n\r\n",
    };
    struct scene s;
    scene_open(&s, &server);
    for (size_t i = 0; i < COUNT(posts); i++) {
        struct text t = {0};
        for (int n = 0; n < 3; n++) {
            text_add(&t, posts[i], strlen(posts[i]));
        }
        text_add(&t, "GET /last HTTP/1.1\r\nHost: a\r\n\r\n", 31);
        for (size_t cut = 0; cut <= t.size; cut++) {
            scene_connect(&s);
            s.handled = 0;
            scene_say(&s, t.data, cut);
            scene_settle(&s);
            cr_assert_leq(s.handled, cut * 4 / t.size + 1);
            scene_say(&s, t.data + cut, t.size - cut);
            scene_pump(&s, 4);
            cr_assert_eq(s.handled, 4, "cut at %zu: %u", cut, s.handled);
            cr_assert_str_eq(s.target, "/last");
            cr_assert_null(s.bytes);
            cr_assert_not(s.ended);
        }
        free(t.data);
    }
    scene_close(&s);
}

/* The client goes at every byte: nothing is handled, and nothing stays. */
Test(net_http_body, a_cut_body_is_no_body)
{
    static const char *const posts[] = {HEAD "Content-Length: 5\r\n\r\nhello",
                                        CHUNKED "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"};
    struct scene s;
    scene_open(&s, &server);
    for (size_t i = 0; i < COUNT(posts); i++) {
        for (size_t cut = 0; cut < strlen(posts[i]); cut++) {
            scene_connect(&s);
            scene_say(&s, posts[i], cut);
            scene_settle(&s);
            close(s.client);
            s.client = -1;
            scene_settle(&s);
            struct http_server_counts counts;
            http_server_get_counts(s.server, &counts);
            cr_assert_eq(counts.connections, 0, "%zu", cut);
        }
    }
    cr_assert_eq(s.handled, 0);
    scene_close(&s);
}

Test(net_http_body, ten_thousand_chunks_of_a_byte)
{
    struct text t = {0}, body = {0};
    struct scene s;
    text_add(&t, CHUNKED, sizeof CHUNKED - 1);
    for (int i = 0; i < 10000; i++) {
        const char chunk[] = {'1', '\r', '\n', (char)i, '\r', '\n'};
        text_add(&t, chunk, sizeof chunk);
        text_add(&body, chunk + 3, 1);
    }
    text_add(&t, "0\r\n\r\n", 5);
    char hash[65];
    scene_hash(body.data, body.size, hash);
    scene_open(&s, &server);
    scene_say(&s, t.data, t.size);
    scene_pump(&s, 1);
    cr_assert_eq(s.size, 10000);
    cr_assert_str_eq(s.hash, hash);
    free(t.data);
    free(body.data);
    scene_close(&s);
}

/* 100 is said to a client that waits for it, and only once its request is admitted. */
Test(net_http_body, a_client_that_waits_is_told_to_go_on)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct scene s;
    scene_open(&s, &server);
    static const char *const heads[] = {HEAD "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
                                        PUT_FILE "expect: 100-Continue\r\nContent-Length: 5\r\n\r\n"};
    for (size_t i = 0; i < COUNT(heads); i++) {
        scene_connect(&s);
        scene_say(&s, heads[i], strlen(heads[i]));
        scene_pump(&s, 1);
        cr_assert_eq(s.got_size, sizeof go_on - 1);
        cr_assert_arr_eq(s.got, go_on, sizeof go_on - 1);
        cr_assert_eq(s.handled, i);
        s.got_size = 0;
        scene_say(&s, "hello", 5);
        scene_pump(&s, 1);
        cr_assert_eq(scene_status(&s), 200);
        assert_handled(&s, "hello");
    }
    static const char *const others[] = {
        HEAD "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
        "POST /up HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"};
    for (size_t i = 0; i < COUNT(others); i++) {
        scene_connect(&s);
        scene_say(&s, others[i], strlen(others[i]));
        scene_settle(&s);
        scene_say(&s, "hello", i * 5);
        scene_pump(&s, 1);
        cr_assert_eq(scene_status(&s), 200, "no 100 before it: %.*s", (int)s.got_size, s.got);
    }
    scene_close(&s);
}

/* What was refused is told to a client that sends on. */
Test(net_http_body, a_refused_sender_reads_the_answer)
{
    char *flood = calloc(1, 4 << 20);
    struct scene s;
    scene_open(&s, &server);
    scene_say(&s, "POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 4194304\r\n\r\n", 60);
    scene_say(&s, flood, 4 << 20);
    scene_pump(&s, 0);
    scene_assert_problem(&s, 405, "Allow: GET, HEAD\r\n");
    cr_assert_eq(s.handled, 0);
    free(flood);
    scene_close(&s);
}

Test(net_http_body, a_body_that_does_not_come_is_given_up)
{
    struct http_server_config config = server;
    struct scene s;
    config.write_ms = 50;
    scene_open(&s, &config);
    static const char *const begun[] = {HEAD "Content-Length: 100\r\n\r\nhello", CHUNKED "64\r\nhello"};
    for (size_t i = 0; i < COUNT(begun); i++) {
        scene_connect(&s);
        scene_say(&s, begun[i], strlen(begun[i]));
        scene_pump(&s, 0);
        scene_assert_problem(&s, 408, "5 bytes of the body have come");
    }
    scene_close(&s);
}

/* The handler may read the body until it answers, even if the client has gone. */
Test(net_http_body, bytes_live_until_the_answer)
{
    struct scene s;
    char hash[65];
    scene_open(&s, &server);
    s.later = true;
    scene_say(&s, HEAD "Content-Length: 5\r\n\r\nhello", sizeof HEAD + 25);
    scene_settle(&s);
    close(s.client);
    s.client = -1;
    scene_settle(&s);
    http_server_free(s.server);
    s.server = NULL;
    scene_hash(s.bytes, s.size, hash);
    cr_assert_str_eq(hash, s.hash);
    scene_answer(&s, s.waiting);
    scene_close(&s);
}

/* A connection on which n bytes of a POST of the user were sent; the status, 0: it is being received. */
static int begin(struct scene *s, char user, size_t n)
{
    char head[200], *body = calloc(1, n + 1);
    const int size = snprintf(head, sizeof head, HEAD "X-Remote-User: %c\r\nContent-Length: %u\r\n\r\n", user, MOST);
    s->client = -1;
    scene_connect(s);
    scene_say(s, head, (size_t)size);
    scene_say(s, body, n);
    for (int i = 0; i < 100 && s->got_size == 0; i++) {
        scene_settle(s);
    }
    free(body);
    return scene_status(s);
}

Test(net_http_body, one_token_is_not_all_memory_and_all_tokens_are_bounded)
{
    struct scene s, other;
    int held[300], count = 0;
    scene_open(&s, &server);
    close(s.client);
    for (const char *user = "abcd"; *user != '\0'; user++) { /* announced 16 MB, sent 13 MB: what is sent counts */
        const int first = begin(&s, *user, 13 << 20);
        held[count++] = s.client;
        cr_assert_eq(first, 0, "%c: %.*s", *user, (int)s.got_size, s.got);
    }
    scene_open(&other, &server); /* another listener has no memory of its own */
    close(other.client);
    cr_assert_eq(begin(&other, 'e', 13 << 20), 503);
    scene_assert_problem(&other, 503, "all requests would take");
    scene_assert_field(&other, "Retry-After", "1");
    close(held[--count]);
    scene_settle(&s);
    close(other.client);
    cr_assert_eq(begin(&other, 'e', 13 << 20), 0, "what has ended takes nothing");
    scene_close(&other);
    close(held[--count]);
    scene_settle(&s);
    cr_assert_eq(begin(&s, 'a', 13 << 20), 0);
    held[count++] = s.client;
    cr_assert_eq(begin(&s, 'a', 13 << 20), 503);
    scene_assert_problem(&s, 503, "this token's requests would take");
    close(s.client);
    while (count > 0) {
        close(held[--count]);
    }
    scene_settle(&s);
    while (begin(&s, 'a', 1) == 0) { /* nor all connections, with bodies that do not come */
        held[count++] = s.client;
        cr_assert_lt(count, 256);
    }
    cr_assert_eq(count, 128);
    close(s.client);
    cr_assert_eq(begin(&s, 'b', 1), 0);
    while (count > 0) {
        close(held[--count]);
    }
    scene_close(&s);
}

/* The body of a PUT of a file by this token; *status says why there is none. */
static struct http_body *put_begin(uint64_t token, enum profd_status *status, struct profd_error *e)
{
    char text[100];
    struct http_parser p = {0};
    struct http_body *b = NULL;
    const int n = snprintf(text, sizeof text, "PUT /file HTTP/1.1\r\nHost: localhost\r\nContent-Length: %u\r\n\r\n",
                           LIMIT_HTTP_PUT);
    cr_assert_eq(http_parse(&p, text, (size_t)n), HTTP_PARSE_DONE, "%s", p.reason);
    *status = http_body_new(&p.head, token, &b, e);
    return b;
}

/* n times a MiB of the file. */
static enum profd_status put_send(struct http_body *b, unsigned n, struct profd_error *e)
{
    static const char zeros[1 << 20];
    enum profd_status status = PROFD_OK;
    for (unsigned i = 0; status == PROFD_OK && i < n; i++) {
        size_t took = 0;
        status = http_body_take(b, zeros, sizeof zeros, &took, e);
    }
    return status;
}

/* Ten clients that announced the largest file and send nothing keep nobody out: what has come counts. */
Test(net_http_body, files_are_bounded_by_what_has_come)
{
    enum profd_status status;
    struct profd_error e = {""};
    struct http_body *slow[10], *fast[2], *last;
    for (unsigned i = 0; i < COUNT(slow); i++) {
        slow[i] = put_begin(i + 1, &status, &e);
        cr_assert_eq(status, PROFD_OK, "%s", e.sentence);
    }
    cr_assert_eq(put_begin(1, &status, &e), NULL, "one file of a token");
    cr_assert_eq(status, PROFD_BUSY);
    for (unsigned i = 0; i < COUNT(fast); i++) {
        fast[i] = put_begin(i + 20, &status, &e);
        cr_assert_eq(put_send(fast[i], 256, &e), PROFD_OK, "%s", e.sentence);
    }
    last = put_begin(30, &status, &e);
    cr_assert_eq(status, PROFD_OK);
    cr_expect_eq(put_send(last, 1, &e), PROFD_BUSY);
    cr_expect(strstr(e.sentence, "536870912 bytes") != NULL, "%s", e.sentence);
    cr_expect_eq(put_send(slow[0], 1, &e), PROFD_BUSY);
    http_body_free(fast[0]);
    cr_expect_eq(put_send(slow[0], 1, &e), PROFD_OK, "what has ended takes nothing");
    http_body_free(fast[1]);
    http_body_free(last);
    for (unsigned i = 0; i < COUNT(slow); i++) {
        http_body_free(slow[i]);
    }
}
