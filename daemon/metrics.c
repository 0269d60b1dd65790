#include "metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const double metrics_bounds[METRICS_BOUNDS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                      0.1,   0.25,   0.5,   1,    2.5,   10};
static const char *const metrics_endpoint_names[METRICS_ENDPOINTS] = {"builds",    "build",  "report",
                                                                      "functions", "labels", "other"};

void metrics_add_seconds(struct metrics_histogram *h, double seconds)
{
    unsigned i = 0;

    while (i < METRICS_BOUNDS && seconds > metrics_bounds[i])
        i++;
    h->buckets[i]++;
    h->count++;
    h->sum += seconds;
}

enum metrics_endpoint metrics_find_endpoint(const char *target)
{
    static const char builds[] = "/api/v1/builds", labels[] = "/api/v1/labels";
    const char *at;
    size_t n = strcspn(target, "?");

    if (n >= sizeof labels - 1 && !memcmp(target, labels, sizeof labels - 1))
        return METRICS_LABELS;
    if (n < sizeof builds - 1 || memcmp(target, builds, sizeof builds - 1) != 0)
        return METRICS_OTHER;
    at = target + sizeof builds - 1;
    n -= sizeof builds - 1;
    if (!n)
        return METRICS_BUILDS;
    if (*at != '/')
        return METRICS_OTHER;
    at++;
    n--;
    at = memchr(at, '/', n) ? (const char *)memchr(at, '/', n) + 1 : NULL;
    if (!at)
        return METRICS_BUILD;
    if (!strncmp(at, "report", 6))
        return METRICS_REPORT;
    return strncmp(at, "functions", 9) ? METRICS_OTHER : METRICS_FUNCTIONS;
}

static void metrics_head(struct buffer *out, const char *name, const char *type, const char *help)
{
    buffer_add_format(out, "# HELP profd_%s %s\n# TYPE profd_%s %s\n", name, help, name, type);
}

static void metrics_value(struct buffer *out, const char *name, const char *type, const char *help, uint64_t value)
{
    metrics_head(out, name, type, help);
    buffer_add_format(out, "profd_%s %" PRIu64 "\n", name, value);
}

static void metrics_histogram_text(struct buffer *out, const char *name, const char *label, const char *label_value,
                                   const struct metrics_histogram *h)
{
    char labels[96] = "", only[100] = "";
    uint64_t sum = 0;

    if (label) {
        snprintf(labels, sizeof labels, "%s=\"%s\",", label, label_value);
        snprintf(only, sizeof only, "{%s=\"%s\"}", label, label_value);
    }
    for (unsigned i = 0; i < METRICS_BOUNDS; i++) {
        sum += h->buckets[i];
        buffer_add_format(out, "profd_%s_bucket{%sle=\"%g\"} %" PRIu64 "\n", name, labels, metrics_bounds[i], sum);
    }
    buffer_add_format(out, "profd_%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n", name, labels, h->count);
    buffer_add_format(out, "profd_%s_sum%s ", name, only);
    buffer_add_shortest(out, h->sum);
    buffer_add_format(out, "\nprofd_%s_count%s %" PRIu64 "\n", name, only, h->count);
}

static void metrics_lower(char *out, size_t size, const char *text)
{
    size_t i = 0;

    for (; text[i] && i + 1 < size; i++)
        out[i] = (char)tolower((unsigned char)text[i]);
    out[i] = 0;
}

/* Counts by status, those that happened. */
static void metrics_reasons(struct buffer *out, const char *name, const uint64_t counts[METRICS_STATUSES])
{
    for (unsigned i = 0; i < METRICS_STATUSES; i++) {
        char reason[32];

        if (!counts[i])
            continue;
        metrics_lower(reason, sizeof reason, profd_status_name((enum profd_status)i));
        buffer_add_format(out, "profd_%s{reason=\"%s\"} %" PRIu64 "\n", name, reason, counts[i]);
    }
}

