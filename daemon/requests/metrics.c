#include "requests/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "proto/hex.h"
#include "render/document.h"

static void metrics_typed(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_add_format(out, "# HELP profd_%s %s\n# TYPE profd_%s %s\n", name, help, name, type);
}

/* A name that ends in _total is a counter, any other a gauge. */
static void metrics_head(struct buffer *out, const char *name, const char *help)
{
    const char *const end = strrchr(name, '_');

    metrics_typed(out, name, end && !strcmp(end, "_total") ? "counter" : "gauge", help);
}

static void metrics_value(struct buffer *out, const char *name, const char *help, uint64_t value)
{
    metrics_head(out, name, help);
    buffer_add_format(out, "profd_%s %" PRIu64 "\n", name, value);
}

static void metrics_labelled(struct buffer *out, const char *name, const char *label, const char *text, uint64_t value)
{
    buffer_add_format(out, "profd_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, text, value);
}

static void metrics_histogram_text(struct buffer *out, const char *name, const char *label, const char *label_value,
                                   const struct durations *h)
{
    char labels[96] = "", only[100] = "";
    uint64_t sum = 0;

    if (label) {
        snprintf(labels, sizeof labels, "%s=\"%s\",", label, label_value);
        snprintf(only, sizeof only, "{%s=\"%s\"}", label, label_value);
    }
    for (unsigned i = 0; i < DURATIONS_BOUNDS; i++) {
        sum += h->buckets[i];
        buffer_add_format(out, "profd_%s_bucket{%sle=\"%g\"} %" PRIu64 "\n", name, labels, durations_bounds[i], sum);
    }
    buffer_add_format(out, "profd_%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, h->count);
    buffer_add_format(out, "profd_%s_sum%s ", name, only);
    buffer_add_shortest(out, h->sum);
    buffer_add_format(out, "\nprofd_%s_count%s %" PRIu64 "\n", name, only, h->count);
}

static void metrics_real(struct buffer *out, const char *name, const char *help, double value)
{
    metrics_head(out, name, help);
    buffer_add_format(out, "profd_%s ", name);
    buffer_add_shortest(out, value);
    buffer_add_char(out, '\n');
}

/* Adds the counts by status that are not 0. labels: those before the label reason, with a comma behind each. */
static void metrics_reasons(struct buffer *out, const char *name, const char *labels, const struct refusals *r)
{
    for (unsigned i = 0; i < REFUSALS_STATUSES; i++) {
        const char *status = profd_status_name((enum profd_status)i);

        if (!r->of[i]) {
            continue;
        }
        buffer_add_format(out, "profd_%s{%sreason=\"", name, labels);
        for (; *status; status++) {
            buffer_add_char(out, (char)tolower((unsigned char)*status));
        }
        buffer_add_format(out, "\"} %" PRIu64 "\n", r->of[i]);
    }
}

static void metrics_live(const struct live_counts *c, struct buffer *out)
{
    metrics_value(out, "attached_processes", "Live processes.", c->processes);
    metrics_value(out, "attached_silent_processes", "Live processes without an open connection.", c->silent);
    metrics_value(out, "attached_paused_processes", "Live processes that are paused.", c->paused);
    metrics_value(out, "attached_kept_memories", "Live processes with descriptors in the service manager's store.",
                  c->kept);
    metrics_value(out, "attaches_total", "Processes attached, again or for the first time.", c->attached);
    metrics_head(out, "attach_refused_total", "Processes not attached, by reason.");
    metrics_reasons(out, "attach_refused_total", "", &c->attach_refused);
    metrics_value(out, "harvests_total", "Harvests of live processes with new counts that were stored.", c->harvests);
    metrics_typed(out, "harvest_seconds", "histogram", "Time from the start of such a harvest to its commit.");
    metrics_histogram_text(out, "harvest_seconds", NULL, NULL, &c->seconds);
    metrics_head(out, "harvest_refused_total",
                 "Processes that are no longer read because their memory is invalid, by reason.");
    metrics_reasons(out, "harvest_refused_total", "", &c->harvests_refused);
    metrics_value(out, "processes_ended_total", "Processes read for the last time after their end.", c->ended);
    metrics_value(out, "processes_end_not_seen_total", "Processes that ended unseen, or that are not read any more.",
                  c->orphaned);
}

static void metrics_uploads(const struct pages_numbers *n, struct buffer *out)
{
    const struct upload_counts *u = &n->uploads;

    metrics_head(out, "uploads_total", "Uploads answered, by result and, if rejected, reason.");
    buffer_add_format(out, "profd_uploads_total{result=\"ok\",reason=\"\"} %" PRIu64 "\n", u->stored);
    buffer_add_format(out, "profd_uploads_total{result=\"duplicate\",reason=\"\"} %" PRIu64 "\n", u->duplicate);
    metrics_reasons(out, "uploads_total", "result=\"rejected\",", &u->refused);
    metrics_value(out, "relabelled_uploads_total",
                  "Stored uploads and harvests with the value \"other\" of a label that has too many values.",
                  u->relabelled + n->live.relabelled + n->centre.segments.limited);
    metrics_value(out, "upload_bytes_total", "Bytes of uploads received.", u->bytes);
    metrics_value(out, "samples_total", "Clock ticks in stored uploads since start.", u->samples + n->live.samples);
    metrics_value(out, "calls_total", "Calls in stored uploads since start.", u->calls + n->live.calls);
    metrics_typed(out, "upload_duration_seconds", "histogram", "Time from the complete frame to its answer.");
    metrics_histogram_text(out, "upload_duration_seconds", NULL, NULL, &u->seconds);
    metrics_value(out, "objects_wanted_total", "Executables requested.", n->objects.requested);
    metrics_head(out, "objects_total", "Executables delivered, by result.");
    metrics_labelled(out, "objects_total", "result", "ok", n->objects.stored);
    metrics_labelled(out, "objects_total", "result", "failed", n->objects.failed);
}

static void metrics_store(const struct pages_numbers *n, const struct store_totals *t, struct buffer *out)
{
    static const char *const states[] = {"held", "given-up", "missing"};

    metrics_value(out, "builds", "Builds known.", t->builds);
    metrics_value(out, "symbols_missing_builds", "Builds without symbols.", t->builds_without_names);
    metrics_value(out, "symbols_missing_since_seconds",
                  "First count of the build without symbols that was stored first, in seconds since 1970; 0: none.",
                  (uint64_t)(t->nameless_since / 1000000000));
    metrics_value(out, "accepted_uploads_total", "Uploads ever stored, including removed ones.", t->uploads);
    metrics_value(out, "retired_uploads_total", "Uploads removed by retention or by delete.", t->retired_uploads);
    metrics_value(out, "retired_samples_total", "Clock ticks removed with them.", t->retired_ticks);
    metrics_value(out, "retired_calls_total", "Calls removed with them.", t->retired_calls);
    metrics_value(out, "stored_uploads", "Uploads stored, single or in sums.", t->uploads - t->retired_uploads);
    metrics_value(out, "stored_samples", "Clock ticks stored.", t->ticks - t->retired_ticks);
    metrics_value(out, "stored_calls", "Calls stored.", t->calls - t->retired_calls);
    metrics_value(out, "raw_uploads", "Uploads that are not rolled up.", t->raw_uploads);
    metrics_value(out, "raw_bytes", "Bytes of their counts.", t->raw_bytes);
    metrics_value(out, "rollups", "Sums stored, of hours, of days and of all time.", t->rollups);
    metrics_value(out, "compaction_backlog_bytes", "Bytes of uploads above raw-bytes.", n->upkeep.backlog_bytes);
    metrics_value(out, "rolled_up_uploads_total", "Uploads rolled up since start.", n->upkeep.rolled_up);
    metrics_value(out, "db_bytes", "Size of the database file.", t->file_bytes);
    metrics_value(out, "wal_bytes", "Size of the write-ahead log.", t->wal_bytes);
    metrics_value(out, "db_free_bytes", "Free bytes in the database file.", t->free_bytes);
    metrics_value(out, "writable", "1 unless the store had an input/output error.", !n->failure);
    metrics_value(out, "damaged_databases", "Damaged databases that were set aside and still exist.", n->damaged);
    metrics_value(out, "executable_readers_gone",
                  "Processes that read executables, have ended and are not started again yet.",
                  n->objects.readers_gone);
    metrics_value(out, "no_space", "1 if the latest write found no space.", n->full != NULL);
    metrics_head(out, "reserve", "State of the reserve for removals on a full disk: 1 for the current state.");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        metrics_labelled(out, "reserve", "state", states[i], !strcmp(reserve_name(n->reserve), states[i]));
    }
    metrics_value(out, "reserve_bytes", "Bytes of the reserve.", n->reserve_bytes);
}

static void metrics_relay(const struct relay_counts *n, const struct store_relay *r, struct buffer *out)
{
    metrics_head(out, "relay_uploads", "Uploads accepted since relay was configured, by state.");
    metrics_labelled(out, "relay_uploads", "state", "acknowledged", r->acknowledged.uploads);
    metrics_labelled(out, "relay_uploads", "state", "withdrawn", r->withdrawn.uploads);
    metrics_labelled(out, "relay_uploads", "state", "sealed", r->sealed.uploads);
    metrics_labelled(out, "relay_uploads", "state", "open", r->open.uploads);
    metrics_value(out, "relay_uploads_not_counted", "Uploads acknowledged and not counted by the centre.",
                  r->rejected.uploads);
    metrics_value(out, "relay_outgoing_open", "Outgoing uploads that are not sealed.", r->open_segments);
    metrics_value(out, "relay_outgoing_sealed", "Outgoing uploads that are sealed and not acknowledged.",
                  r->sealed_segments);
    metrics_value(out, "relay_kept_bytes", "Bytes of kept acknowledged uploads.", r->kept_bytes);
    metrics_value(out, "relay_oldest_timestamp_seconds",
                  "When the oldest unacknowledged outgoing upload was opened; 0: none.",
                  (uint64_t)(r->oldest / 1000000000));
    metrics_value(out, "relay_fetched_total", "Outgoing uploads given to profd-relay.", n->fetched);
    metrics_value(out, "relay_error", "1: profd-relay could not reach the centre.", n->error[0] != 0);
}

static void metrics_centre(const struct centre_counts *n, const struct store_centre *c, struct buffer *out)
{
    metrics_value(out, "centre_hosts", "Hosts that have ever connected.", c->hosts);
    metrics_value(out, "centre_series", "Series of all hosts in the current or previous hour.", c->series);
    metrics_value(out, "centre_host_detail", "0: only totals are stored for some hosts.", c->detail);
    metrics_value(out, "centre_uploads_total", "Counted uploads of processes.", c->counted.uploads);
    metrics_value(out, "centre_last_upload_timestamp_seconds", "When the latest upload arrived; 0: never.",
                  (uint64_t)(c->last / 1000000000));
    if (n->interval_ms) {
        metrics_real(out, "centre_interval_seconds", "Interval in which each host connects once.",
                     (double)n->interval_ms / 1000);
    }
    metrics_value(out, "centre_damaged_sums", "Stored sums that cannot be read and were put aside.", c->damaged);
    metrics_value(out, "centre_quarantined", "Uploads of hosts that could not be read.", c->quarantined);
    metrics_value(out, "centre_arrivals_total", "Batches of hosts.", n->arrived);
    metrics_head(out, "centre_objects_total", "Parsed objects that hosts sent, by result.");
    metrics_labelled(out, "centre_objects_total", "result", "stored", n->objects_stored);
    metrics_labelled(out, "centre_objects_total", "result", "refused", n->objects_refused);
    metrics_head(out, "centre_received_total", "Uploads of hosts that were answered, by result.");
    metrics_labelled(out, "centre_received_total", "result", "counted", n->segments.counted);
    metrics_labelled(out, "centre_received_total", "result", "repeat", n->segments.again);
    metrics_labelled(out, "centre_received_total", "result", "put-aside", n->segments.put_aside);
    metrics_labelled(out, "centre_received_total", "result", "conflict", n->segments.conflicts);
    metrics_labelled(out, "centre_received_total", "result", "refused", n->segments.refused);
}

void metrics_format(const struct pages_setup *setup, const struct pages_numbers *n, const struct pages_store *store,
                    const struct query_cache_use *cache, double start, struct buffer *out)
{
    const struct store_totals *totals = &store->totals;

    metrics_head(out, "build_info", "The running version.");
    buffer_add_format(out, "profd_build_info{version=\"%s\"} 1\n", PROFD_VERSION);
    metrics_real(out, "start_time_seconds", "When the daemon started, since the epoch.", start);
    metrics_uploads(n, out);

    metrics_typed(out, "query_duration_seconds", "histogram", "Time from the query to its answer.");
    for (unsigned i = 0; i < QUERY_KINDS; i++) {
        metrics_histogram_text(out, "query_duration_seconds", "endpoint", query_kind_name((enum query_kind)i),
                               &n->queries[i]);
    }
    metrics_head(out, "http_responses_total", "HTTP answers by class.");
    for (unsigned i = 1; i < 6; i++) {
        buffer_add_format(out, "profd_http_responses_total{class=\"%uxx\"} %" PRIu64 "\n", i, n->http.answered[i]);
    }
    metrics_value(out, "http_response_bytes_total", "Bytes sent by HTTP.", n->http.bytes);
    metrics_value(out, "http_connections", "HTTP connections open.", n->http.connections);
    metrics_value(out, "answer_bytes", "Bytes of unread answers.", n->answer_bytes);
    metrics_store(n, totals, out);

    /* Few series, whatever the number of users; their sum is that of all users. */
    uint64_t others = totals->user_bytes;

    metrics_value(out, "users", "Users that store anything.", totals->users);
    metrics_head(
        out, "user_bytes",
        "Bytes that a user stores: by uid the 20 users that store most, as uid others all other users together.");
    for (size_t i = 0; i < totals->largest_count; i++) {
        buffer_add_format(out, "profd_user_bytes{uid=\"%" PRIu32 "\"} %" PRIu64 "\n", totals->largest[i].uid,
                          totals->largest[i].bytes);
        others -= totals->largest[i].bytes;
    }
    buffer_add_format(out, "profd_user_bytes{uid=\"others\"} %" PRIu64 "\n", others);

    metrics_value(out, "sum_cache_hits_total", "Sums that a query found in the cache.", cache->found);
    metrics_value(out, "sum_cache_misses_total", "Sums that a query had to compute.", cache->missed);
    metrics_value(out, "sum_cache_bytes", "Bytes of cached sums.", cache->bytes);
    metrics_value(out, "sum_cache_entries", "Cached sums.", cache->entries);
    buffer_add_text(out, "# HELP profd_answers_total Cacheable answers, by result: from the cache, revalidated by "
                         "ETag, or computed.\n# TYPE profd_answers_total counter\n");
    metrics_labelled(out, "answers_total", "how", "at_once", n->answers.at_once);
    metrics_labelled(out, "answers_total", "how", "after_look", n->answers.after_look);
    metrics_labelled(out, "answers_total", "how", "made", n->answers.made);
    metrics_value(out, "answers_kept_bytes", "Bytes of cached answers.", n->answers.bytes);
    metrics_value(out, "answers_kept", "Cached answers.", n->answers.entries);
    metrics_live(&n->live, out);
    static const char *const tasks[] = {"compact", "retire", "shrink", "relay", "forget"};

    metrics_head(out, "upkeep_seconds_total", "Time of the writer thread spent on upkeep, by task.");
    for (unsigned i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        buffer_add_format(out, "profd_upkeep_seconds_total{task=\"%s\"} ", tasks[i]);
        buffer_add_shortest(out, n->upkeep.seconds[i]);
        buffer_add_char(out, '\n');
    }
    metrics_value(out, "ledger_mismatch_total", "Differences found between what is stored and the ledger; must stay 0.",
                  n->verified.mismatches);
    metrics_value(out, "verification_rounds_total", "Complete rounds of verification since start.", n->verified.rounds);
    metrics_real(out, "verification_last_round_timestamp_seconds", "When the latest round ended; 0: none yet.",
                 n->verified.ended);
    metrics_value(out, "verification_last_round_mismatches", "Differences found in the latest round.",
                  n->verified.round_mismatches);
    metrics_value(out, "write_batches_total", "Batches of uploads and other jobs that the writer thread has finished.",
                  n->batches);
    metrics_value(out, "connections", "Connections to the upload socket.", n->conns.connections);
    metrics_value(out, "connections_total", "Connections accepted.", n->conns.accepted);
    metrics_value(out, "connections_refused_total", "Connections refused because of a limit.", n->conns.refused);
    metrics_value(out, "connections_failed_total", "Connections closed for an error.", n->conns.failed);
    metrics_value(out, "frames_total", "Frames received.", n->conns.frames);
    metrics_value(out, "body_bytes", "Bytes of frames held.", n->conns.bodies);
    metrics_head(out, "queue_length", "Jobs queued or running, by queue.");
    metrics_labelled(out, "queue_length", "queue", "writer", n->writer_pending);
    metrics_labelled(out, "queue_length", "queue", "reader", n->reader_pending);
    metrics_labelled(out, "queue_length", "queue", "object", n->object_pending);
    metrics_labelled(out, "queue_length", "queue", "harvest", n->live.pending);
    metrics_value(out, "log_lines_suppressed_total", "Log lines suppressed by the rate limit.", log_suppressed());

    if (setup->relay) {
        metrics_relay(&n->relay, &store->relay, out);
    }
    if (setup->tier) {
        metrics_value(out, "tier_sealed_days", "Days of which sums were moved to ClickHouse.",
                      n->tier.totals.days_sealed);
        metrics_value(out, "tier_waiting_days", "Days that could be moved and are not yet.",
                      n->tier.totals.days_waiting);
        metrics_value(out, "tier_bytes", "Bytes of the sums that were moved.", n->tier.totals.bytes);
        metrics_real(out, "tier_lag_seconds", "For how long the oldest day that waits could have been moved.",
                     n->tier.lag);
        metrics_value(out, "tier_failures_total", "Steps of moving a day that failed since start.", n->tier.failures);
    }
    if (n->hosts) {
        metrics_centre(&n->centre, &store->centre, out);
    }
}

/* Hosts of a centre. Their counts are copied on the loop's thread. The text is made on a reader thread, because 2,000
 * hosts have 20,000 lines. */

#define NS 1e9
#define DAY_NS INT64_C(86400000000000)
#define AGE_NS (METRICS_HOSTS_AGE_DAYS * DAY_NS)
#define BACKLOG_NS INT64_C(3600000000000)
#define ROWS_BYTES (64u << 20)

struct host_row {
    char *labels;
    int64_t last, delivered; /* ns */
    bool two_machines;
    const struct host_counts *counts;
};

struct host_rows {
    struct metrics_hosts *m;
    const struct store_scope *scope;
    struct arena *arena;
    struct host_row *rows;
    uint32_t count, capacity;
    uint64_t listed[2], unlisted[2], absent; /* [1]: with something wrong */
    bool failed;
};

static const struct host_counts host_counts_none = {.backlog = -1};

/* Writes text with backslash, quote and line feed escaped, at most 2 bytes for each of its own. Returns the end. */
static char *metrics_put_value(char *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n') {
            *to++ = '\\';
        }
        *to++ = *text == '\n' ? 'n' : *text;
    }
    return to;
}

