/* Uploads in the making. */
#include "lib/profd_upload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "proto/buildid.h"
#include "proto/counts_tree.h"
#include "proto/frame.h"
#include "proto/label.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/whole.h"

_Static_assert((int)PROFD_INEXACT_THREADS_UNKNOWN == INEXACT_THREADS_UNKNOWN, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_CALLER_BUCKET == INEXACT_CALLER_BUCKET, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_BINS_16_BIT == INEXACT_BINS_16_BIT, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_CLOCK == INEXACT_CLOCK, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_SATURATED == INEXACT_SATURATED, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_CALLS_LOST == INEXACT_CALLS_LOST, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_TICKS_LOST == INEXACT_TICKS_LOST, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_END_NOT_SEEN == INEXACT_END_NOT_SEEN, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_SAMPLED == INEXACT_SAMPLED, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_LABEL_LEFT_OUT == INEXACT_LABEL_LEFT_OUT, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_SHARED_BINS == INEXACT_SHARED_BINS, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_AMBIGUOUS_NAMES == INEXACT_AMBIGUOUS_NAMES, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_LEFT_OUT == INEXACT_LEFT_OUT, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_PAUSED == INEXACT_PAUSED, "the wire's bits");
_Static_assert((int)PROFD_INEXACT_TICKS_OUTSIDE == INEXACT_TICKS_OUTSIDE, "the wire's bits");
_Static_assert(PROFD_NOWHERE == COUNTS_NOWHERE, "the wire's value");
_Static_assert(PROFD_SENDER_SIZE == UPLOAD_SENDER_SIZE, "the wire's size");

struct profd_upload {
    uint64_t start, end;
    uint32_t inexact, processes_started, uid;
    bool claimed; /* uid is claimed */
    bool has_process;
    uint8_t process[LIMIT_PROCESS];
    uint32_t build_count, label_count;
    size_t build_capacity, label_capacity, label_bytes;
    struct message_build *builds; /* strings owned */
    struct message_label *labels; /* strings owned */
    struct counts counts;         /* block is NULL: each array is its own */
    size_t histogram_capacity, bin_capacity, arc_capacity;
    struct counts_stacks *stacks; /* NULL: none; they are put into counts when the upload is encoded */
};

enum profd_status profd_upload_new(struct profd_upload **out, struct profd_error *e)
{
    struct profd_upload *u = calloc(1, sizeof *u);
    if (!u) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for an upload");
    }
    u->processes_started = 1;
    *out = u;
    return PROFD_OK;
}

void profd_upload_free(struct profd_upload *u)
{
    if (!u) {
        return;
    }
    for (uint32_t i = 0; i < u->build_count; i++) {
        free((void *)(uintptr_t)u->builds[i].build_id);
        free((void *)(uintptr_t)u->builds[i].name);
    }
    for (uint32_t i = 0; i < u->label_count; i++) {
        free((void *)(uintptr_t)u->labels[i].name);
        free((void *)(uintptr_t)u->labels[i].value);
    }
    free(u->builds);
    free(u->labels);
    free(u->counts.histograms);
    free(u->counts.bin_index);
    free(u->counts.bin_ticks);
    free(u->counts.from_build);
    free(u->counts.to_build);
    free(u->counts.from);
    free(u->counts.to);
    free(u->counts.calls);
    counts_stacks_free(u->stacks);
    free(u);
}

/* Ensures capacity for need elements of size bytes in *array; its present capacity is `capacity`. The caller stores the
 * new capacity. */
static bool array_grow(void *array, size_t capacity, size_t size)
{
    void **place = array;
    size_t bytes;
    if (__builtin_mul_overflow(capacity, size, &bytes)) {
        return false;
    }
    void *grown = realloc(*place, bytes);
    if (!grown) {
        return false;
    }
    *place = grown;
    return true;
}

static size_t capacity_for(size_t capacity, size_t need)
{
    size_t next = capacity ? capacity : 16;
    while (next < need) {
        next += next / 2;
    }
    return next;
}

