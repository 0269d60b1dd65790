/* Orphaned processes: they are in the store, but their memory no longer exists. */
#include <stdlib.h>
#include <string.h>

#include "ingest/attach_internal.h"
#include "proto/message.h"

enum profd_status attach_get_origin(const uint8_t *snapshot, size_t size, struct attach_origin *out,
                                    struct profd_error *e)
{
    struct attach_snapshot s;
    TRY(attach_snapshot_decode(snapshot, size, &s, e));
    *out = s.origin;
    attach_snapshot_done(&s);
    return PROFD_OK;
}

bool attach_still_lives(const struct attach_origin *o, const struct attach_origin *here,
                        uint64_t (*started_of)(uint32_t pid))
{
    bool known = o->pid != 0 && o->started != 0;
    return memcmp(o->boot, here->boot, sizeof o->boot) == 0 && strcmp(o->host, here->host) == 0 &&
           (!known || started_of(o->pid) == o->started);
}

/* A histogram with the one counter, n, for a process of which only the program is known. */
static enum profd_status counts_make(uint64_t n, uint8_t **out, size_t *size, struct profd_error *e)
{
    struct counts c;
    TRY(counts_init(&c, 1, 1, 0, e));
    collector_make_histogram(&c.histograms[0], 0);
    c.histograms[0].used = n > 0;
    c.bin_index[0] = COLLECTOR_END_NOT_SEEN;
    c.bin_ticks[0] = n;
    enum profd_status status = counts_encode(&c, out, size, e);
    counts_done(&c);
    return status;
}

static enum profd_status close_it(const struct store_instance *i, const struct attach_snapshot *s, int64_t received,
                                  bool lives, struct attach_inside *in, struct store_upload *put, struct profd_error *e)
{
    struct attach_build program = {.name = s->name};
    struct attach_delivery d = {.uid = i->uid,
                                .received = received,
                                .start = i->seen < received ? i->seen : received,
                                .instance = i->instance,
                                .host = s->origin.host,
                                .inexact = INEXACT_END_NOT_SEEN,
                                .build_count = 1,
                                .builds = &program,
                                .label_count = s->label_count,
                                .labels = s->labels};
    TRY(buildid_parse(s->build_id, strlen(s->build_id), &program.id, e));
    TRY(attach_upload_validate(&d, in, put, e));
    TRY(counts_make(!lives, &in->counts, &put->counts_size, e));
    put->counts = in->counts;
    return PROFD_OK;
}

/* Texts of the upload live in the decoded snapshot: they are moved into the arena. */
static bool texts_keep(struct attach_inside *in, struct attach_snapshot *s)
{
    struct store_label *labels = ARENA_ARRAY(in->arena, s->label_count + 1, struct store_label);
    s->name = arena_copy(in->arena, s->name, strlen(s->name));
    if (!labels || !s->name) {
        return false;
    }
    for (size_t k = 0; k < s->label_count; k++) {
        labels[k].name = arena_copy(in->arena, s->labels[k].name, strlen(s->labels[k].name));
        labels[k].value = arena_copy(in->arena, s->labels[k].value, strlen(s->labels[k].value));
        if (!labels[k].name || !labels[k].value) {
            return false;
        }
    }
    free((void *)(uintptr_t)s->labels);
    s->labels = NULL;
    in->summary.labels = labels;
    return true;
}

enum profd_status attach_close_orphan(const struct store_instance *i, bool lives, int64_t now, struct attach_harvest *h,
                                      struct profd_error *e)
{
    struct attach_snapshot s;
    struct attach_harvest made = {.any = true};
    const int64_t received = i->ended || lives ? i->missing_since : now; /* about its children, or its own end */
    TRY(attach_snapshot_decode(i->snapshot, i->snapshot_size, &s, e));
    struct attach_inside *in = attach_inside_new();
    if (in) {
        in->snapshot = malloc(i->snapshot_size);
    }
    enum profd_status status = PROFD_OK;
    if (!in || !in->snapshot || !texts_keep(in, &s)) {
        status = profd_no_memory(e);
    } else {
        struct attach_snapshot kept = s;
        kept.labels = in->summary.labels;
        memcpy(in->snapshot, i->snapshot, i->snapshot_size);
        status = close_it(i, &kept, received, lives, in, &made.put, e);
    }
    attach_snapshot_done(&s);
    if (status != PROFD_OK) {
        attach_inside_free(in);
        return status;
    }
    memcpy(made.put.instance, i->instance, sizeof made.put.instance);
    made.put.base = i->generation;
    made.put.snapshot = in->snapshot;
    made.put.snapshot_size = i->snapshot_size;
    made.put.ended = made.put.told = !lives;
    made.put.marks = lives;
    made.inside = in;
    *h = made;
    return PROFD_OK;
}