static void metrics_live(const struct metrics *m, const struct metrics_view *v, struct buffer *out)
{
    metrics_value(out, "attached_processes", "gauge", "Live processes whose counts are read.", v->attached);
    metrics_value(out, "attached_silent_processes", "gauge", "Those of them whose connection has gone.", v->silent);
    metrics_value(out, "attached_paused_processes", "gauge", "Those of them that were told to pause.", v->paused);
    metrics_value(out, "attached_kept_memories", "gauge", "Those of them whose memory the service manager holds, too.",
                  v->kept);
    metrics_value(out, "attaches_total", "counter", "Processes attached, again or for the first time.", m->attached);
    metrics_head(out, "attach_refused_total", "counter", "Processes not attached, by reason.");
    metrics_reasons(out, "attach_refused_total", m->attach_refused);
    metrics_value(out, "harvests_total", "counter",
                  "Harvests of live processes that brought something and were stored.", m->harvests);
    metrics_head(out, "harvest_seconds", "histogram", "From the beginning of such a harvest to its being stored.");
    metrics_histogram_text(out, "harvest_seconds", NULL, NULL, &m->harvest_seconds);
    metrics_head(out, "harvest_refused_total", "counter",
                 "Processes that are not read any more because they are not to be believed, by reason.");
    metrics_reasons(out, "harvest_refused_total", m->harvests_refused);
    metrics_value(out, "processes_ended_total", "counter", "Processes read a last time after their end.",
                  m->processes_ended);
    metrics_value(out, "processes_end_not_seen_total", "counter", "Processes that ended while nobody looked.",
                  m->processes_unseen);
}

static void metrics_uploads(const struct metrics *m, struct buffer *out)
{
    metrics_head(out, "uploads_total", "counter", "Uploads answered, by result and, if rejected, reason.");
    buffer_add_format(out, "profd_uploads_total{result=\"ok\",reason=\"\"} %" PRIu64 "\n", m->uploads_ok);
    buffer_add_format(out, "profd_uploads_total{result=\"duplicate\",reason=\"\"} %" PRIu64 "\n", m->uploads_duplicate);
    for (unsigned i = 0; i < METRICS_STATUSES; i++) {
        char reason[32];

        if (!m->uploads_rejected[i])
            continue;
        metrics_lower(reason, sizeof reason, profd_status_name((enum profd_status)i));
        buffer_add_format(out, "profd_uploads_total{result=\"rejected\",reason=\"%s\"} %" PRIu64 "\n", reason,
                          m->uploads_rejected[i]);
    }
    metrics_value(out, "upload_bytes_total", "counter", "Bytes of uploads received.", m->upload_bytes);
    metrics_value(out, "samples_total", "counter", "Clock ticks in stored uploads since start.", m->samples);
    metrics_value(out, "calls_total", "counter", "Calls in stored uploads since start.", m->calls);
    metrics_head(out, "upload_duration_seconds", "histogram", "From the whole frame to its answer.");
    metrics_histogram_text(out, "upload_duration_seconds", NULL, NULL, &m->upload_seconds);
    metrics_value(out, "objects_wanted_total", "counter", "Executables asked for.", m->objects_wanted);
    metrics_head(out, "objects_total", "counter", "Executables delivered, by result.");
    buffer_add_format(
        out, "profd_objects_total{result=\"ok\"} %" PRIu64 "\nprofd_objects_total{result=\"failed\"} %" PRIu64 "\n",
        m->objects_ok, m->objects_failed);
}

