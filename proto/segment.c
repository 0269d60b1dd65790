#include "proto/segment.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "proto/buildid.h"
#include "proto/collector.h"
#include "proto/frame.h"
#include "proto/label.h"

/* FNV-1a. */
static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

uint32_t process_group_find(const char *host, uint32_t uid, const void *key, size_t n)
{
    uint64_t hash = mix_bytes(UINT64_C(0xcbf29ce484222325), host, strlen(host));
    hash = mix_bytes(hash, &uid, sizeof uid);
    hash = mix_bytes(hash, key, n);
    /* FNV's low bits know little of the last bytes. */
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(hash >> 60);
}

static enum profd_status check_key(const struct segment *s, struct profd_error *e)
{
    FAIL_IF((unsigned)s->kind >= SEGMENT_KINDS, e, PROFD_MALFORMED, "an upload of kind %u: there are %u",
            (unsigned)s->kind, SEGMENT_KINDS);
    FAIL_IF(s->sequence < 1 || s->sequence > UINT32_MAX, e, PROFD_MALFORMED,
            "an upload with sequence %llu: it must be 1 to 2^32-1", (unsigned long long)s->sequence);
    return PROFD_OK;
}

static enum profd_status check_sums(const struct segment *s, struct profd_error *e)
{
    FAIL_IF(s->first < 0 || s->ended < 0 || s->ended > s->last || s->ended / SEGMENT_HOUR != s->last / SEGMENT_HOUR, e,
            PROFD_MALFORMED,
            "an upload from %lld to %lld ns that ended first at %lld ns: both ends must be in one "
            "hour after 1970, and the first not after the last",
            (long long)s->first, (long long)s->last, (long long)s->ended);
    FAIL_IF((s->inexact & ~(uint32_t)INEXACT_SENT) != 0, e, PROFD_MALFORMED,
            "an upload with reasons 0x%x: known are 0x%x", s->inexact, (unsigned)INEXACT_SENT);
    bool large = s->uploads > SEGMENT_COUNT_MAX;
    for (unsigned g = 0; g < SEGMENT_GROUPS; g++) {
        large |= s->processes[g] > SEGMENT_COUNT_MAX;
    }
    FAIL_IF(large, e, PROFD_MALFORMED, "a sum of more than 2^63-1 uploads or processes");
    return s->boot != NULL && strlen(s->boot) > SEGMENT_BOOT_MAX
               ? profd_error_set(e, PROFD_TOO_LARGE, "a boot-id of %zu bytes, at most %u", strlen(s->boot),
                                 SEGMENT_BOOT_MAX)
               : PROFD_OK;
}

static int compare_builds(const void *a, const void *b)
{
    return strcmp((*(const struct message_build *const *)a)->build_id,
                  (*(const struct message_build *const *)b)->build_id);
}

static enum profd_status check_builds(const struct segment *s, struct profd_error *e)
{
    const struct message_build *sorted[LIMIT_BUILDS] = {NULL};
    FAIL_IF(s->build_count < 1 || s->build_count > LIMIT_BUILDS || s->program >= s->build_count, e, PROFD_MALFORMED,
            "an upload of program %u of %zu builds: there are 1 to %u", s->program, s->build_count, LIMIT_BUILDS);
    for (size_t i = 0; i < s->build_count; i++) {
        struct buildid id;
        const struct message_build *b = sorted[i] = &s->builds[i];
        FAIL_IF(buildid_parse(b->build_id, strlen(b->build_id), &id, NULL) || strcmp(id.text, b->build_id) != 0, e,
                PROFD_MALFORMED, "build %zu of an upload: its build-id is none", i);
        FAIL_IF(strlen(b->name) > LIMIT_BUILD_NAME, e, PROFD_TOO_LARGE,
                "build %zu of an upload: a name of %zu bytes, at most %u", i, strlen(b->name), LIMIT_BUILD_NAME);
    }
    qsort(sorted, s->build_count, sizeof sorted[0], compare_builds);
    for (size_t i = 1; i < s->build_count; i++) {
        FAIL_IF(strcmp(sorted[i - 1]->build_id, sorted[i]->build_id) == 0, e, PROFD_MALFORMED,
                "an upload with build %s twice", sorted[i]->build_id);
    }
    return PROFD_OK;
}

