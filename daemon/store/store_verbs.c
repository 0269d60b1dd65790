#include "store/store.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "core/rollup.h"
#include "proto/limits.h"
#include "core/hashmap.h"
#include "store/quota.h"
#include "store/sequence.h"
#include "store/store_ops.h"

_Static_assert(STORE_ID_RANGES == SEQUENCE_RANGES, "store.h promises what sequence.h keeps");
_Static_assert(LIMIT_ID_DAYS > LIMIT_SPOOL_DAYS, "an id must outlive every spool that may still deliver it");
_Static_assert(LIMIT_ID_DAYS >= STORE_ENDED_DAYS, "one time tells of both");

#define OBJECT_SHRINKS 4 /* estimated compression of symbols */

/* *e: receives the sentence of the verb. The caller may pass NULL; the store's health always needs it. */
static enum profd_status check_writable(struct store *s, struct profd_error **e)
{
    *e = *e ? *e : &s->unasked;
    if (!s->writable) {
        return profd_error_set(*e, PROFD_INTERNAL, "this handle of the store only reads");
    }
    return PROFD_OK;
}

/* Records what a writing verb of the engine returned. stored: on OK it has written, so there is space. */
static enum profd_status note(struct store *s, enum profd_status status, bool stored, const struct profd_error *e)
{
    struct store_health *h = &s->health;
    const bool fails = status == PROFD_IO || status == PROFD_DAMAGED;
    if (h->failed || !(fails || status == PROFD_FULL || (status == PROFD_OK && stored && h->full))) {
        return status;
    }
    h->failed = fails;
    h->damaged = status == PROFD_DAMAGED;
    h->full = status == PROFD_FULL;
    h->changes++;
    profd_error_set(&h->error, status, "%s", status == PROFD_OK ? "" : e->sentence);
    return status;
}

const struct store_health *store_get_health(const struct store *s)
{
    return &s->health;
}

void store_set_share(struct store *s, const struct store_share *share)
{
    s->share = *share;
}

void store_set_detail(struct store *s, const struct store_detail *detail)
{
    s->detail = *detail;
}

enum profd_status store_get_use(struct store *s, uint32_t uid, struct store_use *use, struct profd_error *e)
{
    uint64_t own, total;
    enum profd_status status = s->ops->get_use(s, uid, &own, &total, e);
    if (status == PROFD_OK) {
        *use = (struct store_use){.bytes = own,
                                  .others = total > own ? total - own : 0,
                                  .most = quota_most(s->share.limit, s->share.percent, own, total)};
    }
    return status;
}

enum profd_status store_share_refuse(struct store *s, uint32_t uid, struct profd_error *e)
{
    struct store_use use;
    enum profd_status status = store_get_use(s, uid, &use, e);
    return status != PROFD_OK
               ? status
               : profd_error_set(e, PROFD_FULL,
                                 "user %u stores %llu bytes here and may store at most %llu: user-share, %u%%, of the "
                                 "%llu bytes that other "
                                 "users leave of %llu; delete programs of this user (profctl delete), let keep-age or "
                                 "keep-bytes remove "
                                 "days, or raise user-share",
                                 uid, (unsigned long long)use.bytes, (unsigned long long)use.most, s->share.percent,
                                 (unsigned long long)(s->share.limit > use.others ? s->share.limit - use.others : 0),
                                 (unsigned long long)s->share.limit);
}

/* The users of one batch, and the bytes that each may still store. */
struct share_batch {
    struct store *s;
    struct hashmap users;
};

static void share_batch_init(struct share_batch *b, struct store *s)
{
    b->s = s;
    hashmap_init(&b->users, 0);
}

static void share_batch_done(struct share_batch *b)
{
    hashmap_clear(&b->users);
}

/* Reserves the bytes of the user's share; false if it is exceeded. */
static enum profd_status share_take(struct share_batch *b, uint32_t uid, uint64_t bytes, bool *may,
                                    struct profd_error *e)
{
    const struct store_share *share = &b->s->share;
    uint64_t own, total, left;
    *may = true;
    if (share->limit == 0 || share->percent >= 100) {
        return PROFD_OK;
    }
    uint64_t *known = hashmap_find(&b->users, &uid, sizeof uid);
    if (!known) {
        enum profd_status status = b->s->ops->get_use(b->s, uid, &own, &total, e);
        if (status != PROFD_OK) {
            return status;
        }
        const uint64_t most = quota_most(share->limit, share->percent, own, total);
        left = most > own ? most - own : 0;
        known = hashmap_put(&b->users, &uid, sizeof uid, &left, sizeof left);
        if (!known) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory to look at what users store");
        }
    }
    *may = bytes <= *known;
    *known -= *may ? bytes : 0;
    return PROFD_OK;
}

