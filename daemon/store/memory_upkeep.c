/* Removal, verification and other upkeep, by visiting every upload. Nothing is rolled up here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/sum.h"
#include "store/memory.h"

#define DAY (24 * INT64_C(3600000000000))

enum profd_status memory_compact(struct store *base, const struct store_policy *policy, int64_t now,
                                 struct store_progress *progress, struct profd_error *e)
{
    (void)base;
    (void)policy;
    (void)now;
    (void)e;
    *progress = (struct store_progress){.more = false};
    return PROFD_OK;
}

enum profd_status memory_shrink(struct store *base, uint64_t bytes, struct store_progress *progress,
                                struct profd_error *e)
{
    (void)base;
    (void)bytes;
    (void)e;
    *progress = (struct store_progress){.more = false};
    return PROFD_OK;
}

enum profd_status memory_backup_begin(struct store *base, const char *path, struct store_backup **out,
                                      struct profd_error *e)
{
    (void)base;
    (void)out;
    return profd_error_set(e, PROFD_REFUSED, "a store in memory cannot be copied to \"%s\"", path);
}

static bool has_build(const struct memory_upload *u, const char *id)
{
    for (size_t i = 0; i < u->build_count; i++) {
        if (strcmp(u->builds[i].id.text, id) == 0) {
            return true;
        }
    }
    return false;
}

/* Marks a build as removed for its user; the age of its symbols is that of its last use. */
static void remove_build(struct memory_store *s, size_t at)
{
    struct memory_build *b = &s->builds[at];
    for (size_t i = 0; i < s->object_count; i++) {
        if (strcmp(s->objects[i].id.text, b->id.text) == 0 && b->sums.last_seen > s->objects[i].seen) {
            s->objects[i].seen = b->sums.last_seen;
        }
    }
    free(b->name);
    *b = s->builds[--s->build_count];
}

/* Adds up the remaining uploads of each build with an upload that is marked for removal. */
static void sum_up_builds(struct memory_store *s)
{
    for (size_t i = s->build_count; i-- > 0;) {
        struct memory_build *b = &s->builds[i];
        bool touched = false, touched_for_all = false;
        struct build_row old = b->sums;
        for (size_t k = 0; k < s->upload_count; k++) {
            if (s->uploads[k].gone && has_build(&s->uploads[k], b->id.text)) {
                touched_for_all = true;
                touched |= s->uploads[k].uid == b->uid;
            }
        }
        if (touched_for_all) {
            b->epoch_all = s->number;
        }
        if (!touched) {
            continue;
        }
        b->epoch = s->number;
        b->sums = (struct build_row){.uploads = 0};
        for (size_t k = 0; k < s->upload_count; k++) {
            if (!s->uploads[k].gone && s->uploads[k].uid == b->uid) {
                memory_add_sums(b, &s->uploads[k]);
            }
        }
        if (b->sums.uploads == 0) {
            b->sums = old;
            remove_build(s, i);
        }
    }
}

/* Removes the marked uploads. */
static uint64_t remove_gone(struct memory_store *s)
{
    bool saturated = false;
    uint64_t removed = 0;
    size_t kept = 0;
    bool any = false;
    for (size_t i = 0; i < s->upload_count; i++) {
        any |= s->uploads[i].gone;
        removed += s->uploads[i].gone ? s->uploads[i].uploads : 0;
    }
    if (!any) {
        return 0;
    }
    s->list_epoch = ++s->number;
    sum_up_builds(s);
    for (size_t i = 0; i < s->upload_count; i++) {
        struct memory_upload *u = &s->uploads[i];
        if (!u->gone) {
            s->uploads[kept++] = *u;
            continue;
        }
        struct memory_user *user = memory_find_user(s, u->uid);
        if (user) {
            user->epoch = s->number;
        }
        const struct store_amount amount = {u->uploads, u->ticks, u->calls};
        outgoing_amount_add(&s->centre.removed, store_is_tenant(u->uid) ? &amount : &(struct store_amount){0});
        sum_add(&s->retired_uploads, u->uploads, &saturated);
        sum_add(&s->retired_ticks, u->ticks, &saturated);
        sum_add(&s->retired_calls, u->calls, &saturated);
        memory_free_upload(u);
    }
    s->upload_count = kept;
    return removed;
}

static bool is_seen(const struct memory_store *s, const char *id)
{
    for (size_t i = 0; i < s->build_count; i++) {
        if (strcmp(s->builds[i].id.text, id) == 0) {
            return true;
        }
    }
    return false;
}

/* Time of the latest delivery of the build's executables. */
static int64_t last_delivery(const struct memory_store *s, const char *id)
{
    int64_t latest = INT64_MIN;
    for (size_t i = 0; i < s->object_sender_count; i++) {
        const struct memory_object_sender *sender = &s->object_senders[i];
        if (strcmp(s->objects[sender->object].id.text, id) == 0 && sender->received > latest) {
            latest = sender->received;
        }
    }
    return latest;
}

static void remove_unseen_objects(struct memory_store *s, int64_t before)
{
    for (size_t i = s->object_count; i-- > 0;) {
        struct memory_object *o = &s->objects[i];
        o->old = !is_seen(s, o->id.text) && o->seen < before && last_delivery(s, o->id.text) < before;
    }
    for (size_t i = s->object_count; i-- > 0;) {
        if (s->objects[i].old) {
            memory_forget_attestations(s, s->objects[i].id.text);
            memory_remove_object(s, i);
        }
    }
}