static void metrics_queries(const struct metrics *m, const struct metrics_view *v, struct buffer *out)
{
    metrics_head(out, "query_duration_seconds", "histogram", "From the question to its answer.");
    for (unsigned i = 0; i < METRICS_ENDPOINTS; i++)
        metrics_histogram_text(out, "query_duration_seconds", "endpoint", metrics_endpoint_names[i],
                               &m->query_seconds[i]);
    metrics_head(out, "http_responses_total", "counter", "HTTP answers by class.");
    for (unsigned i = 1; i < 6; i++)
        buffer_add_format(out, "profd_http_responses_total{class=\"%uxx\"} %" PRIu64 "\n", i, v->http.answered[i]);
    metrics_value(out, "http_response_bytes_total", "counter", "Bytes sent by HTTP.", v->http.bytes);
    metrics_value(out, "http_connections", "gauge", "HTTP connections open.", v->http.connections);
    metrics_value(out, "answer_bytes", "gauge", "Bytes of answers that readers have not taken yet.", v->answer_bytes);
}

static void metrics_store(const struct metrics_view *v, struct buffer *out)
{
    const struct store_totals *t = &v->totals;

    metrics_value(out, "builds", "gauge", "Builds known.", t->builds);
    metrics_value(out, "symbols_missing_builds", "gauge", "Builds whose functions have no names yet.",
                  t->builds_without_names);
    metrics_value(out, "accepted_uploads_total", "counter", "Uploads ever stored: what is stored and what was removed.",
                  t->uploads);
    metrics_value(out, "retired_uploads_total", "counter", "Uploads removed by retention or by hand.",
                  t->retired_uploads);
    metrics_value(out, "retired_samples_total", "counter", "Clock ticks removed with them.", t->retired_ticks);
    metrics_value(out, "retired_calls_total", "counter", "Calls removed with them.", t->retired_calls);
    metrics_value(out, "stored_uploads", "gauge", "Uploads stored, single or in sums.",
                  t->uploads - t->retired_uploads);
    metrics_value(out, "stored_samples", "gauge", "Clock ticks stored.", t->ticks - t->retired_ticks);
    metrics_value(out, "stored_calls", "gauge", "Calls stored.", t->calls - t->retired_calls);
    metrics_value(out, "raw_uploads", "gauge", "Uploads that are not part of a sum yet.", t->raw_uploads);
    metrics_value(out, "raw_bytes", "gauge", "Bytes of their counts.", t->raw_bytes);
    metrics_value(out, "rollups", "gauge", "Sums stored, of hours, of days and of all time.", t->rollups);
    metrics_value(out, "compaction_backlog_bytes", "gauge", "Bytes of single uploads beyond raw-bytes.",
                  v->backlog_bytes);
    metrics_value(out, "rolled_up_uploads_total", "counter", "Uploads that became part of a sum since start.",
                  v->rolled_up);
    metrics_value(out, "db_bytes", "gauge", "Size of the database file.", t->file_bytes);
    metrics_value(out, "wal_bytes", "gauge", "Size of the write-ahead log.", t->wal_bytes);
    metrics_value(out, "db_free_bytes", "gauge", "Bytes of the database file that hold nothing.", t->free_bytes);
    metrics_value(out, "writable", "gauge", "1 unless the store had an input/output error.", v->writable);
    metrics_value(out, "no_space", "gauge", "1 while the latest write found no space.", v->full);
}

static void metrics_answers(const struct query_answers_use *a, struct buffer *out)
{
    buffer_add_text(
        out,
        "# HELP profd_answers_total Answers that could be kept: given at once, after a look at the ETag, or made.\n"
        "# TYPE profd_answers_total counter\n");
    buffer_add_format(out, "profd_answers_total{how=\"at_once\"} %" PRIu64 "\n", a->at_once);
    buffer_add_format(out, "profd_answers_total{how=\"after_look\"} %" PRIu64 "\n", a->after_look);
    buffer_add_format(out, "profd_answers_total{how=\"made\"} %" PRIu64 "\n", a->made);
    metrics_value(out, "answers_kept_bytes", "gauge", "Bytes of finished answers kept for whoever asks the same.",
                  a->bytes);
    metrics_value(out, "answers_kept", "gauge", "Finished answers kept for whoever asks the same.", a->entries);
}

