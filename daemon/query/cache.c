/* Finished answers that are kept: their validators, their codings, and the list from which the least recently used goes
 * first. */
#include <libdeflate.h>
#include <nettle/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "proto/deflate.h"
#include "proto/hex.h"
#include "query/query_internal.h"

void lru_init(struct lru *l, size_t limit, size_t entries_max, const struct query_lock *lock)
{
    *l = (struct lru){.lock = *lock, .limit = limit, .entries_max = entries_max};
    hashmap_init(&l->map, 0);
    TAILQ_INIT(&l->list);
}

void lru_clear(struct lru *l)
{
    while (!TAILQ_EMPTY(&l->list)) {
        lru_remove(l, TAILQ_FIRST(&l->list));
    }
    hashmap_clear(&l->map);
}

void lru_lock(struct lru *l)
{
    l->lock.take(l->lock.context);
}

void lru_unlock(struct lru *l)
{
    l->lock.give(l->lock.context);
}

void *lru_find(struct lru *l, const void *key, size_t key_size)
{
    struct lru_entry **slot = hashmap_find(&l->map, key, key_size);
    return slot ? *slot : NULL;
}

void lru_use(struct lru *l, void *entry)
{
    struct lru_entry *e = entry;
    TAILQ_REMOVE(&l->list, e, use);
    TAILQ_INSERT_HEAD(&l->list, e, use);
}

bool lru_put(struct lru *l, const void *key, size_t key_size, void *entry, size_t bytes)
{
    struct lru_entry *e = entry;
    e->bytes = bytes + key_size;
    if (e->bytes > l->limit) {
        return false;
    }
    while (l->bytes + e->bytes > l->limit || l->entries >= l->entries_max) {
        lru_remove(l, TAILQ_LAST(&l->list, lru_list));
    }
    e->slot = hashmap_put(&l->map, key, key_size, &e, sizeof e);
    if (!e->slot) {
        return false;
    }
    TAILQ_INSERT_HEAD(&l->list, e, use);
    l->bytes += e->bytes;
    l->entries++;
    return true;
}

void lru_remove(struct lru *l, void *entry)
{
    struct lru_entry *e = entry;
    hashmap_remove(&l->map, e->slot);
    TAILQ_REMOVE(&l->list, e, use);
    l->bytes -= e->bytes;
    l->entries--;
    free(e);
}

#define GZIP_QUICK 1
#define GZIP_HARD 9

bool coded_suits(const char *content_type)
{
    return strncmp(content_type, "text/", 5) == 0 || strstr(content_type, "json") != NULL ||
           strstr(content_type, "svg+xml") != NULL || strcmp(content_type, "application/proto") == 0;
}