static enum profd_status check_upload(const struct store_upload *u, struct profd_error *e)
{
    if (u->program >= u->build_count) {
        return profd_error_set(e, PROFD_INTERNAL, "program %u is not one of the upload's %zu builds", u->program,
                               u->build_count);
    }
    if (u->start > u->end || u->start < 0) {
        return profd_error_set(e, PROFD_INTERNAL, "an upload's window ends before it starts");
    }
    if (u->group >= ROLLUP_GROUPS) {
        return profd_error_set(e, PROFD_INTERNAL, "an upload of group %u; there are %u", u->group, ROLLUP_GROUPS);
    }
    return PROFD_OK;
}

/* Marks items that exceed their user's share, except repeats of counted uploads. *over: their number. */
static enum profd_status mark_over(struct store *s, const struct store_upload *uploads, size_t n,
                                   enum store_outcome *outcomes, size_t *over, struct profd_error *e)
{
    struct share_batch shares;
    enum profd_status status = PROFD_OK;
    *over = 0;
    share_batch_init(&shares, s);
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        bool may, counted = false;
        status = share_take(&shares, uploads[i].uid, uploads[i].counts_size, &may, e);
        if (status == PROFD_OK && !may) {
            status = s->ops->has_upload(s, &uploads[i], &counted, e);
        }
        outcomes[i] = may || counted ? STORE_STORED : STORE_OVER_SHARE;
        *over += outcomes[i] == STORE_OVER_SHARE;
    }
    share_batch_done(&shares);
    return status;
}

/* Stores the items that are not marked. */
static enum profd_status put_rest(struct store *s, const struct store_upload *uploads, size_t n,
                                  enum store_outcome *outcomes, size_t over, struct profd_error *e)
{
    const size_t most = n - over;
    struct store_upload *rest = calloc(most + 1, sizeof *rest);
    enum store_outcome *told = calloc(most + 1, sizeof *told);
    enum profd_status status =
        rest && told ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a batch of %zu uploads", n);
    size_t count = 0;
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        if (outcomes[i] != STORE_OVER_SHARE) {
            rest[count++] = uploads[i];
        }
    }
    if (status == PROFD_OK && count > 0) {
        status = note(s, s->ops->put_uploads(s, rest, count, told, e), true, e);
    }
    for (size_t i = 0, k = 0; i < n && status == PROFD_OK; i++) {
        if (outcomes[i] != STORE_OVER_SHARE) {
            outcomes[i] = told[k++];
        }
    }
    free(rest);
    free(told);
    return status;
}

static enum profd_status put_within_shares(struct store *s, const struct store_upload *uploads, size_t n,
                                           enum store_outcome *outcomes, struct profd_error *e)
{
    size_t over = 0;
    enum profd_status status = mark_over(s, uploads, n, outcomes, &over, e);
    if (status != PROFD_OK || over > 0) {
        return status == PROFD_OK ? put_rest(s, uploads, n, outcomes, over, e) : status;
    }
    return note(s, s->ops->put_uploads(s, uploads, n, outcomes, e), true, e);
}

enum profd_status store_put_uploads(struct store *s, const struct store_upload *uploads, size_t n,
                                    enum store_outcome *outcomes, struct profd_error *e)
{
    enum profd_status status = check_writable(s, &e);
    if (status != PROFD_OK || n == 0) {
        return status;
    }
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = uploads[i].sequence > 0
                     ? check_upload(&uploads[i], e)
                     : profd_error_set(e, PROFD_INTERNAL, "an upload's sequence is 0; sequences begin with 1");
    }
    return status == PROFD_OK ? put_within_shares(s, uploads, n, outcomes, e) : status;
}

enum profd_status store_put_segments(struct store *s, const struct store_delivery *list, size_t n,
                                     struct store_receipt *receipts, struct profd_error *e)
{
    enum profd_status status = check_writable(s, &e);
    return status != PROFD_OK || n == 0 ? status : note(s, s->ops->put_segments(s, list, n, receipts, e), true, e);
}