enum profd_status metrics_hosts_begin(struct metrics_hosts *m, const struct hashmap *counts, int64_t now,
                                      int64_t interval, struct profd_error *e)
{
    size_t at = 0;
    const void *host;
    const struct host_counts *value;

    *m = (struct metrics_hosts){.active = counts != NULL, .now = now, .interval = interval};
    buffer_init(&m->text, METRICS_HOSTS_BYTES);
    if (!counts || !counts->count) {
        return PROFD_OK;
    }
    m->counted = calloc(counts->count, sizeof *m->counted);
    TRY(m->counted ? PROFD_OK : profd_no_memory(e));
    while ((value = hashmap_next(counts, &at, &host)) != NULL) {
        struct metrics_counted *c = &m->counted[m->count++];

        memcpy(c->host, host, sizeof c->host);
        c->counts = *value;
    }
    return PROFD_OK;
}

static int counted_compare(const void *a, const void *b)
{
    return memcmp(a, b, STORE_HOST_SIZE); /* host is the first member */
}

static bool take_host(void *context, const struct store_fleet_host *h)
{
    struct host_rows *r = context;
    const struct metrics_hosts *m = r->m;
    const struct metrics_counted *counted =
        m->count ? bsearch(h->host, m->counted, m->count, sizeof *counted, counted_compare) : NULL;
    const struct host_counts *n = counted ? &counted->counts : &host_counts_none;

    /* What the alerts call wrong. */
    const bool two_machines = m->now - h->copied < DAY_NS,
               wrong = (m->interval && m->now - h->last > 2 * m->interval) || two_machines || n->backlog > BACKLOG_NS ||
                       n->refused + n->segments.refused + n->segments.put_aside + n->segments.conflicts > 0;
    const bool absent = m->now - h->last > AGE_NS, listed = !absent && r->listed[wrong] < METRICS_HOSTS_MOST;

    if (!store_scope_has(r->scope, h->uid)) {
        return true;
    }
    *(absent ? &r->absent : listed ? &r->listed[wrong] : &r->unlisted[wrong]) += 1;
    if (!listed) {
        return true;
    }

    /* Each byte of the texts may be escaped; beside them there are fewer than 100 bytes. */
    struct host_row *rows = arena_extend(r->arena, r->rows, r->count, &r->capacity, sizeof *rows);
    char *labels = rows ? arena_take(r->arena, 2 * (strlen(h->name) + strlen(h->tenant)) + 100) : NULL, *to = labels;

    r->failed = !labels;
    if (!labels) {
        return false;
    }
    to = metrics_put_value(stpcpy(to, "host=\""), h->name);
    to = metrics_put_value(stpcpy(to, "\",tenant=\""), h->tenant);
    to = hex_put(stpcpy(to, "\",identity=\""), h->host, STORE_HOST_SIZE);
    *to++ = '"';
    r->rows = rows;
    rows[r->count++] = (struct host_row){
        .labels = labels, .last = h->last, .delivered = h->delivered, .two_machines = two_machines, .counts = n};
    return true;
}