bool query_pack(enum coding coding, bool hard, bool must, struct buffer *body)
{
    if (body->failed || body->size == 0 || (coding != CODING_GZIP && coding != CODING_ZSTD)) {
        return false;
    }
    size_t bound = deflate_bound(body->size) + 64; /* gzip's bound is less: 5 bytes for each block of 5,000 at worst */
    char *out = malloc(bound);
    size_t n = 0;
    if (out && coding == CODING_GZIP) {
        struct libdeflate_compressor *c = libdeflate_alloc_compressor(hard ? GZIP_HARD : GZIP_QUICK);
        n = c ? libdeflate_gzip_compress(c, body->data, body->size, out, bound) : 0;
        libdeflate_free_compressor(c);
    } else if (out && deflate_pack((const uint8_t *)body->data, body->size, true, (uint8_t *)out, bound, &n, NULL)) {
        n = 0;
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

#define TAG_BYTES 16u

void etag_make(const char *canonical, size_t n, const struct store_epoch *epoch, char out[ETAG_SIZE])
{
    struct hmac_sha256_ctx hmac;
    uint8_t digest[TAG_BYTES];
    hmac_sha256_set_key(&hmac, sizeof epoch->salt, (const uint8_t *)&epoch->salt);
    hmac_sha256_update(&hmac, sizeof epoch->number, (const uint8_t *)&epoch->number);
    hmac_sha256_update(&hmac, n, (const uint8_t *)canonical);
    hmac_sha256_digest(&hmac, sizeof digest, digest);
    out[0] = '"';
    memcpy(hex_put(out + 1, digest, sizeof digest), "\"", sizeof "\"");
}

bool etag_match(const char *if_none_match, const char *etag)
{
    size_t n = strlen(etag);
    const char *at = if_none_match;
    at += strspn(at, " \t");
    if (*at == '*') {
        return at[1 + strspn(at + 1, " \t")] == '\0';
    }
    while (*at != '\0') {
        at += strspn(at, " \t,");
        if (strncmp(at, "W/", 2) == 0) {
            at += 2;
        }
        if (*at != '"') {
            return false;
        }
        const char *end = strchr(at + 1, '"');
        if (!end) {
            return false;
        }
        if ((size_t)(end - at) + 1 == n && memcmp(at, etag, n) == 0) {
            return true;
        }
        at = end + 1;
    }
    return false;
}

void query_code_etag(const char *etag, enum coding coding, char out[ETAG_SIZE])
{
    size_t n = strlen(etag), more = strlen(coding_name(coding));
    char coded[ETAG_SIZE] = "";
    if (coding == CODING_IDENTITY && n < ETAG_SIZE) {
        memcpy(coded, etag, n + 1);
    } else if (n > 1 && n + 1 + more < ETAG_SIZE) {
        memcpy(coded, etag, n - 1);
        coded[n - 1] = '-';
        memcpy(coded + n, coding_name(coding), more);
        memcpy(coded + n + more, "\"", 2);
    }
    memcpy(out, coded, sizeof coded);
}

bool query_match_etag(const char *if_none_match, const char *etag, enum coding wanted, char out[ETAG_SIZE])
{
    bool any = if_none_match[strspn(if_none_match, " \t")] == '*';
    const enum coding order[] = {any ? CODING_IDENTITY : wanted, CODING_IDENTITY, CODING_GZIP, CODING_ZSTD};
    char tag[ETAG_SIZE];
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        query_code_etag(etag, order[i], tag);
        if (tag[0] != '\0' && etag_match(if_none_match, tag)) {
            memcpy(out, tag, sizeof tag);
            return true;
        }
    }
    return false;
}

#define ANSWERS_MOST 4096u /* entries */

struct kept_answer {
    struct lru_entry lru;
    uint64_t generation;
    char tag[ETAG_SIZE]; /* uncoded */
    bool has_body;       /* else only the tag is known */
    size_t body_size;
    struct query_answer as; /* without its body */
    char body[];
};

struct query_answers {
    struct query_answers_use use; /* bytes and entries are the list's */
    struct lru lru;
};

/* What an answer depends on besides the data: every byte of it is compared. */
struct answers_key {
    struct store_scope scope;
    uint8_t http, coded_only, coding;
    char target[LIMIT_QUERY_BYTES]; /* without its NUL */
};

struct query_answers *query_answers_new(size_t limit, const struct query_lock *lock)
{
    struct query_answers *c = calloc(1, sizeof *c);
    if (c) {
        lru_init(&c->lru, limit, ANSWERS_MOST, lock);
    }
    return c;
}

/* Size of the key, or 0 for a target that is too long to have an answer. */
static size_t make_key(const struct query_request *r, struct answers_key *key)
{
    const size_t n = strlen(r->target);
    if (n > sizeof key->target) {
        return 0;
    }
    memset(key, 0, offsetof(struct answers_key, target)); /* padding, too */
    key->scope.all = r->scope.all;
    if (!r->scope.all) {
        key->scope.uid = r->scope.uid;
    }
    key->http = r->http;
    key->coded_only = r->coded_only;
    key->coding = (uint8_t)r->coding;
    memcpy(key->target, r->target, n);
    return offsetof(struct answers_key, target) + n;
}

static struct kept_answer *find_entry(struct query_answers *c, const struct query_request *r)
{
    struct answers_key key;
    const size_t size = make_key(r, &key);
    return size > 0 ? lru_find(&c->lru, &key, size) : NULL;
}

void query_answers_free(struct query_answers *c)
{
    if (c) {
        lru_clear(&c->lru);
    }
    free(c);
}

struct query_answers_use query_answers_measure(struct query_answers *c)
{
    lru_lock(&c->lru);
    struct query_answers_use use = c->use;
    use.bytes = c->lru.bytes;
    use.entries = c->lru.entries;
    lru_unlock(&c->lru);
    return use;
}

/* False if there is no memory for the copy; answer is then untouched. */
static bool copy_answer(const struct kept_answer *e, struct query_answer *answer)
{
    struct query_answer copy = e->as;
    buffer_init(&copy.body, LIMIT_REPORT_BYTES);
    buffer_add(&copy.body, e->body, e->body_size);
    if (copy.body.failed) {
        buffer_done(&copy.body);
        return false;
    }
    *answer = copy;
    return true;
}

/* The answer of an entry that is valid now, or a 304. */
static bool give(const struct kept_answer *e, const struct query_request *r, size_t most, struct query_answer *answer)
{
    char tag[ETAG_SIZE];
    if (r->if_none_match && r->if_none_match[0] != '\0' && query_match_etag(r->if_none_match, e->tag, r->coding, tag)) {
        *answer = e->as;
        buffer_init(&answer->body, 0);
        answer->http_status = 304;
        memcpy(answer->etag, tag, sizeof tag);
        return true;
    }
    return e->has_body && e->body_size <= most && copy_answer(e, answer);
}

bool query_answers_find(struct query_answers *c, const struct query_request *r, struct query_answer *answer)
{
    bool found = false;
    if (r->generation % 2 != 0) {
        return false;
    }
    lru_lock(&c->lru);
    struct kept_answer *e = find_entry(c, r);
    if (e && e->generation == r->generation) {
        found = give(e, r, LIMIT_ANSWER_AT_ONCE, answer);
    }
    if (found) {
        lru_use(&c->lru, e);
        c->use.at_once++;
    }
    lru_unlock(&c->lru);
    return found;
}

bool answers_take(struct query_answers *c, const struct query_request *r, const char *tag, struct query_answer *answer)
{
    bool found = false;
    lru_lock(&c->lru);
    struct kept_answer *e = find_entry(c, r);
    if (e && e->has_body && strcmp(e->tag, tag) == 0) {
        found = copy_answer(e, answer);
    }
    if (found) {
        e->generation = r->generation;
        lru_use(&c->lru, e);
        c->use.after_look++;
    }
    lru_unlock(&c->lru);
    return found;
}

void answers_put(struct query_answers *c, const struct query_request *r, const char *tag,
                 const struct query_answer *answer)
{
    struct answers_key key;
    const size_t size = make_key(r, &key);
    const bool keeps = answer->http_status == 200 && answer->body.size <= LIMIT_ANSWER_KEPT;
    const size_t body = keeps ? answer->body.size : 0;
    struct kept_answer *fresh = size > 0 && strlen(tag) < ETAG_SIZE ? malloc(sizeof *fresh + body) : NULL;
    if (!fresh) {
        return;
    }
    *fresh = (struct kept_answer){.generation = r->generation, .has_body = keeps, .body_size = body, .as = *answer};
    memcpy(fresh->tag, tag, strlen(tag) + 1);
    if (body > 0) {
        memcpy(fresh->body, answer->body.data, body);
    }
    fresh->as.http_status = 200;
    buffer_init(&fresh->as.body, 0);
    lru_lock(&c->lru);
    c->use.made += answer->http_status == 200;
    struct kept_answer *old = lru_find(&c->lru, &key, size);
    bool kept = false;
    if (old && strcmp(old->tag, tag) == 0 && (old->has_body || !fresh->has_body)) {
        old->generation = r->generation; /* the same answer: what is there is as good */
        lru_use(&c->lru, old);
    } else {
        if (old) {
            lru_remove(&c->lru, old);
        }
        kept = lru_put(&c->lru, &key, size, fresh, sizeof *fresh + fresh->body_size);
    }
    lru_unlock(&c->lru);
    if (!kept) {
        free(fresh);
    }
}
