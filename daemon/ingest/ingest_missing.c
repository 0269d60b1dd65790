#include "ingest/ingest_missing.h"

#include <stdlib.h>
#include <string.h>

/* Copies a name, cut between two characters if it is too long. */
static void copy_name(char *out, size_t size, const char *name)
{
    size_t n = strlen(name);
    if (n >= size) {
        n = size - 1;
        while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80) {
            n--;
        }
    }
    memcpy(out, name, n);
    out[n] = 0;
}

static bool add(const struct store_upload *u, size_t i, struct missing_build **list, size_t *count)
{
    if (!*list) {
        *list = calloc(u->build_count < MISSING_MAX ? u->build_count : MISSING_MAX, sizeof **list);
    }
    if (!*list) {
        return false;
    }
    struct missing_build *w = &(*list)[(*count)++];
    w->id = u->builds[i].id;
    copy_name(w->name, sizeof w->name, u->builds[i].name);
    return true;
}

void missing_list(struct store *s, const struct store_upload *u, struct missing_build **out, size_t *count)
{
    for (size_t i = 0; i < u->build_count && *count < MISSING_MAX; i++) {
        bool has = true;
        if (store_has_object(s, u->uid, u->builds[i].id.text, &has, NULL) != PROFD_OK || has) {
            continue;
        }
        if (!add(u, i, out, count)) {
            return;
        }
    }
}

enum profd_status missing_list_cached(struct build_cache *cache, const struct store_upload *u,
                                      struct missing_build **out, size_t *count, struct profd_error *e)
{
    struct missing_build *list = NULL;
    size_t n = 0;
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < u->build_count && n < MISSING_MAX && status == PROFD_OK; i++) {
        bool has = true;
        status = build_cache_has_object(cache, u->uid, u->builds[i].id.text, &has, e);
        if (status == PROFD_OK && !has && !add(u, i, &list, &n)) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory to ask for executables");
        }
    }
    if (status != PROFD_OK) {
        free(list);
        return status;
    }
    *out = list;
    *count = n;
    return PROFD_OK;
}