/* Each returns whether the host has the value. */
static bool get_lag(const struct host_row *h, int64_t now, double *out)
{
    *out = (double)(now > h->last ? now - h->last : 0) / NS;
    return true;
}

static bool get_backlog(const struct host_row *h, int64_t now, double *out)
{
    (void)now;
    *out = (double)h->counts->backlog / NS;
    return h->counts->backlog >= 0;
}

static bool get_delivered(const struct host_row *h, int64_t now, double *out)
{
    (void)now;
    *out = (double)h->delivered / NS;
    return h->delivered != 0;
}

static bool get_refusals(const struct host_row *h, int64_t now, double *out)
{
    (void)now;
    *out = (double)(h->counts->refused + h->counts->segments.refused);
    return true;
}

static bool get_two(const struct host_row *h, int64_t now, double *out)
{
    (void)now;
    *out = 1;
    return h->two_machines;
}

static void add_families(const struct host_rows *r, struct buffer *out)
{
    static const struct {
        const char *name, *help;
        bool (*get)(const struct host_row *h, int64_t now, double *out);
    } families[] = {
        {"host_lag_seconds", "Time since the host last connected.", get_lag},
        {"host_backlog_seconds",
         "Age of the host's oldest unacknowledged upload when it last connected; absent if it does not state it or has "
         "not connected since the start.",
         get_backlog},
        {"host_last_upload_timestamp_seconds", "When the latest upload of the host arrived.", get_delivered},
        {"host_refusals_total", "Batches and uploads of the host that were refused since start.", get_refusals},
        {"host_two_machines", "1: two machines connected as this host within a day.", get_two}};

    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        metrics_head(out, families[f].name, families[f].help);
        for (uint32_t i = 0; i < r->count; i++) {
            double value;

            if (families[f].get(&r->rows[i], r->m->now, &value)) {
                buffer_add_text(out, "profd_");
                buffer_add_text(out, families[f].name);
                buffer_add_char(out, '{');
                buffer_add_text(out, r->rows[i].labels);
                buffer_add_text(out, "} ");
                buffer_add_shortest(out, value);
                buffer_add_char(out, '\n');
            }
        }
    }
}

