#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/sum.h"
#include "proto/limits.h"
#include "store/labels.h"
#include "store/memory.h"

static struct memory_sender *find_sender(struct memory_store *s, const struct store_upload *u)
{
    /* From the end, because the latest senders are looked up most. */
    for (size_t i = s->sender_count; i-- > 0;) {
        if (s->senders[i]->uid == u->uid && memcmp(s->senders[i]->sender, u->sender, sizeof u->sender) == 0 &&
            strcmp(s->senders[i]->host, u->host) == 0) {
            return s->senders[i];
        }
    }
    return NULL;
}

enum profd_status memory_has_upload(struct store *base, const struct store_upload *upload, bool *counted,
                                    struct profd_error *e)
{
    (void)e;
    const struct memory_sender *sender = find_sender(memory_self(base), upload);
    *counted = sender && sequence_holds(&sender->set, upload->sequence);
    return PROFD_OK;
}

static struct memory_build *find_build(struct memory_store *s, const char *build_id, uint32_t uid)
{
    for (size_t i = 0; i < s->build_count; i++) {
        if (s->builds[i].uid == uid && strcmp(s->builds[i].id.text, build_id) == 0) {
            return &s->builds[i];
        }
    }
    return NULL;
}

bool memory_same_series(const struct memory_upload *a, const struct memory_upload *b)
{
    if (a->uid != b->uid || a->program != b->program || a->build_count != b->build_count ||
        a->labels_size != b->labels_size || (a->labels_size > 0 && memcmp(a->labels, b->labels, a->labels_size) != 0)) {
        return false;
    }
    for (size_t i = 0; i < a->build_count; i++) {
        if (strcmp(a->builds[i].id.text, b->builds[i].id.text) != 0) {
            return false;
        }
    }
    return true;
}

void memory_free_upload(struct memory_upload *c)
{
    free(c->builds);
    free(c->shares);
    free(c->label_list);
    free(c->labels);
    free(c->counts);
    free(c->spread);
}

static void point_to_labels(struct memory_upload *c)
{
    const char *p = c->labels;
    while (labels_next(&p, c->labels + c->labels_size, &c->label_list[c->label_count])) {
        c->label_count++;
    }
}

/* Copies an upload, so that nothing can fail afterwards. */
static enum profd_status copy_upload(const struct store_upload *u, struct memory_upload *c, struct profd_error *e)
{
    struct buffer labels;
    buffer_init(&labels, 2 * LIMIT_LABEL_BYTES + 2 * LIMIT_LABELS);
    labels_encode(u->labels, u->label_count, &labels);
    *c = (struct memory_upload){.uploads = 1,
                                .uid = u->uid,
                                .inexact = u->inexact,
                                .processes_started = u->processes_started,
                                .program = u->program,
                                .group = u->group,
                                .start = u->start,
                                .end = u->end,
                                .ticks = u->ticks,
                                .calls = u->calls,
                                .builds = calloc(u->build_count, sizeof *c->builds),
                                .shares = calloc(u->build_count, sizeof *c->shares),
                                .label_list = calloc(u->label_count + 1, sizeof *c->label_list),
                                .build_count = u->build_count,
                                .labels = malloc(labels.size + 1),
                                .labels_size = labels.size,
                                .counts = malloc(u->counts_size + 1),
                                .counts_size = u->counts_size};
    bool good = c->builds && c->shares && c->label_list && c->labels && c->counts && !labels.failed;
    if (good) {
        memcpy(c->host, u->host, sizeof c->host);
        if (u->build_count > 0) { /* no new counts of a live process */
            memcpy(c->builds, u->builds, u->build_count * sizeof *c->builds);
        }
        for (size_t i = 0; i < u->build_count; i++) {
            c->shares[i] = (struct share){.nanoseconds = u->builds[i].nanoseconds, .calls = u->builds[i].calls};
        }
        if (labels.size > 0) {
            memcpy(c->labels, labels.data, labels.size);
        }
        if (u->counts_size > 0) {
            memcpy(c->counts, u->counts, u->counts_size);
        }
        point_to_labels(c);
    } else {
        memory_free_upload(c);
    }
    buffer_done(&labels);
    return good ? PROFD_OK : profd_no_memory(e);
}