/* Rows are limited before memory is taken for them. */
static enum profd_status check_sizes(const struct counts_sizes *n, uint64_t raw, struct profd_error *e)
{
    const uint64_t heads = (uint64_t)n->histograms + n->trees, rows = (uint64_t)n->bins + n->arcs + n->nodes;
    return heads * LIMIT_SEGMENT_HISTOGRAM + rows > LIMIT_SEGMENT_ROWS || raw > LIMIT_SEGMENT_CONTENT
               ? profd_error_set(e, PROFD_TOO_LARGE,
                                 "an upload of %llu histograms and clocks, %llu bins, arcs and nodes, and %llu bytes: "
                                 "they count as more than %u rows, or are more than %u bytes",
                                 (unsigned long long)heads, (unsigned long long)rows, (unsigned long long)raw,
                                 LIMIT_SEGMENT_ROWS, LIMIT_SEGMENT_CONTENT)
               : PROFD_OK;
}

/* Of sorted counts, the order of a sum: the centre adds its own to the ranks. */
static enum profd_status check_counts(const struct segment *s, struct profd_error *e)
{
    const struct counts *c = &s->counts;
    bool ordered = true;
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        FAIL_IF(collector_is_dimension(h->dimension) && h->build != s->program, e, PROFD_MALFORMED,
                "histogram %u of dimension " COLLECTOR_DIMENSION
                " is of build number %u: it must be of the program, number %u",
                i, h->build, s->program);
        ordered &= !c->sorted || (h->order.commit == 0 && h->order.rank < LIMIT_SEGMENT_ROWS);
    }
    for (uint32_t i = 0; i < c->arc_count && c->sorted; i++) {
        ordered &= c->commit[i] == 0 && c->rank[i] < LIMIT_SEGMENT_ROWS;
    }
    FAIL_IF(!ordered, e, PROFD_MALFORMED,
            "rows of a sum that arrived in other uploads than number 0, or in a position from %u on",
            LIMIT_SEGMENT_ROWS);
    return s->shares.size > 0 && !c->sorted
               ? profd_error_set(e, PROFD_MALFORMED, "an upload that has shares, and rows that are not sorted")
               : PROFD_OK;
}

enum profd_status segment_encode(const struct segment *s, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    struct message m = {.type = FRAME_UPLOAD};
    struct message_upload *u = &m.as.upload;
    uint8_t digest[SEGMENT_DIGEST_SIZE] = {0}, *counts = NULL, *frame = NULL;
    size_t n = 0;
    TRY(check_key(s, e));
    u->kind = s->kind;
    u->sender = (struct message_bytes){s->epoch, sizeof s->epoch};
    u->sequence = (uint32_t)s->sequence;
    u->end = (uint64_t)s->last;
    u->checksum = (struct message_bytes){digest, SEGMENT_CHECKSUM_SIZE};
    if (s->kind == SEGMENT_COUNTS) {
        const struct counts *c = &s->counts;
        const struct counts_sizes sizes = {.histograms = c->histogram_count,
                                           .bins = c->bin_count,
                                           .arcs = c->arc_count,
                                           .trees = c->tree_count,
                                           .nodes = c->node_count};
        TRY(check_sums(s, e));
        TRY(check_builds(s, e));
        TRY(check_sizes(&sizes, 0, e));
        TRY(check_counts(s, e));
        u->start = (uint64_t)s->first;
        u->ended = s->ended == s->last ? 0 : (uint64_t)s->ended;
        u->uid = s->uid;
        u->inexact = s->inexact;
        u->uploads = s->uploads;
        u->group_count = SEGMENT_GROUPS;
        u->processes = s->processes;
        u->program = s->program;
        u->build_count = s->build_count;
        u->builds = s->builds;
        u->label_count = s->label_count;
        u->labels = s->labels;
        u->boot = s->boot;
        u->shares = s->shares;
        TRY(counts_encode(c, &counts, &n, e));
        u->counts = (struct message_bytes){counts, n};
    }
    enum profd_status status = message_encode(&m, 0, 0, &frame, &n, e);
    free(counts);
    TRY(status);
    n -= FRAME_HEADER_SIZE;
    memmove(frame, frame + FRAME_HEADER_SIZE, n);
    segment_digest(frame, n - SEGMENT_CHECKSUM_FIELD, digest);
    memcpy(frame + n - SEGMENT_CHECKSUM_SIZE, digest, SEGMENT_CHECKSUM_SIZE);
    *out = frame;
    *out_size = n;
    return PROFD_OK;
}

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const struct message_label *)a)->name, ((const struct message_label *)b)->name);
}