static void add_segments(const struct host_rows *r, struct buffer *out)
{
    static const char *const results[] = {"counted", "repeat", "put-aside", "conflict"};

    metrics_head(out, "host_received_total", "Uploads of the host that were acknowledged since start, by result.");
    for (uint32_t i = 0; i < r->count; i++) {
        const struct delivery_counts *n = &r->rows[i].counts->segments;
        const uint64_t values[] = {n->counted, n->again, n->put_aside, n->conflicts};

        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            buffer_add_text(out, "profd_host_received_total{");
            buffer_add_text(out, r->rows[i].labels);
            buffer_add_text(out, ",result=\"");
            buffer_add_text(out, results[k]);
            buffer_add_text(out, "\"} ");
            buffer_add_u64(out, values[k], 0);
            buffer_add_char(out, '\n');
        }
    }
}

enum profd_status metrics_hosts_format(struct metrics_hosts *m, struct store *store, const struct store_scope *scope,
                                       struct profd_error *e)
{
    struct host_rows r = {.m = m, .scope = scope};

    if (!m->active) {
        return PROFD_OK;
    }
    if (m->count) {
        qsort(m->counted, m->count, sizeof *m->counted, counted_compare);
    }
    r.arena = arena_new(ROWS_BYTES);
    enum profd_status status = r.arena ? store_each_host(store, take_host, &r, e) : profd_no_memory(e);
    if (!status && r.failed) {
        status = profd_no_memory(e);
    }
    if (!status) {
        metrics_head(
            &m->text, "hosts",
            "Hosts by state. Only those of state listed have values of their own; absent: has not arrived for 30 days; "
            "unlisted: beyond the first 1000 by name; unlisted-wrong: something is wrong, but beyond the first 1000 "
            "of these.");
        metrics_labelled(&m->text, "hosts", "state", "listed", r.count);
        metrics_labelled(&m->text, "hosts", "state", "unlisted", r.unlisted[0]);
        metrics_labelled(&m->text, "hosts", "state", "unlisted-wrong", r.unlisted[1]);
        metrics_labelled(&m->text, "hosts", "state", "absent", r.absent);
        add_families(&r, &m->text);
        add_segments(&r, &m->text);
    }
    arena_free(r.arena);
    return status;
}

