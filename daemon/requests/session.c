#include "requests/session.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define ASKED_MAX 4096

/* Jobs between two SYNCs. The last era is the current one and has no SYNC yet. */
struct session_era {
    size_t jobs; /* begun in it and not ended */
    bool synced, failed;
    uint32_t tag;
};

struct session {
    struct session_era *eras;
    size_t first, count, capacity; /* eras[first … first + count) */
    uint64_t number;               /* of eras[first] */
    void *asked;                   /* a tree of strings */
    size_t asked_count;
    struct live_process *process;
};

/* Ensures capacity for one more era. */
static bool session_grow(struct session *s)
{
    struct session_era *eras;
    size_t capacity;

    if (s->first + s->count < s->capacity) {
        return true;
    }
    if (s->first) {
        memmove(s->eras, s->eras + s->first, s->count * sizeof *s->eras);
        s->first = 0;
        return true;
    }
    capacity = s->capacity ? 2 * s->capacity : 2;
    eras = realloc(s->eras, capacity * sizeof *eras);
    if (!eras) {
        return false;
    }
    s->eras = eras;
    s->capacity = capacity;
    return true;
}

struct session *session_new(void)
{
    struct session *s = calloc(1, sizeof *s);

    if (!s || !session_grow(s)) {
        free(s);
        return NULL;
    }
    s->eras[0] = (struct session_era){0};
    s->count = 1;
    return s;
}

void session_free(struct session *s)
{
    if (!s) {
        return;
    }
    tdestroy(s->asked, free);
    free(s->eras);
    free(s);
}

uint64_t session_begin(struct session *s)
{
    s->eras[s->first + s->count - 1].jobs++;
    return s->number + s->count - 1;
}

void session_end(struct session *s, uint64_t job)
{
    s->eras[s->first + (job - s->number)].jobs--;
}

void session_fail(struct session *s, uint64_t job)
{
    s->eras[s->first + (job - s->number)].failed = true;
    session_end(s, job);
}

struct live_process **session_get_process(struct session *s)
{
    return &s->process;
}

bool session_sync(struct session *s, uint32_t tag)
{
    if (!session_grow(s)) {
        return false;
    }
    s->eras[s->first + s->count - 1].synced = true;
    s->eras[s->first + s->count - 1].tag = tag;
    s->eras[s->first + s->count] = (struct session_era){0};
    s->count++;
    return true;
}

bool session_take_granted(struct session *s, uint32_t *tag, bool *failed)
{
    struct session_era *era = &s->eras[s->first];

    if (era->jobs || !era->synced) {
        return false;
    }
    *tag = era->tag;
    *failed = era->failed;
    s->first++;
    s->count--;
    s->number++;
    return true;
}

static int session_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

bool session_ask(struct session *s, const struct buildid *id)
{
    char *copy;
    void *at;

    if (s->asked_count >= ASKED_MAX || tfind(id->text, &s->asked, session_compare)) {
        return false;
    }
    copy = strdup(id->text);
    if (!copy) {
        return false;
    }
    at = tsearch(copy, &s->asked, session_compare);
    if (!at) {
        free(copy);
        return false;
    }
    s->asked_count++;
    return true;
}

void session_answered(struct session *s, const struct buildid *id)
{
    char *const *at = tfind(id->text, &s->asked, session_compare);
    char *copy = at ? *at : NULL;

    if (!copy) {
        return;
    }
    tdelete(id->text, &s->asked, session_compare);
    free(copy);
    s->asked_count--;
}
