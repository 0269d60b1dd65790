#include "query/labels_window.h"

#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/sum.h"
#include "query/set.h"

struct counting {
    struct arena *arena;
    struct set pairs; /* name NUL value NUL */
    uint64_t *uploads;
    uint32_t capacity;
};

static enum profd_status add_pair(struct counting *c, const struct store_label *label, uint64_t uploads)
{
    uint32_t number;
    bool added, saturated = false;
    struct buffer key;
    buffer_init(&key, 65536);
    buffer_add(&key, label->name, strlen(label->name) + 1);
    buffer_add(&key, label->value, strlen(label->value) + 1);
    enum profd_status status = key.failed ? PROFD_NO_MEMORY : set_add(&c->pairs, key.data, key.size, &number, &added);
    buffer_done(&key);
    if (status != PROFD_OK) {
        return status;
    }
    uint64_t *grown = arena_extend(c->arena, c->uploads, number, &c->capacity, sizeof *grown);
    if (grown == NULL) {
        return PROFD_NO_MEMORY;
    }
    c->uploads = grown;
    sum_add(&c->uploads[number], uploads, &saturated);
    return PROFD_OK;
}

static enum profd_status take_row(void *context, const struct store_row *row, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < row->label_count; i++) {
        status = add_pair(context, &row->labels[i], row->uploads);
    }
    return status == PROFD_OK ? status : profd_error_set(e, status, "no memory for the labels");
}

static int row_compare(const void *left, const void *right)
{
    const struct label_row *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names != 0 ? names : strcmp(a->value, b->value);
}

enum profd_status labels_count(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                               struct arena *a, struct label_row **rows, size_t *count, struct profd_error *e)
{
    struct counting c = {.arena = a};
    set_init(&c.pairs, a);
    enum profd_status status = store_each_upload(s, scope, filter, take_row, &c, e);
    if (status == PROFD_OK) {
        status = store_pattern_judge(filter, e);
    }
    struct label_row *out = status == PROFD_OK ? ARENA_ARRAY(a, c.pairs.count, struct label_row) : NULL;
    if (out == NULL) {
        return status != PROFD_OK ? status : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the labels");
    }
    for (uint32_t i = 0; i < c.pairs.count; i++) {
        const char *name = c.pairs.keys[i].bytes;
        out[i] = (struct label_row){name, name + strlen(name) + 1, c.uploads[i]};
    }
    if (c.pairs.count > 0) {
        qsort(out, c.pairs.count, sizeof *out, row_compare);
    }
    *rows = out;
    *count = c.pairs.count;
    return PROFD_OK;
}
