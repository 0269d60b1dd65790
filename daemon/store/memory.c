#include "store/memory.h"
#include "store/scope.h"

#include <stdlib.h>
#include <string.h>

enum profd_status memory_reserve(void *array, size_t count, size_t *capacity, size_t n, size_t size,
                                 struct profd_error *e)
{
    if (count + n <= *capacity) {
        return PROFD_OK;
    }
    void *old;
    memcpy(&old, array, sizeof old);
    size_t wanted = 2 * (count + n);
    void *grown = reallocarray(old, wanted, size);
    if (!grown) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the store");
    }
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return PROFD_OK;
}

struct memory_user *memory_find_user(struct memory_store *s, uint32_t uid)
{
    for (size_t i = 0; i < s->user_count; i++) {
        if (s->users[i].uid == uid) {
            return &s->users[i];
        }
    }
    return NULL;
}

enum profd_status memory_epoch(struct store *base, const struct store_scope *scope, const char *build_id,
                               struct store_epoch *epoch, struct profd_error *e)
{
    (void)e;
    const struct memory_store *s = memory_self(base);
    uint64_t newest = 0, mixed = 0;
    for (size_t i = 0; i < s->build_count; i++) {
        if (store_scope_has(scope, s->builds[i].uid) && strcmp(s->builds[i].id.text, build_id) == 0) {
            const struct memory_build *b = &s->builds[i];
            uint64_t own = scope->all && b->epoch_all > b->epoch ? b->epoch_all : b->epoch;
            newest = own > newest ? own : newest;
            mixed = store_scope_mix(scope, mixed, b->uid, own);
        }
    }
    *epoch = (struct store_epoch){.number = scope->all ? newest : mixed};
    return PROFD_OK;
}

enum profd_status memory_epoch_all(struct store *base, const struct store_scope *scope, struct store_epoch *epoch,
                                   struct profd_error *e)
{
    (void)e;
    struct memory_store *s = memory_self(base);
    uint64_t mixed = 0;
    for (size_t i = 0; i < s->user_count; i++) {
        if (store_scope_has(scope, s->users[i].uid)) {
            mixed = store_scope_mix(scope, mixed, s->users[i].uid, s->users[i].epoch);
        }
    }
    *epoch = (struct store_epoch){.number = scope->all ? s->list_epoch : mixed};
    return PROFD_OK;
}

enum profd_status memory_look(struct store *base, struct profd_error *e)
{
    (void)base;
    (void)e;
    return PROFD_OK;
}

static bool has_named_object(const struct memory_store *s, const char *build_id)
{
    for (size_t i = 0; i < s->object_count; i++) {
        if (s->objects[i].has_names && strcmp(s->objects[i].id.text, build_id) == 0) {
            return true;
        }
    }
    return false;
}

enum profd_status memory_get_totals(struct store *base, struct store_totals *t, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    *t = (struct store_totals){.uploads = s->uploads_total,
                               .ticks = s->ticks,
                               .calls = s->calls,
                               .retired_uploads = s->retired_uploads,
                               .retired_ticks = s->retired_ticks,
                               .retired_calls = s->retired_calls,
                               .raw_uploads = s->upload_count};
    for (size_t i = 0; i < s->upload_count; i++) {
        t->raw_bytes += s->uploads[i].counts_size;
    }
    for (size_t i = 0; i < s->build_count; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++) {
            first = strcmp(s->builds[k].id.text, s->builds[i].id.text) != 0;
        }
        t->builds += first;
        t->builds_without_names += first && !has_named_object(s, s->builds[i].id.text);
    }
    return memory_add_users(s, t, e);
}
