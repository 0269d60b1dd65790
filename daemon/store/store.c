#include "store/store.h"

#include <string.h>

#include "core/rollup.h"
#include "proto/limits.h"
#include "store/intern.h"
#include "store/sequence.h"
#include "store/store_ops.h"

_Static_assert(STORE_ID_RANGES == SEQUENCE_RANGES, "store.h promises what sequence.h keeps");
_Static_assert(LIMIT_ID_DAYS > LIMIT_SPOOL_DAYS, "an id must outlive every spool that may still deliver it");
_Static_assert(LIMIT_ID_DAYS >= STORE_ENDED_DAYS, "one time tells of both");

static enum profd_status check_writable(const struct store *s, struct profd_error *e)
{
    if (s->ops->version != STORE_OPS_VERSION)
        return profd_error_set(e, PROFD_INTERNAL, "the engine's table of verbs has version %u, expected %u",
                               s->ops->version, (unsigned)STORE_OPS_VERSION);
    if (!s->writable)
        return profd_error_set(e, PROFD_INTERNAL, "this handle of the store only reads");
    return PROFD_OK;
}

static enum profd_status check_upload(const struct store_upload *u, struct profd_error *e)
{
    if (u->program >= u->build_count)
        return profd_error_set(e, PROFD_INTERNAL, "program %u is not one of the upload's %zu builds", u->program,
                               u->build_count);
    if (u->start > u->end || u->start < 0)
        return profd_error_set(e, PROFD_INTERNAL, "an upload's window ends before it starts");
    if (u->group >= ROLLUP_GROUPS)
        return profd_error_set(e, PROFD_INTERNAL, "an upload of group %u; there are %u", u->group, ROLLUP_GROUPS);
    return PROFD_OK;
}

enum profd_status store_put_uploads(struct store *s, const struct store_upload *uploads, size_t n,
                                    enum store_outcome *outcomes, struct profd_error *e)
{
    enum profd_status status = check_writable(s, e);
    if (status != PROFD_OK || n == 0)
        return status;
    for (size_t i = 0; i < n && status == PROFD_OK; i++)
        status = uploads[i].sequence > 0
                     ? check_upload(&uploads[i], e)
                     : profd_error_set(e, PROFD_INTERNAL, "an upload's sequence is 0; sequences begin with 1");
    if (status != PROFD_OK)
        return status;
    return s->ops->put_uploads(s, uploads, n, outcomes, e);
}

/* No instance twice. */
static enum profd_status check_instances(const struct store_harvest *harvests, size_t n, struct profd_error *e)
{
    struct intern seen;
    enum profd_status status = PROFD_OK;
    intern_init(&seen, 0);
    for (size_t i = 0; i < n && n > 1 && status == PROFD_OK; i++) {
        uint8_t key[STORE_INSTANCE_SIZE + sizeof(uint32_t)];
        memcpy(key, harvests[i].instance, STORE_INSTANCE_SIZE);
        memcpy(key + STORE_INSTANCE_SIZE, &harvests[i].upload.uid, sizeof(uint32_t));
        if (intern_find(&seen, key, sizeof key))
            status =
                profd_error_set(e, PROFD_INTERNAL, "harvest %zu is of an instance that stands in the list already", i);
        else if (!intern_put(&seen, key, sizeof key, "", 1))
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to look at %zu harvests", n);
    }
    intern_clear(&seen);
    return status;
}

enum profd_status store_put_harvests(struct store *s, const struct store_harvest *harvests, size_t n,
                                     enum store_harvest_outcome *outcomes, struct profd_error *e)
{
    enum profd_status status = check_writable(s, e);
    if (status != PROFD_OK || n == 0)
        return status;
    for (size_t i = 0; i < n && status == PROFD_OK; i++)
        status = harvests[i].upload.counts_size > 0 ? check_upload(&harvests[i].upload, e) : PROFD_OK;
    if (status == PROFD_OK)
        status = check_instances(harvests, n, e);
    return status == PROFD_OK ? s->ops->put_harvests(s, harvests, n, outcomes, e) : status;
}