/* No instance twice. */
static enum profd_status check_instances(const struct store_harvest *harvests, size_t n, struct profd_error *e)
{
    struct hashmap seen;
    enum profd_status status = PROFD_OK;
    hashmap_init(&seen, 0);
    for (size_t i = 0; i < n && n > 1 && status == PROFD_OK; i++) {
        uint8_t key[STORE_INSTANCE_SIZE + sizeof(uint32_t)];
        memcpy(key, harvests[i].instance, STORE_INSTANCE_SIZE);
        memcpy(key + STORE_INSTANCE_SIZE, &harvests[i].upload.uid, sizeof(uint32_t));
        if (hashmap_find(&seen, key, sizeof key)) {
            status = profd_error_set(e, PROFD_INTERNAL, "harvest %zu is of an instance that is in the list already", i);
        } else if (!hashmap_put(&seen, key, sizeof key, "", 1)) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to look at %zu harvests", n);
        }
    }
    hashmap_clear(&seen);
    return status;
}

/* Stores the harvests of users within their share; told and rest have capacity for all. */
static enum profd_status harvest_rest(struct store *s, const struct store_harvest *harvests, size_t n,
                                      struct store_harvest *rest, enum store_harvest_outcome *told,
                                      enum store_harvest_outcome *outcomes, struct profd_error *e)
{
    struct share_batch shares;
    enum profd_status status = PROFD_OK;
    size_t count = 0;
    share_batch_init(&shares, s);
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        const struct store_harvest *h = &harvests[i];
        const bool counts = h->upload.counts_size > 0 && (h->upload.ticks > 0 || h->upload.calls > 0);
        bool may = true;
        if (counts) {
            status = share_take(&shares, h->upload.uid, h->upload.counts_size + (h->base == 0 ? h->snapshot_size : 0),
                                &may, e);
        }
        outcomes[i] = may ? STORE_HARVESTED : STORE_HARVEST_OVER_SHARE;
        if (status == PROFD_OK && !may) {
            status = note(s, s->ops->set_unread(s, h->upload.uid, h->instance, e), false, e);
        }
        if (may) {
            rest[count++] = *h;
        }
    }
    share_batch_done(&shares);
    if (status == PROFD_OK && count > 0) {
        status = note(s, s->ops->put_harvests(s, rest, count, told, e), true, e);
    }
    for (size_t i = 0, k = 0; i < n && status == PROFD_OK; i++) {
        if (outcomes[i] != STORE_HARVEST_OVER_SHARE) {
            outcomes[i] = told[k++];
        }
    }
    return status;
}

static enum profd_status harvest_within_shares(struct store *s, const struct store_harvest *harvests, size_t n,
                                               enum store_harvest_outcome *outcomes, struct profd_error *e)
{
    struct store_harvest *rest = calloc(n, sizeof *rest);
    enum store_harvest_outcome *told = calloc(n, sizeof *told);
    enum profd_status status = rest && told ? harvest_rest(s, harvests, n, rest, told, outcomes, e)
                                            : profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu harvests", n);
    free(rest);
    free(told);
    return status;
}

enum profd_status store_put_harvests(struct store *s, const struct store_harvest *harvests, size_t n,
                                     enum store_harvest_outcome *outcomes, struct profd_error *e)
{
    enum profd_status status = check_writable(s, &e);
    if (status != PROFD_OK || n == 0) {
        return status;
    }
    for (size_t i = 0; i < n && status == PROFD_OK; i++) {
        status = harvests[i].upload.counts_size > 0 ? check_upload(&harvests[i].upload, e) : PROFD_OK;
    }
    if (status == PROFD_OK) {
        status = check_instances(harvests, n, e);
    }
    return status == PROFD_OK ? harvest_within_shares(s, harvests, n, outcomes, e) : status;
}

void store_set_run(struct store *s, uint64_t run)
{
    s->run = run;
}

void store_set_salt(struct store *s, uint64_t salt)
{
    s->salt = salt;
}

enum profd_status store_get_living(struct store *s, enum store_living_kind kind, const struct store_scope *scope,
                                   const struct store_filter *filter, struct store_living *out, struct profd_error *e)
{
    *out = (struct store_living){.processes = 0};
    return s->run != 0 ? s->ops->get_living(s, kind, scope, filter, out, e) : PROFD_OK;
}

enum profd_status store_put_object(struct store *s, const struct store_object *object, struct profd_error *e)
{
    struct share_batch shares;
    bool may = true;
    enum profd_status status = check_writable(s, &e);
    if (status != PROFD_OK) {
        return status;
    }
    share_batch_init(&shares, s);
    status = share_take(&shares, object->uid, (uint64_t)object->encoded_size / OBJECT_SHRINKS + object->bounds_size,
                        &may, e);
    share_batch_done(&shares);
    if (status == PROFD_OK && !may) {
        status = store_share_refuse(s, object->uid, e);
    }
    return status != PROFD_OK ? status : note(s, s->ops->put_object(s, object, e), true, e);
}

