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

#include "core/arena.h"
#include "proto/buildid.h"
#include "proto/counts_tree.h"
#include "proto/frame.h"
#include "proto/label.h"
#include "proto/limits.h"
#include "proto/message.h"
#include "proto/whole.h"

#define SAME(reason) ((int)PROFD_INEXACT_##reason == INEXACT_##reason)
_Static_assert(SAME(THREADS_UNKNOWN) && SAME(CALLER_BUCKET) && SAME(BINS_16_BIT) && SAME(CLOCK) && SAME(SATURATED) &&
                   SAME(CALLS_LOST) && SAME(TICKS_LOST) && SAME(END_NOT_SEEN) && SAME(SAMPLED) && SAME(TICKS_OUTSIDE) &&
                   SAME(PAUSED) && SAME(LABEL_LEFT_OUT) && SAME(SHARED_BINS) && SAME(LEFT_OUT) && SAME(AMBIGUOUS_NAMES),
               "the wire's bits");
_Static_assert(PROFD_NOWHERE == COUNTS_NOWHERE && PROFD_SENDER_SIZE == UPLOAD_SENDER_SIZE, "the wire's values");

struct upload_bin {
    uint32_t index;
    uint64_t ticks;
};

struct profd_upload {
    uint64_t start, end;
    uint32_t inexact, processes_started, uid;
    bool claimed; /* uid is claimed */
    bool has_process;
    uint8_t process[LIMIT_PROCESS];
    uint32_t build_count, label_count, histogram_count, bin_count, arc_count, build_capacity, label_capacity;
    size_t histogram_capacity, bin_capacity, arc_capacity, label_bytes;
    struct arena *arena; /* has the builds and labels */
    struct message_build *builds;
    struct message_label *labels;
    struct counts_histogram *histograms;
    struct upload_bin *bins;
    struct profd_arc *arcs;
    struct counts_stacks *stacks; /* NULL: none */
};