static uint64_t content_bytes(const struct memory_store *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->upload_count; i++) {
        bytes += s->uploads[i].gone ? 0 : s->uploads[i].counts_size;
    }
    return bytes;
}

/* Marks the uploads of the oldest day that is over. */
static bool mark_oldest_day(struct memory_store *s, int64_t now)
{
    int64_t oldest = INT64_MAX;
    for (size_t i = 0; i < s->upload_count; i++) {
        if (!s->uploads[i].gone && s->uploads[i].end / DAY < oldest) {
            oldest = s->uploads[i].end / DAY;
        }
    }
    if (oldest >= now / DAY) {
        return false;
    }
    for (size_t i = 0; i < s->upload_count; i++) {
        s->uploads[i].gone |= s->uploads[i].end / DAY == oldest;
    }
    return true;
}

enum profd_status memory_retire(struct store *base, const struct store_policy *policy, int64_t now,
                                struct store_progress *progress, struct profd_error *e)
{
    (void)e;
    struct memory_store *s = memory_self(base);
    int64_t limit = policy->keep_age > 0 && now > policy->keep_age ? (now - policy->keep_age) / DAY : 0;
    for (size_t i = 0; i < s->upload_count; i++) {
        s->uploads[i].gone = s->uploads[i].end / DAY < limit;
    }
    while (policy->keep_bytes > 0 && content_bytes(s) > policy->keep_bytes && mark_oldest_day(s, now)) {
    }
    *progress = (struct store_progress){.uploads = remove_gone(s)};
    if (policy->keep_age > 0) {
        remove_unseen_objects(s, now - policy->keep_age);
    }
    return PROFD_OK;
}

enum profd_status memory_delete_build(struct store *base, const struct store_scope *scope, const char *build_id,
                                      uint64_t *uploads, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    const struct memory_upload *other = NULL;
    bool any = false;
    for (size_t i = 0; i < s->upload_count; i++) {
        struct memory_upload *u = &s->uploads[i];
        u->gone = store_scope_has(scope, u->uid) && strcmp(u->builds[u->program].id.text, build_id) == 0;
        any |= u->gone;
        if (store_scope_has(scope, u->uid) && has_build(u, build_id)) {
            other = u;
        }
    }
    if (!any && other) {
        return profd_error_set(e, PROFD_REFUSED,
                               "build %s is not a program but a library; delete the programs that use it, such as %s",
                               build_id, other->builds[other->program].id.text);
    }
    if (!any) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no build %s has been uploaded", build_id);
    }
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < s->upload_count && status == PROFD_OK; i++) {
        status = s->uploads[i].gone ? memory_withdraw(&s->relay, s->uploads[i].series, e) : PROFD_OK;
    }
    if (status != PROFD_OK) {
        return status;
    }
    if (store_scope_has_tenants(scope)) {
        status = memory_note_deletion(s, build_id, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    *uploads = remove_gone(s);
    for (size_t i = s->object_count; i-- > 0 && !is_seen(s, build_id);) {
        if (strcmp(s->objects[i].id.text, build_id) == 0) {
            memory_forget_attestations(s, build_id);
            memory_remove_object(s, i);
        }
    }
    return PROFD_OK;
}

enum profd_status memory_verify(struct store *base, struct store_cursor *cursor,
                                void (*mismatch)(void *context, const char *sentence), void *context,
                                uint64_t *uploads_checked, struct profd_error *e)
{
    (void)e;
    const struct memory_store *s = memory_self(base);
    uint64_t uploads = s->retired_uploads, ticks = s->retired_ticks, calls = s->retired_calls;
    bool saturated = false;
    char sentence[160];
    for (size_t i = 0; i < s->upload_count; i++) {
        sum_add(&uploads, s->uploads[i].uploads, &saturated);
        sum_add(&ticks, s->uploads[i].ticks, &saturated);
        sum_add(&calls, s->uploads[i].calls, &saturated);
    }
    if (uploads != s->uploads_total || ticks != s->ticks || calls != s->calls) {
        snprintf(sentence, sizeof sentence, "all: accepted %" PRIu64 " uploads, %" PRIu64 " are stored or retired",
                 s->uploads_total, uploads);
        mismatch(context, sentence);
    }
    memory_verify_segments(memory_self(base), mismatch, context);
    memory_verify_arrivals(s, mismatch, context);
    *uploads_checked = s->upload_count;
    *cursor = (struct store_cursor){.done = true};
    return PROFD_OK;
}

enum profd_status memory_remove_ids(struct store *base, int64_t before, struct profd_error *e)
{
    (void)e;
    struct memory_store *s = memory_self(base);
    size_t kept = 0;
    for (size_t i = 0; i < s->sender_count; i++) {
        if (s->senders[i]->seen / INT64_C(1000000000) < before / INT64_C(1000000000)) {
            free(s->senders[i]);
        } else {
            s->senders[kept++] = s->senders[i];
        }
    }
    s->sender_count = kept;
    memory_remove_instances(s, before + STORE_ENDED_BEFORE);
    return PROFD_OK;
}