enum profd_status profd_upload_add_build(struct profd_upload *u, const char *build_id, const char *name,
                                         uint32_t *index, struct profd_error *e)
{
    struct buildid id;
    TRY(buildid_parse(build_id, strlen(build_id), &id, e));
    if (strlen(name) > LIMIT_BUILD_NAME) {
        return profd_error_set(e, PROFD_REFUSED, "the name of build %s has %zu bytes; the limit is %u", id.text,
                               strlen(name), LIMIT_BUILD_NAME);
    }
    if (u->build_count >= LIMIT_BUILDS) {
        return profd_error_set(e, PROFD_REFUSED, "an upload may have at most %u builds", LIMIT_BUILDS);
    }
    for (uint32_t i = 0; i < u->build_count; i++) {
        if (strcmp(u->builds[i].build_id, id.text) == 0) {
            return profd_error_set(e, PROFD_REFUSED, "build %s is in the upload already", id.text);
        }
    }
    if (u->build_count == u->build_capacity) {
        size_t capacity = capacity_for(u->build_capacity, (size_t)u->build_count + 1);
        if (!array_grow(&u->builds, capacity, sizeof *u->builds)) {
            return profd_no_memory(e);
        }
        u->build_capacity = capacity;
    }
    char *id_copy = strdup(id.text), *name_copy = strdup(name);
    if (!id_copy || !name_copy) {
        free(id_copy);
        free(name_copy);
        return profd_no_memory(e);
    }
    u->builds[u->build_count] = (struct message_build){.build_id = id_copy, .name = name_copy};
    if (index) {
        *index = u->build_count;
    }
    u->build_count++;
    return PROFD_OK;
}