enum profd_status profd_upload_new(struct profd_upload **out, struct profd_error *e)
{
    struct profd_upload *u = calloc(1, sizeof *u);
    if (!u || !(u->arena = arena_new(0))) {
        free(u);
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
    arena_free(u->arena);
    free(u->histograms);
    free(u->bins);
    free(u->arcs);
    counts_stacks_free(u->stacks);
    free(u);
}

enum profd_status profd_upload_add_build(struct profd_upload *u, const char *build_id, const char *name,
                                         uint32_t *index, struct profd_error *e)
{
    struct buildid id;
    TRY(buildid_parse(build_id, strlen(build_id), &id, e));
    FAIL_IF(strlen(name) > LIMIT_BUILD_NAME, e, PROFD_REFUSED, "the name of build %s has %zu bytes; the limit is %u",
            id.text, strlen(name), LIMIT_BUILD_NAME);
    FAIL_IF(u->build_count >= LIMIT_BUILDS, e, PROFD_REFUSED, "an upload may have at most %u builds", LIMIT_BUILDS);
    for (uint32_t i = 0; i < u->build_count; i++) {
        FAIL_IF(strcmp(u->builds[i].build_id, id.text) == 0, e, PROFD_REFUSED, "build %s is in the upload already",
                id.text);
    }
    const struct message_build b = {arena_copy(u->arena, id.text, strlen(id.text)),
                                    arena_copy(u->arena, name, strlen(name))};
    TRY(b.build_id && b.name && ARENA_EXTEND(u->arena, u->builds, u->build_count, u->build_capacity)
            ? PROFD_OK
            : profd_no_memory(e));
    if (index) {
        *index = u->build_count;
    }
    u->builds[u->build_count++] = b;
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
    FAIL_IF(profd_upload_has_label(u, name), e, PROFD_REFUSED, "label %s is given twice", name);
    size_t bytes = strlen(name) + strlen(value);
    FAIL_IF(u->label_count >= LIMIT_LABELS || u->label_bytes + bytes > LIMIT_LABEL_BYTES, e, PROFD_REFUSED,
            "label %s exceeds the limits: at most %u labels with %u bytes in total", name, LIMIT_LABELS,
            LIMIT_LABEL_BYTES);
    const struct message_label l = {arena_copy(u->arena, name, strlen(name)),
                                    arena_copy(u->arena, value, strlen(value))};
    TRY(l.name && l.value && ARENA_EXTEND(u->arena, u->labels, u->label_count, u->label_capacity) ? PROFD_OK
                                                                                                  : profd_no_memory(e));
    u->labels[u->label_count++] = l;
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

/* Adds a histogram with these bins; first of h is not used. */
static enum profd_status histogram_add(struct profd_upload *u, const struct counts_histogram *h, const uint32_t *index,
                                       const uint64_t *ticks, struct profd_error *e)
{
    FAIL_IF(h->build >= u->build_count, e, PROFD_REFUSED,
            "a histogram names build %" PRIu32 "; builds are numbered from 0, and the upload has %" PRIu32, h->build,
            u->build_count);
    FAIL_IF(h->low >= h->high || h->bins == 0 || h->bins > LIMIT_HISTOGRAM_BINS, e, PROFD_REFUSED,
            "a histogram has %" PRIu32 " bins over 0x%" PRIx64 "–0x%" PRIx64
            "; it needs 1 to %u and a low end below the high one",
            h->bins, h->low, h->high, LIMIT_HISTOGRAM_BINS);
    FAIL_IF(h->rate == 0 || h->rate > LIMIT_RATE, e, PROFD_REFUSED,
            "a histogram's rate is %" PRIu32 " ticks per second; it must be 1 to %u", h->rate, LIMIT_RATE);
    for (uint32_t i = 0; i < h->used; i++) {
        FAIL_IF(index[i] >= h->bins || ticks[i] == 0 || (i && index[i] <= index[i - 1]), e, PROFD_REFUSED,
                "bin %" PRIu32 " of a histogram: indexes must ascend and be below %" PRIu32 ", and ticks must not be 0",
                index[i], h->bins);
    }
    FAIL_IF(u->histogram_count >= LIMIT_HISTOGRAMS, e, PROFD_REFUSED, "an upload has at most %u histograms",
            LIMIT_HISTOGRAMS);
    size_t need = (size_t)u->bin_count + h->used;
    FAIL_IF(need > LIMIT_BINS, e, PROFD_REFUSED, "the upload has %zu nonzero bins; the limit is %u", need, LIMIT_BINS);
    TRY(LIST_GROW(u->histograms, u->histogram_count, u->histogram_capacity) ? PROFD_OK : profd_no_memory(e));
    for (uint32_t i = 0; i < h->used; i++) {
        TRY(LIST_GROW(u->bins, u->bin_count + i, u->bin_capacity) ? PROFD_OK : profd_no_memory(e));
        u->bins[u->bin_count + i] = (struct upload_bin){index[i], ticks[i]};
    }
    u->histograms[u->histogram_count] = *h;
    u->histograms[u->histogram_count++].first = u->bin_count;
    u->bin_count += h->used;
    return PROFD_OK;
}

enum profd_status profd_upload_add_histogram(struct profd_upload *u, const struct profd_histogram *h,
                                             struct profd_error *e)
{
    const struct counts_histogram own = {.build = h->build,
                                         .bins = h->bins,
                                         .low = h->low,
                                         .high = h->high,
                                         .rate = h->rate,
                                         .dimension = "seconds",
                                         .abbreviation = 's',
                                         .used = h->used};
    return histogram_add(u, &own, h->index, h->ticks, e);
}

enum profd_status profd_upload_add_arc(struct profd_upload *u, const struct profd_arc *arc, struct profd_error *e)
{
    const uint32_t ends[2] = {arc->from_build, arc->to_build};
    for (size_t i = 0; i < 2; i++) {
        FAIL_IF(ends[i] != PROFD_NOWHERE && ends[i] >= u->build_count, e, PROFD_REFUSED,
                "an arc names build %" PRIu32 "; builds are numbered from 0, and the upload has %" PRIu32, ends[i],
                u->build_count);
    }
    FAIL_IF(u->arc_count == LIMIT_ARCS, e, PROFD_REFUSED, "the upload has more than %u arcs, the limit", LIMIT_ARCS);
    TRY(LIST_GROW(u->arcs, u->arc_count, u->arc_capacity) ? PROFD_OK : profd_no_memory(e));
    u->arcs[u->arc_count++] = *arc;
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
    FAIL_IF(stack->frames == 0 || stack->ticks == 0, e, PROFD_REFUSED,
            "a stack has %" PRIu32 " frames and %" PRIu64 " ticks; it needs at least one of both", stack->frames,
            stack->ticks);
    FAIL_IF(stack->rate == 0 || stack->rate > LIMIT_RATE, e, PROFD_REFUSED,
            "a stack's rate is %" PRIu32 " ticks per second; it must be 1 to %u", stack->rate, LIMIT_RATE);
    for (uint32_t i = 0; i < stack->frames; i++) {
        FAIL_IF(stack->build[i] != PROFD_NOWHERE && stack->build[i] >= u->build_count, e, PROFD_REFUSED,
                "a stack names build %" PRIu32 "; builds are numbered from 0, and the upload has %" PRIu32,
                stack->build[i], u->build_count);
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
        const struct counts_histogram *h = &c->histograms[i];
        status = histogram_add(u, h, c->bin_index + h->first, c->bin_ticks + h->first, e);
    }
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

/* All counts of the upload, with its stacks. The caller calls counts_done. */
static enum profd_status counts_of(const struct profd_upload *u, struct counts *out, struct profd_error *e)
{
    struct counts_sizes sizes = {.histograms = u->histogram_count, .bins = u->bin_count, .arcs = u->arc_count};
    TRY(u->stacks ? counts_stacks_finish(u->stacks, &sizes, e) : PROFD_OK);
    TRY(counts_init_sizes(out, &sizes, e));
    for (uint32_t i = 0; i < u->histogram_count; i++) {
        out->histograms[i] = u->histograms[i];
    }
    for (uint32_t i = 0; i < u->bin_count; i++) {
        out->bin_index[i] = u->bins[i].index;
        out->bin_ticks[i] = u->bins[i].ticks;
    }
    for (uint32_t i = 0; i < u->arc_count; i++) {
        out->from_build[i] = u->arcs[i].from_build;
        out->to_build[i] = u->arcs[i].to_build;
        out->from[i] = u->arcs[i].from;
        out->to[i] = u->arcs[i].to;
        out->calls[i] = u->arcs[i].calls;
    }
    if (u->stacks) {
        counts_stacks_copy(u->stacks, out);
    }
    return PROFD_OK;
}

enum profd_status upload_encode(const struct profd_upload *u, const struct profd_id *id, uint8_t **frame, size_t *size,
                                struct profd_error *e)
{
    FAIL_IF(u->build_count == 0, e, PROFD_REFUSED, "the upload names no build");
    char host[IDENTITY_HOST_SIZE];
    identity_host(host);
    uint8_t *counts = NULL;
    size_t counts_size = 0;
    struct counts all;
    TRY(counts_of(u, &all, e));
    enum profd_status status = counts_encode(&all, &counts, &counts_size, e);
    counts_done(&all);
    TRY(status);
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
    FAIL_IF(getrandom(made.sender + 6, 6, 0) != 6, e, PROFD_IO, "no random numbers from the kernel: %s",
            strerror(errno));
    *id = made;
    return PROFD_OK;
}
