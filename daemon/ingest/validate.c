#include "ingest/validate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/bounds.h"
#include "core/shares.h"
#include "proto/sum.h"
#include "proto/collector.h"
#include "proto/label.h"
#include "proto/limits.h"
#include "proto/segment.h"

/* --- counts against the executables that are stored for their builds */

#define FEW 32 /* builds of a usual upload */

/* Checks the counts of an upload against each build if its uid has an object of it (bounds_check_counts), and cuts its
 * stacks (bounds_cut_stacks). The collector's counters must be of the program, because they are of it as a whole. */
static enum profd_status address_check(struct build_cache *cache, const struct store_upload *u, struct counts *c,
                                       bool *cut, struct profd_error *e)
{
    struct bounds_build few[FEW] = {{0}}, *builds = few;
    enum profd_status status = PROFD_OK;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        FAIL_IF(collector_is_dimension(c->histograms[i].dimension) && c->histograms[i].build != u->program, e,
                PROFD_MALFORMED,
                "histogram %u of dimension " COLLECTOR_DIMENSION
                " is of build number %u: it must be of the program, number %u",
                i, c->histograms[i].build, u->program);
    }
    if (u->build_count > FEW) {
        builds = calloc(u->build_count, sizeof *builds);
    }
    FAIL_IF(!builds, e, PROFD_NO_MEMORY, "no memory to check an upload");
    for (size_t i = 0; status == PROFD_OK && i < u->build_count; i++) {
        builds[i].id = u->builds[i].id.text;
        builds[i].name = u->builds[i].name;
        status = build_cache_find_bounds(cache, u->uid, u->builds[i].id.text, &builds[i].bounds, e);
    }
    if (status == PROFD_OK) {
        status = bounds_check_counts(builds, u->program, (u->inexact & INEXACT_CALLER_BUCKET) != 0, c, e);
    }
    if (status == PROFD_OK) {
        status = bounds_cut_stacks(builds, c, cut, e);
    }
    if (builds != few) {
        free(builds);
    }
    return status;
}

#define SECOND INT64_C(1000000000)

static int compare_ids(const void *a, const void *b)
{
    return strcmp((*(const struct store_build *const *)a)->id.text, (*(const struct store_build *const *)b)->id.text);
}

static enum profd_status validate_builds(const struct message_upload *m, struct arena *a, struct store_upload *u,
                                         struct store_build **out, struct profd_error *e)
{
    FAIL_IF(m->build_count == 0 || m->build_count > LIMIT_BUILDS, e,
            m->build_count == 0 ? PROFD_REFUSED : PROFD_TOO_LARGE,
            "an upload must have 1 to %u builds; this one has %zu", LIMIT_BUILDS, m->build_count);
    FAIL_IF(m->program >= m->build_count, e, PROFD_REFUSED,
            "the program is build %" PRIu32 " of the upload; the builds are numbered from 0, and there are %zu",
            m->program, m->build_count);
    struct store_build *builds = ARENA_ARRAY(a, m->build_count, struct store_build);
    FAIL_IF(!builds, e, PROFD_NO_MEMORY, "no memory for an upload");
    for (size_t i = 0; i < m->build_count; i++) {
        const struct message_build *b = &m->builds[i];
        enum profd_status status = buildid_parse(b->build_id, strlen(b->build_id), &builds[i].id, e);
        if (status != PROFD_OK) {
            return profd_error_wrap(e, status, "build number %zu", i);
        }
        FAIL_IF(strlen(b->name) > LIMIT_BUILD_NAME, e, PROFD_TOO_LARGE,
                "the name of build %s has %zu bytes; at most %u are allowed", builds[i].id.text, strlen(b->name),
                LIMIT_BUILD_NAME);
        builds[i].name = b->name;
    }
    *out = builds;
    u->builds = builds;
    u->build_count = m->build_count;
    u->program = m->program;
    const struct store_build **sorted = ARENA_ARRAY(a, m->build_count, const struct store_build *);
    FAIL_IF(!sorted, e, PROFD_NO_MEMORY, "no memory for an upload");
    for (size_t i = 0; i < m->build_count; i++) {
        sorted[i] = &builds[i];
    }
    qsort(sorted, m->build_count, sizeof *sorted, compare_ids);
    for (size_t i = 1; i < m->build_count; i++) {
        FAIL_IF(strcmp(sorted[i - 1]->id.text, sorted[i]->id.text) == 0, e, PROFD_REFUSED, "build %s is named twice",
                sorted[i]->id.text);
    }
    return PROFD_OK;
}

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const struct store_label *)a)->name, ((const struct store_label *)b)->name);
}