static void metrics_cache(const struct query_cache_use *c, struct buffer *out)
{
    metrics_value(out, "sum_cache_hits_total", "counter", "Sums that a question found added up.", c->found);
    metrics_value(out, "sum_cache_misses_total", "counter", "Sums that a question had to add up.", c->missed);
    metrics_value(out, "sum_cache_bytes", "gauge", "Bytes of the sums kept for the next question.", c->bytes);
    metrics_value(out, "sum_cache_entries", "gauge", "Sums kept for the next question.", c->entries);
}

static void metrics_upkeep(const struct metrics_view *v, struct buffer *out)
{
    static const char *const tasks[] = {"compact", "retire", "shrink", "forget"};

    metrics_head(out, "upkeep_seconds_total", "counter", "Time of the writing thread that upkeep took, by task.");
    for (unsigned i = 0; i < 4; i++) {
        buffer_add_format(out, "profd_upkeep_seconds_total{task=\"%s\"} ", tasks[i]);
        buffer_add_shortest(out, v->upkeep_seconds[i]);
        buffer_add_char(out, '\n');
    }
}

static void metrics_verification(const struct metrics *m, const struct metrics_view *v, struct buffer *out)
{
    metrics_value(out, "ledger_mismatch_total", "counter",
                  "Differences found between what is stored and the ledger; must stay 0.", m->ledger_mismatches);
    metrics_value(out, "verification_rounds_total", "counter", "Times that everything stored was verified since start.",
                  v->rounds);
    metrics_head(out, "verification_last_round_timestamp_seconds", "gauge",
                 "When the latest round ended; 0: none yet.");
    buffer_add_text(out, "profd_verification_last_round_timestamp_seconds ");
    buffer_add_shortest(out, v->round_ended);
    buffer_add_char(out, '\n');
    metrics_value(out, "verification_last_round_mismatches", "gauge", "Differences found in the latest round.",
                  v->round_mismatches);
}

void metrics_format(const struct metrics *m, const struct metrics_view *v, struct buffer *out)
{
    metrics_head(out, "build_info", "gauge", "The running version.");
    buffer_add_format(out, "profd_build_info{version=\"%s\"} 1\n", PROFD_VERSION);
    metrics_head(out, "start_time_seconds", "gauge", "When the daemon started, since the epoch.");
    buffer_add_text(out, "profd_start_time_seconds ");
    buffer_add_shortest(out, v->start);
    buffer_add_char(out, '\n');
    metrics_uploads(m, out);
    metrics_queries(m, v, out);
    metrics_store(v, out);
    metrics_cache(&v->cache, out);
    metrics_answers(&v->answers, out);
    metrics_live(m, v, out);
    metrics_upkeep(v, out);
    metrics_verification(m, v, out);
    metrics_value(out, "write_batches_total", "counter",
                  "Batches of uploads and other jobs the writing thread has finished.", v->batches);
    metrics_value(out, "connections", "gauge", "Connections to the upload socket.", v->conns.connections);
    metrics_value(out, "connections_total", "counter", "Connections let in.", v->conns.accepted);
    metrics_value(out, "connections_refused_total", "counter", "Connections over a limit.", v->conns.refused);
    metrics_value(out, "connections_failed_total", "counter", "Connections closed for an error.", v->conns.failed);
    metrics_value(out, "frames_total", "counter", "Frames received.", v->conns.frames);
    metrics_value(out, "body_bytes", "gauge", "Bytes of frames held.", v->conns.bodies);
    metrics_head(out, "queue_length", "gauge", "Jobs that wait or run, by queue.");
    buffer_add_format(out,
                      "profd_queue_length{queue=\"writer\"} %zu\nprofd_queue_length{queue=\"reader\"} %zu\n"
                      "profd_queue_length{queue=\"object\"} %zu\nprofd_queue_length{queue=\"harvest\"} %zu\n",
                      v->writer_pending, v->reader_pending, v->object_pending, v->harvest_pending);
    metrics_value(out, "log_lines_suppressed_total", "counter", "Log lines left out by the rate limit.",
                  v->lines_suppressed);
}