bool profd_upload_has_label(const struct profd_upload *u, const char *name)
{
    for (uint32_t i = 0; i < u->label_count; i++) {
        if (strcmp(u->labels[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

enum profd_status profd_upload_add_label(struct profd_upload *u, const char *name, const char *value,
                                         struct profd_error *e)
{
    TRY(label_check(name, value, e));
    if (profd_upload_has_label(u, name)) {
        return profd_error_set(e, PROFD_REFUSED, "label %s is given twice", name);
    }
    size_t bytes = strlen(name) + strlen(value);
    if (u->label_count >= LIMIT_LABELS || u->label_bytes + bytes > LIMIT_LABEL_BYTES) {
        return profd_error_set(e, PROFD_REFUSED,
                               "label %s exceeds the limits: at most %u labels with %u bytes in total", name,
                               LIMIT_LABELS, LIMIT_LABEL_BYTES);
    }
    if (u->label_count == u->label_capacity) {
        size_t capacity = capacity_for(u->label_capacity, (size_t)u->label_count + 1);
        if (!array_grow(&u->labels, capacity, sizeof *u->labels)) {
            return profd_no_memory(e);
        }
        u->label_capacity = capacity;
    }
    char *name_copy = strdup(name), *value_copy = strdup(value);
    if (!name_copy || !value_copy) {
        free(name_copy);
        free(value_copy);
        return profd_no_memory(e);
    }
    u->labels[u->label_count++] = (struct message_label){.name = name_copy, .value = value_copy};
    u->label_bytes += bytes;
    return PROFD_OK;
}

void profd_upload_set_window(struct profd_upload *u, uint64_t start, uint64_t end)
{
    u->start = start;
    u->end = end;
}

void profd_upload_set_inexact(struct profd_upload *u, uint32_t bits)
{
    u->inexact = bits;
}

void profd_upload_set_processes_started(struct profd_upload *u, uint32_t n)
{
    u->processes_started = n;
}

static enum profd_status histogram_add(struct profd_upload *u, const struct profd_histogram *h,
                                       const char dimension[16], char abbreviation, struct profd_error *e)
{
    if (h->build >= u->build_count) {
        return profd_error_set(e, PROFD_REFUSED,
                               "a histogram names build %" PRIu32
                               "; builds are numbered from 0, and the upload has %" PRIu32,
                               h->build, u->build_count);
    }
    if (h->low >= h->high || h->bins == 0 || h->bins > LIMIT_HISTOGRAM_BINS) {
        return profd_error_set(e, PROFD_REFUSED,
                               "a histogram has %" PRIu32 " bins over 0x%" PRIx64 "–0x%" PRIx64
                               "; it needs 1 to %u and a low end below the high one",
                               h->bins, h->low, h->high, LIMIT_HISTOGRAM_BINS);
    }
    if (h->rate == 0 || h->rate > LIMIT_RATE) {
        return profd_error_set(e, PROFD_REFUSED,
                               "a histogram's rate is %" PRIu32 " ticks per second; it must be 1 to %u", h->rate,
                               LIMIT_RATE);
    }
    for (uint32_t i = 0; i < h->used; i++) {
        if (h->index[i] >= h->bins || h->ticks[i] == 0 || (i && h->index[i] <= h->index[i - 1])) {
            return profd_error_set(e, PROFD_REFUSED,
                                   "bin %" PRIu32 " of a histogram: indexes must ascend and be below %" PRIu32
                                   ", and ticks must not be 0",
                                   h->index[i], h->bins);
        }
    }
    if (u->counts.histogram_count >= LIMIT_HISTOGRAMS) {
        return profd_error_set(e, PROFD_REFUSED, "an upload has at most %u histograms", LIMIT_HISTOGRAMS);
    }
    size_t need = (size_t)u->counts.bin_count + h->used;
    if (need > LIMIT_BINS) {
        return profd_error_set(e, PROFD_REFUSED, "the upload has %zu nonzero bins; the limit is %u", need, LIMIT_BINS);
    }
    if (need > u->bin_capacity) {
        size_t capacity = capacity_for(u->bin_capacity, need);
        if (!array_grow(&u->counts.bin_index, capacity, sizeof(uint32_t)) ||
            !array_grow(&u->counts.bin_ticks, capacity, sizeof(uint64_t))) {
            return profd_no_memory(e);
        }
        u->bin_capacity = capacity;
    }
    struct counts *c = &u->counts;
    if (c->histogram_count == u->histogram_capacity) {
        size_t capacity = capacity_for(u->histogram_capacity, (size_t)c->histogram_count + 1);
        if (!array_grow(&c->histograms, capacity, sizeof *c->histograms)) {
            return profd_no_memory(e);
        }
        u->histogram_capacity = capacity;
    }
    struct counts_histogram *to = &c->histograms[c->histogram_count];
    *to = (struct counts_histogram){.build = h->build,
                                    .bins = h->bins,
                                    .low = h->low,
                                    .high = h->high,
                                    .rate = h->rate,
                                    .abbreviation = abbreviation,
                                    .first = c->bin_count,
                                    .used = h->used};
    memcpy(to->dimension, dimension, sizeof to->dimension);
    if (h->used) {
        memcpy(c->bin_index + c->bin_count, h->index, h->used * sizeof *h->index);
        memcpy(c->bin_ticks + c->bin_count, h->ticks, h->used * sizeof *h->ticks);
    }
    c->bin_count += h->used;
    c->histogram_count++;
    return PROFD_OK;
}

enum profd_status profd_upload_add_histogram(struct profd_upload *u, const struct profd_histogram *h,
                                             struct profd_error *e)
{
    static const char dimension[16] = "seconds";
    return histogram_add(u, h, dimension, 's', e);
}

static enum profd_status arcs_reserve(struct profd_upload *u, size_t more, struct profd_error *e)
{
    struct counts *c = &u->counts;
    size_t need = (size_t)c->arc_count + more;
    if (need > LIMIT_ARCS) {
        return profd_error_set(e, PROFD_REFUSED, "the upload has %zu arcs; the limit is %u", need, LIMIT_ARCS);
    }
    if (need > u->arc_capacity) {
        size_t capacity = capacity_for(u->arc_capacity, need);
        if (!array_grow(&c->from_build, capacity, sizeof(uint32_t)) ||
            !array_grow(&c->to_build, capacity, sizeof(uint32_t)) ||
            !array_grow(&c->from, capacity, sizeof(uint64_t)) || !array_grow(&c->to, capacity, sizeof(uint64_t)) ||
            !array_grow(&c->calls, capacity, sizeof(uint64_t))) {
            return profd_no_memory(e);
        }
        u->arc_capacity = capacity;
    }
    return PROFD_OK;
}

enum profd_status profd_upload_add_arc(struct profd_upload *u, const struct profd_arc *arc, struct profd_error *e)
{
    const uint32_t ends[2] = {arc->from_build, arc->to_build};
    for (size_t i = 0; i < 2; i++) {
        if (ends[i] != PROFD_NOWHERE && ends[i] >= u->build_count) {
            return profd_error_set(e, PROFD_REFUSED,
                                   "an arc names build %" PRIu32
                                   "; builds are numbered from 0, and the upload has %" PRIu32,
                                   ends[i], u->build_count);
        }
    }
    TRY(arcs_reserve(u, 1, e));
    struct counts *c = &u->counts;
    uint32_t i = c->arc_count++;
    c->from_build[i] = arc->from_build;
    c->to_build[i] = arc->to_build;
    c->from[i] = arc->from;
    c->to[i] = arc->to;
    c->calls[i] = arc->calls;
    return PROFD_OK;
}

enum profd_status profd_upload_add_stack(struct profd_upload *u, const struct profd_stack *stack, struct profd_error *e)
{
    return upload_add_stack(u, "seconds", 's', stack, e);
}

enum profd_status upload_add_stack(struct profd_upload *u, const char *dimension, char abbreviation,
                                   const struct profd_stack *stack, struct profd_error *e)
{
    struct counts_frame frames[LIMIT_STACK_DEPTH + 1];
    if (stack->frames == 0 || stack->ticks == 0) {
        return profd_error_set(e, PROFD_REFUSED,
                               "a stack has %" PRIu32 " frames and %" PRIu64 " ticks; it needs at least one of both",
                               stack->frames, stack->ticks);
    }
    if (stack->rate == 0 || stack->rate > LIMIT_RATE) {
        return profd_error_set(e, PROFD_REFUSED, "a stack's rate is %" PRIu32 " ticks per second; it must be 1 to %u",
                               stack->rate, LIMIT_RATE);
    }
    for (uint32_t i = 0; i < stack->frames; i++) {
        if (stack->build[i] != PROFD_NOWHERE && stack->build[i] >= u->build_count) {
            return profd_error_set(e, PROFD_REFUSED,
                                   "a stack names build %" PRIu32
                                   "; builds are numbered from 0, and the upload has %" PRIu32,
                                   stack->build[i], u->build_count);
        }
    }
    if (u->stacks == NULL && (u->stacks = counts_stacks_new()) == NULL) {
        return profd_no_memory(e);
    }
    uint32_t n = 0, first = stack->frames > LIMIT_STACK_DEPTH ? stack->frames - LIMIT_STACK_DEPTH : 0;
    if (stack->incomplete || first > 0) {
        frames[n++] = (struct counts_frame){COUNTS_FRAME_INCOMPLETE, COUNTS_NOWHERE, COUNTS_NODE_RETURN};
    }
    for (uint32_t i = first; i < stack->frames; i++) {
        bool outside = stack->build[i] == PROFD_NOWHERE, pc = stack->pc && i + 1 == stack->frames;
        frames[n++] = (struct counts_frame){.address = outside ? COUNTS_FRAME_OUTSIDE : stack->address[i],
                                            .build = stack->build[i],
                                            .kind = pc ? COUNTS_NODE_PC : COUNTS_NODE_RETURN};
    }
    return counts_stacks_add(u->stacks, stack->rate, dimension, abbreviation, frames, n, stack->ticks, e);
}

enum profd_status upload_add_counts(struct profd_upload *u, const struct counts *c, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (uint32_t i = 0; i < c->histogram_count && status == PROFD_OK; i++) {
        const struct counts_histogram *from = &c->histograms[i];
        const struct profd_histogram h = {.build = from->build,
                                          .bins = from->bins,
                                          .rate = from->rate,
                                          .used = from->used,
                                          .low = from->low,
                                          .high = from->high,
                                          .index = c->bin_index + from->first,
                                          .ticks = c->bin_ticks + from->first};
        status = histogram_add(u, &h, from->dimension, from->abbreviation, e);
    }
    status = status ? status : arcs_reserve(u, c->arc_count, e);
    for (uint32_t i = 0; i < c->arc_count && status == PROFD_OK; i++) {
        const struct profd_arc arc = {c->from_build[i], c->to_build[i], c->from[i], c->to[i], c->calls[i]};
        status = profd_upload_add_arc(u, &arc, e);
    }
    if (status == PROFD_OK && c->tree_count > 0 && u->stacks == NULL && (u->stacks = counts_stacks_new()) == NULL) {
        return profd_no_memory(e);
    }
    const struct counts_nodes nodes = COUNTS_NODES(c);
    struct counts_frame path[LIMIT_STACK_DEPTH];
    for (uint32_t i = 0; i < c->tree_count; i++) {
        const struct counts_tree *t = &c->trees[i];
        for (uint32_t k = t->first; k < t->first + t->used && status == PROFD_OK; k++) {
            path[nodes.depth[k]] = counts_node_frame(&nodes, k);
            if (nodes.ticks[k] > 0) {
                status = counts_stacks_add(u->stacks, t->rate, t->dimension, t->abbreviation, path, nodes.depth[k] + 1u,
                                           nodes.ticks[k], e);
            }
        }
    }
    return status;
}

/* The counts and, if there are any, the stacks, which the caller ends with counts_done(trees). */
static enum profd_status counts_with_stacks(const struct profd_upload *u, struct counts *all, struct counts *trees,
                                            struct profd_error *e)
{
    struct counts_sizes sizes = {0};
    *all = u->counts;
    enum profd_status status = u->stacks ? counts_stacks_finish(u->stacks, &sizes, e) : PROFD_OK;
    if (status != PROFD_OK || sizes.trees == 0) {
        return status;
    }
    status = counts_init_sizes(trees, &sizes, e);
    if (status == PROFD_OK) {
        counts_stacks_copy(u->stacks, trees);
        all->tree_count = trees->tree_count;
        all->node_count = trees->node_count;
        all->trees = trees->trees;
        all->node_depth = trees->node_depth;
        all->node_kind = trees->node_kind;
        all->node_build = trees->node_build;
        all->node_address = trees->node_address;
        all->node_ticks = trees->node_ticks;
    }
    return status;
}

enum profd_status upload_encode(const struct profd_upload *u, const struct profd_id *id, uint8_t **frame, size_t *size,
                                struct profd_error *e)
{
    if (u->build_count == 0) {
        return profd_error_set(e, PROFD_REFUSED, "the upload names no build");
    }
    char host[IDENTITY_HOST_SIZE];
    identity_host(host);
    uint8_t *counts = NULL;
    size_t counts_size = 0;
    struct counts all, trees = {0};
    enum profd_status status = counts_with_stacks(u, &all, &trees, e);
    status = status ? status : counts_encode(&all, &counts, &counts_size, e);
    counts_done(&trees);
    if (status != PROFD_OK) {
        return status;
    }
    struct message m = {.type = FRAME_UPLOAD};
    m.as.upload = (struct message_upload){.sender = {id->sender, PROFD_SENDER_SIZE},
                                          .sequence = id->sequence,
                                          .start = u->start,
                                          .end = u->end,
                                          .program = 0,
                                          .build_count = u->build_count,
                                          .builds = u->builds,
                                          .label_count = u->label_count,
                                          .labels = u->labels,
                                          .counts = {counts, counts_size},
                                          .inexact = u->inexact,
                                          .processes_started = u->processes_started,
                                          .process = {u->process, u->has_process ? sizeof u->process : 0},
                                          .claimed = u->claimed,
                                          .uid = u->uid,
                                          .host = host};
    status = message_encode(&m, 0, 0, frame, size, e);
    free(counts);
    return status;
}

uint32_t profd_upload_build_count(const struct profd_upload *u)
{
    return u->build_count;
}

const char *profd_upload_build_id(const struct profd_upload *u, uint32_t index)
{
    return u->builds[index].build_id;
}

const char *profd_upload_build_name(const struct profd_upload *u, uint32_t index)
{
    return u->builds[index].name;
}

void upload_set_process(struct profd_upload *u, const uint8_t *key)
{
    memcpy(u->process, key, sizeof u->process);
    u->has_process = true;
}

void upload_claim_uid(struct profd_upload *u, uint32_t uid)
{
    u->claimed = true;
    u->uid = uid;
}

bool upload_get_claim(const struct profd_upload *u, uint32_t *uid)
{
    *uid = u->uid;
    return u->claimed;
}

/* ---- The sender: this program, this machine, this run ---- */

const char *profd_version(void)
{
    return PROFD_VERSION;
}

void identity_host(char host[IDENTITY_HOST_SIZE])
{
    if (whole_read_text("/etc/machine-id", host, IDENTITY_HOST_SIZE) < IDENTITY_HOST_SIZE - 1 ||
        strspn(host, "0123456789abcdef") < IDENTITY_HOST_SIZE - 1) {
        host[0] = '\0';
    }
}

enum profd_status profd_id_make(struct profd_id *id, struct profd_error *e)
{
    struct profd_id made = {.sequence = 0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    for (unsigned i = 0; i < 6; i++) {
        made.sender[i] = (uint8_t)(ms >> (40 - 8 * i));
    }
    if (getrandom(made.sender + 6, 6, 0) != 6) {
        return profd_error_set(e, PROFD_IO, "no random numbers from the kernel: %s", strerror(errno));
    }
    *id = made;
    return PROFD_OK;
}