/* Converts an ASCII text to lower case, so that ids copied from other tools are found. */
static void fold_case(const char *text, char *out)
{
    size_t n = strlen(text);
    for (size_t i = 0; i <= n; i++) {
        out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    }
}

enum profd_status store_find_build(struct store *s, const struct store_scope *scope, const char *text,
                                   struct buildid *id, struct profd_error *e)
{
    struct buildid found[2];
    size_t count = 0;
    char prefix[BUILDID_TEXT_SIZE];
    size_t n = strlen(text);
    if (n >= sizeof prefix) {
        return profd_error_set(e, PROFD_REFUSED, "a build-id has at most %d characters, this has %zu",
                               BUILDID_TEXT_SIZE - 1, n);
    }
    fold_case(text, prefix);
    if (n > 0) {
        enum profd_status status = s->ops->find_builds(s, scope, prefix, true, found, &count, e);
        if (status != PROFD_OK) {
            return status;
        }
    }
    if (count == 0) {
        if (!buildid_prefix_valid(prefix, n)) {
            return profd_error_set(e, PROFD_REFUSED,
                                   "\"%s\" is neither a build-id nor a prefix of at least 4 of its characters; "
                                   "`profctl builds --all` lists the stored builds",
                                   text);
        }
        enum profd_status status = s->ops->find_builds(s, scope, prefix, false, found, &count, e);
        if (status != PROFD_OK) {
            return status;
        }
    }
    if (count == 0) {
        char owner[32] = "";
        if (!scope->all && scope->other_count > 0) {
            (void)snprintf(owner, sizeof owner, " for your tenants");
        } else if (!scope->all) {
            (void)snprintf(owner, sizeof owner, " for user %u", scope->uid);
        }
        return profd_error_set(e, PROFD_NOT_FOUND,
                               "no profile of build \"%s\" is stored%s; `profctl builds --all` lists the stored builds",
                               text, owner);
    }
    if (count > 1) {
        return profd_error_set(e, PROFD_AMBIGUOUS, "\"%s\" begins several build-ids, among them %s and %s", text,
                               found[0].text, found[1].text);
    }
    *id = found[0];
    return PROFD_OK;
}

enum profd_status store_each_build(struct store *s, const struct store_scope *scope, const char *after, size_t limit,
                                   bool (*each)(void *context, const struct build_row *row), void *context,
                                   struct profd_error *e)
{
    return limit == 0 ? PROFD_OK : s->ops->each_build(s, scope, after, limit, each, context, e);
}

enum profd_status store_delete_build(struct store *s, const struct store_scope *scope, const char *build_id,
                                     uint64_t *uploads, struct profd_error *e)
{
    enum profd_status status = check_writable(s, &e);
    return status != PROFD_OK ? status : note(s, s->ops->delete_build(s, scope, build_id, uploads, e), true, e);
}

enum profd_status store_backup_begin(struct store *s, const char *path, struct store_backup **out,
                                     struct profd_error *e)
{
    enum profd_status status = check_writable(s, &e);
    return status != PROFD_OK ? status : s->ops->backup_begin(s, path, out, e);
}

enum profd_status store_backup_step(struct store_backup *b, uint64_t bytes, uint64_t *left, struct profd_error *e)
{
    return b->step(b, bytes, left, e);
}

void store_backup_end(struct store_backup *b)
{
    if (b) {
        b->end(b);
    }
}

#define STORE_PASS(name, parameters, arguments)                                                                        \
    enum profd_status store_##name parameters                                                                          \
    {                                                                                                                  \
        return s->ops->name arguments;                                                                                 \
    }
STORE_VERBS_READ(STORE_PASS)

#define STORE_PASS_WRITE(name, parameters, arguments)                                                                  \
    enum profd_status store_##name parameters                                                                          \
    {                                                                                                                  \
        enum profd_status status = check_writable(s, &e);                                                              \
        return status != PROFD_OK ? status : note(s, s->ops->name arguments, false, e);                                \
    }
STORE_VERBS_WRITE(STORE_PASS_WRITE)

void store_close(struct store *s)
{
    if (s) {
        s->ops->close(s);
    }
}