static enum profd_status validate_labels(const struct message_upload *m, struct arena *a, struct store_upload *u,
                                         struct profd_error *e)
{
    size_t bytes = 0, kept = 0;
    FAIL_IF(m->label_count > LIMIT_LABELS, e, PROFD_TOO_LARGE, "an upload has at most %u labels, this has %zu",
            LIMIT_LABELS, m->label_count);
    struct store_label *labels = ARENA_ARRAY(a, m->label_count + 1, struct store_label);
    FAIL_IF(!labels, e, PROFD_NO_MEMORY, "no memory for an upload");
    for (size_t i = 0; i < m->label_count; i++) {
        TRY(label_check(m->labels[i].name, m->labels[i].value, e));
        bytes += strlen(m->labels[i].name) + strlen(m->labels[i].value);
        labels[i] = (struct store_label){.name = m->labels[i].name, .value = m->labels[i].value};
    }
    FAIL_IF(bytes > LIMIT_LABEL_BYTES, e, PROFD_TOO_LARGE, "the labels have %zu bytes; at most %u are allowed", bytes,
            LIMIT_LABEL_BYTES);
    qsort(labels, m->label_count, sizeof *labels, compare_labels);
    for (size_t i = 1; i < m->label_count; i++) {
        FAIL_IF(strcmp(labels[i - 1].name, labels[i].name) == 0, e, PROFD_REFUSED, "label \"%s\" is given twice",
                labels[i].name);
    }
    for (size_t i = 0; i < m->label_count; i++) {
        if (labels[i].value[0] != 0) {
            labels[kept++] = labels[i];
        }
    }
    u->labels = labels;
    u->label_count = kept;
    return PROFD_OK;
}

/* Validates the sender's id, the sequence, the host and the process's key, and finds the random group of the process.
 * A sender that chooses its bytes spoils only the error estimates of its own counts. */