void memory_spares_done(struct memory_spares *p)
{
    for (size_t i = 0; p->copies && i < p->n; i++) {
        memory_free_upload(&p->copies[i]);
    }
    for (size_t i = 0; p->senders && i < p->n; i++) {
        free(p->senders[i]);
    }
    for (size_t i = 0; p->names && i < p->name_count; i++) {
        free(p->names[i]);
    }
    memory_staged_done(p->staged, p->n);
    free(p->copies);
    free(p->senders);
    free(p->names);
}

enum profd_status memory_spares_take(struct memory_store *s, const struct store_upload *uploads, size_t n,
                                     struct memory_spares *p, struct profd_error *e)
{
    size_t builds = 0, k = 0;
    for (size_t i = 0; i < n; i++) {
        builds += uploads[i].build_count;
    }
    *p = (struct memory_spares){.copies = calloc(n, sizeof *p->copies),
                                .senders = calloc(n, sizeof(struct memory_sender *)),
                                .names = calloc(builds, sizeof(char *)),
                                .name_count = builds,
                                .n = n};
    if (!p->copies || !p->senders || !p->names) {
        return profd_no_memory(e);
    }
    enum profd_status status =
        memory_reserve(&s->uploads, s->upload_count, &s->upload_capacity, n, sizeof *s->uploads, e);
    if (status == PROFD_OK) {
        status =
            memory_reserve(&s->senders, s->sender_count, &s->sender_capacity, n, sizeof(struct memory_sender *), e);
    }
    if (status == PROFD_OK) {
        status = memory_reserve(&s->builds, s->build_count, &s->build_capacity, builds, sizeof *s->builds, e);
    }
    if (status == PROFD_OK) {
        status = memory_reserve(&s->users, s->user_count, &s->user_capacity, n, sizeof *s->users, e);
    }
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        status = copy_upload(&uploads[i], &p->copies[i], e);
        p->senders[i] = malloc(sizeof **p->senders);
        if (!p->senders[i]) {
            status = profd_no_memory(e);
        }
        for (size_t b = 0; status == PROFD_OK && b < uploads[i].build_count; b++) {
            if (!(p->names[k++] = strdup(uploads[i].builds[b].name))) {
                status = profd_no_memory(e);
            }
        }
    }
    return status == PROFD_OK ? memory_stage(&s->relay, uploads, n, &p->staged, e) : status;
}

static enum store_outcome take_id(struct memory_store *s, const struct store_upload *u, struct memory_sender **spare)
{
    struct memory_sender *sender = find_sender(s, u);
    if (!sender) {
        sender = *spare;
        *spare = NULL;
        *sender = (struct memory_sender){.uid = u->uid};
        memcpy(sender->host, u->host, sizeof sender->host);
        memcpy(sender->sender, u->sender, sizeof sender->sender);
        s->senders[s->sender_count++] = sender;
    }
    if (u->received > sender->seen) {
        sender->seen = u->received;
    }
    switch (sequence_add(&sender->set, u->sequence)) {
    case SEQUENCE_NEW:
        return STORE_STORED;
    case SEQUENCE_SEEN:
        return STORE_DUPLICATE;
    case SEQUENCE_FULL:
        break;
    }
    return STORE_TOO_MANY_GAPS;
}

