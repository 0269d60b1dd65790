#include "query/answers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proto/limits.h"
#include "query/etag.h"

#define ANSWERS_SLOTS 4096u /* lists of entries by hash, and as many entries at most */

struct entry {
    struct entry *next;          /* of the same slot */
    struct entry *newer, *older; /* by last use */
    size_t bytes;                /* of the block: this, the key, the body */
    struct store_scope scope;
    bool http, coded_only;
    enum coding wanted;
    const char *target;
    uint64_t generation;
    char tag[ETAG_SIZE]; /* uncoded */
    bool has_body;       /* else only the tag is known */
    const char *body;
    size_t body_size;
    struct query_answer as; /* without its body */
};

struct query_answers {
    size_t limit;
    struct query_lock lock;
    uint64_t seed; /* of the hash: nobody can choose targets that meet in one slot */
    struct query_answers_use use;
    struct entry *newest, *oldest;
    struct entry *slots[ANSWERS_SLOTS];
};

struct query_answers *query_answers_new(size_t limit, const struct query_lock *lock)
{
    struct query_answers *c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->limit = limit;
        c->lock = *lock;
        (void)!getrandom(&c->seed, sizeof c->seed, GRND_NONBLOCK); /* without it only slower under attack */
    }
    return c;
}

static bool is_of(const struct entry *e, const struct query_request *r)
{
    return e->scope.all == r->scope.all && (e->scope.all || e->scope.uid == r->scope.uid) && e->http == r->http &&
           e->wanted == r->coding && e->coded_only == r->coded_only && strcmp(e->target, r->target) == 0;
}

static struct entry **find_slot(struct query_answers *c, const struct query_request *r)
{
    uint64_t h = c->seed ^ (r->scope.all ? UINT64_MAX : r->scope.uid);
    for (const char *p = r->target; *p != '\0'; p++) {
        h = (h ^ (unsigned char)*p) * 1099511628211u;
        h ^= h >> 29;
    }
    struct entry **at = &c->slots[(h ^ h >> 32) % ANSWERS_SLOTS];
    while (*at != NULL && !is_of(*at, r)) {
        at = &(*at)->next;
    }
    return at;
}

static void unlink_use(struct query_answers *c, struct entry *e)
{
    *(e->newer != NULL ? &e->newer->older : &c->newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(struct query_answers *c, struct entry *e)
{
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest != NULL ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void remove_entry(struct query_answers *c, struct entry *e)
{
    const struct query_request key = {
        .target = e->target, .scope = e->scope, .http = e->http, .coding = e->wanted, .coded_only = e->coded_only};
    *find_slot(c, &key) = e->next;
    unlink_use(c, e);
    c->use.bytes -= e->bytes;
    c->use.entries--;
    free(e);
}

void query_answers_free(struct query_answers *c)
{
    while (c != NULL && c->oldest != NULL) {
        remove_entry(c, c->oldest);
    }
    free(c);
}

struct query_answers_use query_answers_measure(struct query_answers *c)
{
    c->lock.take(c->lock.context);
    struct query_answers_use use = c->use;
    c->lock.give(c->lock.context);
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

static void use_entry(struct query_answers *c, struct entry *e)
{
    if (c->newest != e) {
        unlink_use(c, e);
        link_newest(c, e);
    }
}

bool query_answers_find(struct query_answers *c, const struct query_request *r, struct query_answer *answer)
{
    char tag[ETAG_SIZE];
    bool found = false;
    if (r->generation % 2 != 0) {
        return false;
    }
    c->lock.take(c->lock.context);
    struct entry *e = *find_slot(c, r);
    if (e != NULL && e->generation == r->generation) {
        if (r->if_none_match != NULL && r->if_none_match[0] != '\0' &&
            etag_match_coded(r->if_none_match, e->tag, r->coding, tag)) {
            *answer = e->as;
            buffer_init(&answer->body, 0);
            answer->http_status = 304;
            memcpy(answer->etag, tag, sizeof tag);
            found = true;
        } else if (e->has_body && e->body_size <= LIMIT_ANSWER_AT_ONCE) {
            found = copy_answer(e, answer);
        }
    }
    if (found) {
        use_entry(c, e);
        c->use.at_once++;
    }
    c->lock.give(c->lock.context);
    return found;
}

bool answers_take(struct query_answers *c, const struct query_request *r, const char *tag, struct query_answer *answer)
{
    bool found = false;
    c->lock.take(c->lock.context);
    struct entry *e = *find_slot(c, r);
    if (e != NULL && e->has_body && strcmp(e->tag, tag) == 0) {
        found = copy_answer(e, answer);
    }
    if (found) {
        e->generation = r->generation;
        use_entry(c, e);
        c->use.after_look++;
    }
    c->lock.give(c->lock.context);
    return found;
}

/* The block of a new entry; its texts lie behind it. */
static struct entry *make_entry(const struct query_request *r, const char *tag, const struct query_answer *answer)
{
    bool keeps = answer->http_status == 200 && answer->body.size <= LIMIT_ANSWER_KEPT;
    size_t key = strlen(r->target) + 1, body = keeps ? answer->body.size : 0, bytes = sizeof(struct entry) + key + body;
    struct entry *e = malloc(bytes);
    if (e == NULL) {
        return NULL;
    }
    char *text = (char *)(e + 1);
    *e = (struct entry){.bytes = bytes,
                        .scope = r->scope,
                        .http = r->http,
                        .coded_only = r->coded_only,
                        .wanted = r->coding,
                        .target = text,
                        .generation = r->generation,
                        .has_body = keeps,
                        .body = text + key,
                        .body_size = body,
                        .as = *answer};
    memcpy(text, r->target, key);
    memcpy(e->tag, tag, strlen(tag) + 1);
    if (body > 0) {
        memcpy(text + key, answer->body.data, body);
    }
    e->as.http_status = 200;
    buffer_init(&e->as.body, 0);
    return e;
}

void answers_put(struct query_answers *c, const struct query_request *r, const char *tag,
                 const struct query_answer *answer)
{
    struct entry *fresh = strlen(tag) < ETAG_SIZE ? make_entry(r, tag, answer) : NULL, *old = NULL;
    if (fresh == NULL) {
        return;
    }
    c->lock.take(c->lock.context);
    c->use.made += answer->http_status == 200;
    old = *find_slot(c, r);
    if (old != NULL && strcmp(old->tag, tag) == 0 && (old->has_body || !fresh->has_body)) {
        old->generation = r->generation; /* the same answer: what is there is as good */
        use_entry(c, old);
        c->lock.give(c->lock.context);
        free(fresh);
        return;
    }
    if (old != NULL) {
        remove_entry(c, old);
    }
    while (c->use.entries > 0 && (c->use.bytes + fresh->bytes > c->limit || c->use.entries >= ANSWERS_SLOTS)) {
        remove_entry(c, c->oldest);
    }
    fresh->next = NULL;
    *find_slot(c, r) = fresh;
    link_newest(c, fresh);
    c->use.bytes += fresh->bytes;
    c->use.entries++;
    c->lock.give(c->lock.context);
}