/* The labels sorted, without empty values, which say the same as none. */
static enum profd_status take_labels(const struct message_upload *u, struct segment *s, struct profd_error *e)
{
    size_t bytes = 0;
    struct message_label *labels = s->block = calloc(u->label_count + 1, sizeof *labels);
    TRY(labels != NULL ? PROFD_OK : profd_no_memory(e));
    for (size_t i = 0; i < u->label_count; i++) {
        const struct message_label *l = &u->labels[i];
        bytes += strlen(l->name) + strlen(l->value);
        if (label_check(l->name, l->value, e) || bytes > LIMIT_LABEL_BYTES) {
            return bytes > LIMIT_LABEL_BYTES
                       ? profd_error_set(e, PROFD_TOO_LARGE, "labels of more than %u bytes", LIMIT_LABEL_BYTES)
                       : PROFD_MALFORMED;
        }
        labels[s->label_count] = *l;
        s->label_count += l->value[0] != 0;
    }
    qsort(labels, s->label_count, sizeof *labels, compare_labels);
    for (size_t i = 1; i < s->label_count; i++) {
        FAIL_IF(strcmp(labels[i - 1].name, labels[i].name) == 0, e, PROFD_MALFORMED, "label \"%s\" is given twice",
                labels[i].name);
    }
    s->labels = labels;
    return PROFD_OK;
}

/* An upload with shares is a sum of many. One without is of one process, whose group is found as on the Unix socket. */
static enum profd_status take_sums(const struct message_upload *u, struct segment *s, struct profd_error *e)
{
    s->uid = u->uid;
    s->first = u->start == 0 || u->start > u->end ? s->last : (int64_t)u->start;
    s->ended = u->ended == 0 || u->ended > INT64_MAX ? s->last : (int64_t)u->ended;
    s->inexact = u->inexact | (u->start > u->end ? (uint32_t)INEXACT_CLOCK : 0);
    s->program = u->program;
    s->build_count = u->build_count;
    s->builds = u->builds;
    s->boot = u->boot;
    s->shares = u->shares;
    if (s->shares.size > 0) {
        FAIL_IF(u->group_count != 0 && u->group_count != SEGMENT_GROUPS, e, PROFD_MALFORMED,
                "processes of %zu groups: there are %u", u->group_count, SEGMENT_GROUPS);
        s->uploads = u->uploads;
        for (size_t g = 0; g < u->group_count; g++) {
            s->processes[g] = u->processes[g];
        }
        return PROFD_OK;
    }
    uint8_t own[UPLOAD_SENDER_SIZE + sizeof u->sequence]; /* an upload without a key is its process's only one */
    struct message_bytes key = u->process;
    FAIL_IF(key.size > LIMIT_PROCESS, e, PROFD_TOO_LARGE, "the key of a process of %zu bytes, at most %u", key.size,
            LIMIT_PROCESS);
    if (key.size == 0) {
        memcpy(own, s->epoch, sizeof s->epoch);
        memcpy(own + sizeof s->epoch, &u->sequence, sizeof u->sequence);
        key = (struct message_bytes){own, sizeof own};
    }
    s->uploads = 1;
    s->group = process_group_find(u->host, u->uid, key.data, key.size);
    s->processes[s->group] = u->processes_started;
    return PROFD_OK;
}