enum profd_status store_get_instance(struct store *s, uint32_t uid, const uint8_t instance[STORE_INSTANCE_SIZE],
                                     uint64_t *generation, uint8_t **snapshot, size_t *size, struct profd_error *e)
{
    return s->ops->get_instance(s, uid, instance, generation, snapshot, size, e);
}

enum profd_status store_each_instance(struct store *s, bool (*each)(void *context, const struct store_instance *i),
                                      void *context, struct profd_error *e)
{
    return s->ops->each_instance(s, each, context, e);
}

enum profd_status store_has_upload(struct store *s, const struct store_upload *upload, bool *counted,
                                   struct profd_error *e)
{
    return s->ops->has_upload(s, upload, counted, e);
}

enum profd_status store_put_object(struct store *s, const struct store_object *object, struct profd_error *e)
{
    enum profd_status status = check_writable(s, e);
    return status != PROFD_OK ? status : s->ops->put_object(s, object, e);
}

enum profd_status store_has_object(struct store *s, uint32_t uid, const char *build_id, bool *known,
                                   struct profd_error *e)
{
    return s->ops->has_object(s, uid, build_id, known, e);
}

enum profd_status store_get_object(struct store *s, const uint32_t *uids, size_t uid_count, const char *build_id,
                                   uint8_t **bytes, size_t *size, uint32_t *variants, struct profd_error *e)
{
    return s->ops->get_object(s, uids, uid_count, build_id, bytes, size, variants, e);
}

enum profd_status store_get_bounds(struct store *s, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                   size_t *size, struct profd_error *e)
{
    return s->ops->get_bounds(s, uid, build_id, bytes, size, e);
}

/* Lower case of an ASCII text, so that ids pasted from other tools are found. */
static void fold_case(const char *text, char *out)
{
    size_t n = strlen(text);
    for (size_t i = 0; i <= n; i++)
        out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
}

enum profd_status store_find_build(struct store *s, const struct store_scope *scope, const char *text,
                                   struct buildid *id, struct profd_error *e)
{
    struct buildid found[2];
    size_t count = 0;
    char prefix[BUILDID_TEXT_SIZE];
    size_t n = strlen(text);
    if (n >= sizeof prefix)
        return profd_error_set(e, PROFD_REFUSED, "a build-id has at most %d characters, this has %zu",
                               BUILDID_TEXT_SIZE - 1, n);
    fold_case(text, prefix);
    if (n > 0) {
        enum profd_status status = s->ops->find_builds(s, scope, prefix, true, found, &count, e);
        if (status != PROFD_OK)
            return status;
    }
    if (count == 0) {
        if (!buildid_prefix_valid(prefix, n))
            return profd_error_set(e, PROFD_REFUSED,
                                   "\"%s\" is neither a build-id nor a prefix of at least 4 of its characters", text);
        enum profd_status status = s->ops->find_builds(s, scope, prefix, false, found, &count, e);
        if (status != PROFD_OK)
            return status;
    }
    if (count == 0)
        return profd_error_set(e, PROFD_NOT_FOUND, "no build \"%s\" has been uploaded", text);
    if (count > 1)
        return profd_error_set(e, PROFD_AMBIGUOUS, "\"%s\" begins several build-ids, among them %s and %s", text,
                               found[0].text, found[1].text);
    *id = found[0];
    return PROFD_OK;
}

enum profd_status store_each_build(struct store *s, const struct store_scope *scope, const char *after, size_t limit,
                                   bool (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e)
{
    return limit == 0 ? PROFD_OK : s->ops->each_build(s, scope, after, limit, each, context, e);
}

enum profd_status store_get_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                  void (*each)(void *context, const struct build_row *row), void *context,
                                  struct profd_error *e)
{
    return s->ops->get_build(s, scope, build_id, each, context, e);
}