void memory_add_sums(struct memory_build *b, const struct memory_upload *u)
{
    struct build_row *r = &b->sums;
    for (size_t i = 0; i < u->build_count; i++) {
        bool saturated = false;
        if (strcmp(u->builds[i].id.text, b->id.text) != 0) {
            continue;
        }
        if (r->uploads == 0 || u->start < r->first_seen) {
            r->first_seen = u->start;
        }
        if (r->uploads == 0 || u->end > r->last_seen) {
            r->last_seen = u->end;
        }
        sum_add(&r->uploads, u->uploads, &saturated);
        sum_add(&r->processes, u->processes_started, &saturated);
        sum_add(&r->nanoseconds, u->shares[i].nanoseconds, &saturated);
        sum_add(&r->calls, u->shares[i].calls, &saturated);
        r->inexact |= u->inexact | (saturated ? (uint32_t)INEXACT_SATURATED : 0);
        r->is_program |= i == u->program;
    }
}

/* True if the build at i occurs again later in the list; it is counted there, once for all its places. */
static bool comes_again(const struct memory_upload *u, size_t i)
{
    for (size_t k = i + 1; k < u->build_count; k++) {
        if (strcmp(u->builds[k].id.text, u->builds[i].id.text) == 0) {
            return true;
        }
    }
    return false;
}

void memory_put_upload(struct memory_store *s, const struct store_upload *u, struct memory_upload *copy, char **names)
{
    bool saturated = false;
    copy->number = ++s->number;
    for (size_t i = 0; i < u->build_count; i++) {
        struct memory_build *b = find_build(s, u->builds[i].id.text, u->uid);
        if (!b) {
            b = &s->builds[s->build_count++];
            *b = (struct memory_build){.id = u->builds[i].id, .uid = u->uid, .name = names[i], .added = s->number};
            names[i] = NULL;
        }
        b->epoch = s->number;
        if (!comes_again(copy, i)) {
            memory_add_sums(b, copy);
        }
        copy->builds[i] = (struct store_build){.id = u->builds[i].id, .name = b->name};
    }
    struct memory_user *user = memory_find_user(s, u->uid);
    if (!user) {
        user = &s->users[s->user_count++];
        user->uid = u->uid;
    }
    user->epoch = s->list_epoch = s->number;
    sum_add(&s->uploads_total, copy->uploads, &saturated);
    sum_add(&s->ticks, u->ticks, &saturated);
    sum_add(&s->calls, u->calls, &saturated);
    for (size_t i = 0; i < s->upload_count && copy->series == 0; i++) {
        if (memory_same_series(&s->uploads[i], copy)) {
            copy->series = s->uploads[i].series;
        }
    }
    if (copy->series == 0) {
        copy->series = ++s->series;
    }
    s->uploads[s->upload_count++] = *copy;
    *copy = (struct memory_upload){.number = 0}; /* owned by the store now */
}

void memory_level_epochs(struct memory_store *s, uint64_t before)
{
    for (size_t i = 0; i < s->build_count; i++) {
        if (s->builds[i].epoch > before) {
            s->builds[i].epoch = s->number;
        }
    }
    for (size_t i = 0; i < s->user_count; i++) {
        if (s->users[i].epoch > before) {
            s->users[i].epoch = s->number;
        }
    }
}

enum profd_status memory_put_uploads(struct store *base, const struct store_upload *uploads, size_t n,
                                     enum store_outcome *outcomes, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    struct memory_spares spares;
    size_t names = 0;
    uint64_t before = s->number;
    enum profd_status status = memory_spares_take(s, uploads, n, &spares, e);
    for (size_t i = 0; status == PROFD_OK && i < n; i++) {
        outcomes[i] = take_id(s, &uploads[i], &spares.senders[i]);
        if (outcomes[i] == STORE_STORED) {
            memory_put_upload(s, &uploads[i], &spares.copies[i], spares.names + names);
            if (spares.staged) {
                memory_forward(&s->relay, &spares.staged[i], s->uploads[s->upload_count - 1].series, 1, &uploads[i], 0);
            }
        }
        names += uploads[i].build_count;
    }
    if (status == PROFD_OK) {
        memory_level_epochs(s, before);
    }
    memory_spares_done(&spares);
    return status;
}