static enum profd_status take_counts(const struct message_upload *u, struct segment *s, struct profd_error *e)
{
    struct counts_sizes sizes;
    uint64_t raw;
    FAIL_IF(u->counts.size > 0 && u->counts.data[0] > SEGMENT_VERSION, e, PROFD_UNKNOWN_VERSION,
            "counts of version %u: only %d is known", u->counts.data[0], SEGMENT_VERSION);
    TRY(counts_decode_sizes(u->counts.data, u->counts.size, &sizes, &raw, e));
    TRY(check_sizes(&sizes, raw, e));
    TRY(counts_decode(u->counts.data, u->counts.size, (uint32_t)u->build_count, &s->counts, e));
    TRY(check_counts(s, e));
    return s->shares.size > 0 ? counts_decode_shares(&s->counts, s->shares.data, s->shares.size, NULL, NULL, e)
                              : PROFD_OK;
}

static enum profd_status take_all(struct segment *s, const uint8_t *in, size_t n, struct profd_error *e)
{
    const struct message_upload *u = &s->message.as.upload;
    FAIL_IF(u->sender.size != SEGMENT_EPOCH_SIZE || u->end > INT64_MAX, e, PROFD_MALFORMED,
            "an upload of a sender of %zu bytes until %llu ns", u->sender.size, (unsigned long long)u->end);
    memcpy(s->epoch, u->sender.data, sizeof s->epoch);
    s->sequence = u->sequence;
    s->kind = (enum segment_kind)u->kind;
    s->last = (int64_t)u->end;
    s->hour = s->last / SEGMENT_HOUR;
    TRY(check_key(s, e));
    /* Sums and keys have a checksum over all that is before it. */
    if (s->kind != SEGMENT_COUNTS || u->shares.size > 0 || u->checksum.size > 0) {
        uint8_t digest[SEGMENT_DIGEST_SIZE];
        FAIL_IF(u->checksum.size != SEGMENT_CHECKSUM_SIZE || n < SEGMENT_CHECKSUM_FIELD, e, PROFD_MALFORMED,
                "a checksum of %zu bytes, not %u", u->checksum.size, SEGMENT_CHECKSUM_SIZE);
        segment_digest(in, n - SEGMENT_CHECKSUM_FIELD, digest);
        FAIL_IF(memcmp(digest, in + n - SEGMENT_CHECKSUM_SIZE, SEGMENT_CHECKSUM_SIZE) != 0, e, PROFD_MALFORMED,
                "the checksum is not that of the %zu bytes before it", n - SEGMENT_CHECKSUM_FIELD);
    }
    if (s->kind != SEGMENT_COUNTS) {
        return PROFD_OK;
    }
    TRY(take_sums(u, s, e));
    TRY(check_sums(s, e));
    TRY(check_builds(s, e));
    TRY(take_labels(u, s, e));
    return take_counts(u, s, e);
}

enum profd_status segment_decode(const uint8_t *in, size_t n, struct segment *s, struct profd_error *e)
{
    struct segment result = {.kind = SEGMENT_COUNTS};
    enum profd_status status = message_decode(FRAME_UPLOAD, in, n, &result.message, e);
    status = status ? status : take_all(&result, in, n, e);
    if (status) {
        struct segment key = {.sequence = result.sequence};
        memcpy(key.epoch, result.epoch, sizeof key.epoch);
        segment_done(&result);
        result = key;
    }
    *s = result;
    return status;
}

void segment_done(struct segment *s)
{
    counts_done(&s->counts);
    message_done(&s->message);
    free(s->block);
    *s = (struct segment){.kind = SEGMENT_COUNTS};
}

void segment_digest(const uint8_t *in, size_t n, uint8_t out[SEGMENT_DIGEST_SIZE])
{
    struct sha256_ctx c;
    sha256_init(&c);
    sha256_update(&c, n, in);
    sha256_digest(&c, SEGMENT_DIGEST_SIZE, out);
}

size_t segment_weight(const uint8_t *in, size_t n)
{
    struct message_bytes counts = message_upload_counts(in, n);
    struct counts_sizes sizes;
    uint64_t raw;
    return counts_decode_sizes(counts.data, counts.size, &sizes, &raw, NULL) || check_sizes(&sizes, raw, NULL)
               ? 0
               : n + counts_weigh(&sizes);
}