void metrics_hosts_done(struct metrics_hosts *m)
{
    free(m->counted);
    buffer_done(&m->text);
    *m = (struct metrics_hosts){.active = false};
}

static void add_label(struct buffer *out, const char *name, const json_t *document, const char *field)
{
    const char *text = json_string_value(json_object_get(document, field));

    buffer_add_text(out, name);
    buffer_add_text(out, "=\"");
    if (text) {
        char *to = buffer_open(out, 2 * strlen(text));
        if (to) {
            buffer_close(out, metrics_put_value(to, text));
        }
    }
    buffer_add_char(out, '"');
}

static bool take_document(void *context, const struct store_watch_row *row)
{
    json_t *document = json_loads(row->document, 0, NULL);

    return !document || !json_array_append_new(context, document);
}

enum profd_status metrics_watch_format(struct store *store, struct buffer *out, struct profd_error *e)
{
    /* A family of metrics is a field of all documents. */
    static const struct {
        const char *name, *help, *field;
    } families[] = {
        {"watch_self_seconds_total", "Self time of a watched function.", "self"},
        {"watch_calls_total",
         "Calls of a watched function; of programs that count none, ticks that found it below a caller.", "calls"},
        {"watch_removals_total",
         "Looks that found counts of a watched function removed: what arrived in between may be missing.", "removals"}};
    json_t *documents = json_array();
    enum profd_status status =
        documents ? store_each_watch_row(store, take_document, documents, e) : profd_no_memory(e);

    for (size_t i = 0; !status && i < sizeof families / sizeof *families; i++) {
        metrics_head(out, families[i].name, families[i].help);
        for (size_t k = 0; k < json_array_size(documents); k++) {
            const json_t *document = json_array_get(documents, k);

            buffer_add_format(out, "profd_%s{", families[i].name);
            add_label(out, "watch", document, "watch");
            add_label(out, ",function", document, "function");
            buffer_add_text(out, "} ");
            const json_t *value = json_object_get(document, families[i].field);

            if (json_is_integer(value)) {
                buffer_add_u64(out, (uint64_t)json_integer_value(value), 0);
            } else {
                buffer_add_shortest(out, json_number_value(value));
            }
            buffer_add_char(out, '\n');
        }
    }
    json_decref(documents);
    return status;
}