static enum profd_status validate_sender(const struct message_upload *m, struct store_upload *u, struct profd_error *e)
{
    static const uint8_t nobody[UPLOAD_SENDER_SIZE];
    uint8_t own[sizeof u->sender + sizeof u->sequence]; /* an upload without a key is its process's only one */
    FAIL_IF(m->sender.size != UPLOAD_SENDER_SIZE, e, PROFD_REFUSED, "the sender's id has %zu bytes, not %d",
            m->sender.size, UPLOAD_SENDER_SIZE);
    FAIL_IF(memcmp(m->sender.data, nobody, UPLOAD_SENDER_SIZE) == 0, e, PROFD_REFUSED,
            "the sender's id is all zeros, not random");
    FAIL_IF(m->sequence == 0, e, PROFD_REFUSED, "the upload's sequence is 0; sequences begin with 1");
    memcpy(u->sender, m->sender.data, UPLOAD_SENDER_SIZE);
    u->sequence = m->sequence;
    const size_t n = strlen(m->host);
    FAIL_IF(n != 0 && (n != 32 || strspn(m->host, "0123456789abcdefABCDEF") != n), e, PROFD_REFUSED,
            "host \"%s\" is not a machine-id of 32 hexadecimal digits", m->host);
    for (size_t i = 0; i <= n; i++) { /* one spelling, or one upload would have two ids */
        const char c = m->host[i];
        u->host[i] = (char)(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    }
    FAIL_IF(m->process.size > LIMIT_PROCESS, e, PROFD_TOO_LARGE,
            "the key of a process may have at most %u bytes, not %zu", LIMIT_PROCESS, m->process.size);
    memcpy(own, u->sender, sizeof u->sender);
    memcpy(own + sizeof u->sender, &u->sequence, sizeof u->sequence);
    u->group = m->process.size > 0 ? process_group_find(u->host, u->uid, m->process.data, m->process.size)
                                   : process_group_find(u->host, u->uid, own, sizeof own);
    return PROFD_OK;
}

enum profd_status validate_upload(uint32_t uid, int64_t received, const struct message_upload *m, struct arena *a,
                                  struct store_upload *u, struct store_build **builds, struct profd_error *e)
{
    *u = (struct store_upload){.uid = uid,
                               .received = received,
                               .inexact = m->inexact,
                               .processes_started = m->processes_started,
                               .counts = m->counts.data,
                               .counts_size = m->counts.size};
    FAIL_IF(m->kind != 0 || m->shares.size > 0, e, PROFD_REFUSED,
            "an upload of kind %" PRIu32 " with shares of %zu bytes: only hosts send those, to a centre", m->kind,
            m->shares.size);
    TRY(validate_sender(m, u, e));
    TRY(validate_builds(m, a, u, builds, e));
    TRY(validate_labels(m, a, u, e));
    FAIL_IF(m->inexact & ~(uint32_t)INEXACT_SENT, e, PROFD_REFUSED,
            "the reasons for inexactness 0x%" PRIx32 " hold unknown bits; known are 0x%x", m->inexact,
            (unsigned)INEXACT_SENT);
    /* The sender's window is accepted if its end is near the time of receipt. An unknown start becomes the end. */
    const int64_t past = received - LIMIT_CLOCK_PAST_DAYS * 86400 * SECOND;
    const int64_t future = received + LIMIT_CLOCK_FUTURE_MINUTES * 60 * SECOND;
    const bool near = m->end <= INT64_MAX && (int64_t)m->end >= past && (int64_t)m->end <= future;
    u->end = near ? (int64_t)m->end : received;
    u->start = !near || m->start == 0 || m->start > m->end ? u->end : (int64_t)m->start;
    if (!near || m->start > m->end) {
        u->inexact |= INEXACT_CLOCK;
    }
    return PROFD_OK;
}

enum profd_status validate_decoded(struct build_cache *cache, struct store_build *builds, struct store_upload *u,
                                   struct counts *c, bool *cut, struct profd_error *e)
{
    struct share shares[LIMIT_BUILDS];
    TRY(address_check(cache, u, c, cut, e));
    counts_totals(c, &u->ticks, &u->calls);
    u->stack_ticks = sum_all(c->node_ticks, c->node_count);
    memset(shares, 0, u->build_count * sizeof shares[0]);
    const bool saturated = share_add_counts(shares, c);
    for (size_t i = 0; i < u->build_count; i++) {
        builds[i].nanoseconds = shares[i].nanoseconds;
        builds[i].calls = shares[i].calls;
    }
    if (saturated || u->ticks >= SUM_MAX || u->calls >= SUM_MAX) {
        u->inexact |= INEXACT_SATURATED;
    }
    return PROFD_OK;
}

/* Stacks say where ticks of the histograms came from: there are no more of them. O(trees · histograms + nodes). */
static enum profd_status check_stack_ticks(const struct counts *c, struct profd_error *e)
{
    for (uint32_t i = 0; i < c->tree_count; i++) {
        const struct counts_tree *t = &c->trees[i];
        const uint64_t stacks = sum_all(c->node_ticks + t->first, t->used);
        uint64_t ticks = 0; /* of the histograms of this clock */
        bool ignored = false;
        for (uint32_t k = 0; k < c->histogram_count; k++) {
            const struct counts_histogram *h = &c->histograms[k];
            if (h->rate == t->rate && h->abbreviation == t->abbreviation &&
                strncmp(h->dimension, t->dimension, sizeof t->dimension) == 0) {
                sum_add(&ticks, sum_all(c->bin_ticks + h->first, h->used), &ignored);
            }
        }
        FAIL_IF(stacks > ticks, e, PROFD_MALFORMED,
                "stacks %u have %" PRIu64 " ticks at %u a second; the histograms of this clock have %" PRIu64, i,
                stacks, t->rate, ticks);
    }
    return PROFD_OK;
}

enum profd_status validate_counts(struct build_cache *cache, struct store_build *builds, struct store_upload *u,
                                  uint8_t **cut, struct profd_error *e)
{
    struct counts c;
    bool changed = false;
    size_t size = 0;
    TRY(counts_decode(u->counts, u->counts_size, (uint32_t)u->build_count, &c, e));
    enum profd_status status =
        c.sorted ? profd_error_set(e, PROFD_MALFORMED, "the counts of an upload are sorted: those of sums are")
                 : check_stack_ticks(&c, e);
    if (status == PROFD_OK) {
        status = validate_decoded(cache, builds, u, &c, &changed, e);
    }
    if (status == PROFD_OK && changed) {
        status = counts_encode(&c, cut, &size, e);
    }
    if (status == PROFD_OK && changed) {
        u->counts = *cut;
        u->counts_size = size;
    }
    counts_done(&c);
    return status;
}