enum profd_status store_each_label(struct store *s, const struct store_scope *scope, const char *build_id,
                                   bool (*each)(void *context, const struct label_row *row), void *context,
                                   struct profd_error *e)
{
    return s->ops->each_label(s, scope, build_id, each, context, e);
}

enum profd_status store_each_companion(struct store *s, const struct store_scope *scope, const char *build_id,
                                       bool (*each)(void *context, const char *companion, const char *name),
                                       void *context, struct profd_error *e)
{
    return s->ops->each_companion(s, scope, build_id, each, context, e);
}

enum profd_status store_each_upload(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    enum profd_status (*each)(void *context, const struct store_row *row,
                                                              struct profd_error *e),
                                    void *context, struct profd_error *e)
{
    return s->ops->each_upload(s, scope, filter, each, context, e);
}

enum profd_status store_epoch(struct store *s, const struct store_scope *scope, const char *build_id, uint64_t *epoch,
                              struct profd_error *e)
{
    return s->ops->epoch(s, scope, build_id, epoch, e);
}

enum profd_status store_epoch_all(struct store *s, const struct store_scope *scope, uint64_t *epoch,
                                  struct profd_error *e)
{
    return s->ops->epoch_all(s, scope, epoch, e);
}

enum profd_status store_get_totals(struct store *s, struct store_totals *t, struct profd_error *e)
{
    return s->ops->get_totals(s, t, e);
}

enum profd_status store_forget_ids(struct store *s, int64_t before, struct profd_error *e)
{
    enum profd_status status = check_writable(s, e);
    return status != PROFD_OK ? status : s->ops->forget_ids(s, before, e);
}

enum profd_status store_get_range(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                  int64_t *since, int64_t *until, struct profd_error *e)
{
    return s->ops->get_range(s, scope, filter, since, until, e);
}

enum profd_status store_compact(struct store *s, const struct store_policy *policy, int64_t now,
                                struct store_progress *progress, struct profd_error *e)
{
    enum profd_status status = check_writable(s, e);
    return status != PROFD_OK ? status : s->ops->compact(s, policy, now, progress, e);
}

enum profd_status store_retire(struct store *s, const struct store_policy *policy, int64_t now,
                               struct store_progress *progress, struct profd_error *e)
{
    enum profd_status status = check_writable(s, e);
    return status != PROFD_OK ? status : s->ops->retire(s, policy, now, progress, e);
}

enum profd_status store_delete_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                     uint64_t *uploads, struct profd_error *e)
{
    enum profd_status status = check_writable(s, e);
    return status != PROFD_OK ? status : s->ops->delete_build(s, scope, build_id, uploads, e);
}

enum profd_status store_shrink(struct store *s, uint64_t bytes, struct store_progress *progress, struct profd_error *e)
{
    enum profd_status status = check_writable(s, e);
    return status != PROFD_OK ? status : s->ops->shrink(s, bytes, progress, e);
}

enum profd_status store_verify(struct store *s, struct store_cursor *cursor,
                               void (*mismatch)(void *context, const char *sentence), void *context,
                               uint64_t *uploads_checked, struct profd_error *e)
{
    return s->ops->verify(s, cursor, mismatch, context, uploads_checked, e);
}

enum profd_status store_backup_begin(struct store *s, const char *path, struct store_backup **out,
                                     struct profd_error *e)
{
    enum profd_status status = check_writable(s, e);
    return status != PROFD_OK ? status : s->ops->backup_begin(s, path, out, e);
}

enum profd_status store_backup_step(struct store_backup *b, uint64_t bytes, uint64_t *left, struct profd_error *e)
{
    return b->step(b, bytes, left, e);
}

void store_backup_end(struct store_backup *b)
{
    if (b)
        b->end(b);
}

void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}
