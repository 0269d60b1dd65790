#include "query/answers.h"

#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "query/etag.h"
#include "query/lru.h"

#define ANSWERS_MOST 4096u /* entries */

struct entry {
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
    if (c != NULL) {
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

static struct entry *find_entry(struct query_answers *c, const struct query_request *r)
{
    struct answers_key key;
    const size_t size = make_key(r, &key);
    return size > 0 ? lru_find(&c->lru, &key, size) : NULL;
}

void query_answers_free(struct query_answers *c)
{
    if (c != NULL) {
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
static bool copy_answer(const struct entry *e, struct query_answer *answer)
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
static bool give(const struct entry *e, const struct query_request *r, size_t most, struct query_answer *answer)
{
    char tag[ETAG_SIZE];
    if (r->if_none_match != NULL && r->if_none_match[0] != '\0' &&
        etag_match_coded(r->if_none_match, e->tag, r->coding, tag)) {
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
    struct entry *e = find_entry(c, r);
    if (e != NULL && e->generation == r->generation) {
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
    struct entry *e = find_entry(c, r);
    if (e != NULL && e->has_body && strcmp(e->tag, tag) == 0) {
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

static struct entry *make_entry(const struct query_request *r, const char *tag, const struct query_answer *answer)
{
    bool keeps = answer->http_status == 200 && answer->body.size <= LIMIT_ANSWER_KEPT;
    size_t body = keeps ? answer->body.size : 0;
    struct entry *e = malloc(sizeof *e + body);
    if (e == NULL) {
        return NULL;
    }
    *e = (struct entry){.generation = r->generation, .has_body = keeps, .body_size = body, .as = *answer};
    memcpy(e->tag, tag, strlen(tag) + 1);
    if (body > 0) {
        memcpy(e->body, answer->body.data, body);
    }
    e->as.http_status = 200;
    buffer_init(&e->as.body, 0);
    return e;
}

void answers_put(struct query_answers *c, const struct query_request *r, const char *tag,
                 const struct query_answer *answer)
{
    struct answers_key key;
    const size_t size = make_key(r, &key);
    struct entry *fresh = size > 0 && strlen(tag) < ETAG_SIZE ? make_entry(r, tag, answer) : NULL;
    if (fresh == NULL) {
        return;
    }
    lru_lock(&c->lru);
    c->use.made += answer->http_status == 200;
    struct entry *old = lru_find(&c->lru, &key, size);
    bool kept = false;
    if (old != NULL && strcmp(old->tag, tag) == 0 && (old->has_body || !fresh->has_body)) {
        old->generation = r->generation; /* the same answer: what is there is as good */
        lru_use(&c->lru, old);
    } else {
        if (old != NULL) {
            lru_remove(&c->lru, old);
        }
        kept = lru_put(&c->lru, &key, size, fresh, sizeof *fresh + fresh->body_size);
    }
    lru_unlock(&c->lru);
    if (!kept) {
        free(fresh);
    }
}
