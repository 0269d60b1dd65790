/* Answers that need no query: health, metrics, and the dashboard's static files. */
#include <string.h>

#include "log.h"
#include "render/render.h"
#include "server_attach.h"
#include "server_parts.h"
#include "server_upkeep.h"
#include "server_web_coded.h"

#define PAGE_MAX (1u << 20)

static const char server_dashboard_csp[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

void server_page_init(struct server_page *page, int status, const char *content_type)
{
    *page =
        (struct server_page){.status = status, .content_type = content_type, .cache_control = "no-store", .etag = ""};
    buffer_init(&page->body, PAGE_MAX);
}

static void server_page_static(struct server_page *page, const struct server_web_form *form,
                               const struct query_request *r)
{
    server_page_init(page, 200, form->content_type);
    page->csp = server_dashboard_csp;
    page->cache_control = "no-cache";
    page->etag = form->etag;
    page->coding = form->coding;
    page->negotiated = true;
    if (*r->if_none_match && query_match_etag(r->if_none_match, form->tag, form->coding, page->tag)) {
        page->status = 304;
        page->etag = page->tag;
    } else {
        buffer_add(&page->body, form->bytes, form->size);
    }
}

void server_page_add_json(struct buffer *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            buffer_add_char(out, '\\');
        if (c < 0x20)
            buffer_add_format(out, "\\u%04x", c);
        else
            buffer_add_char(out, text[i]);
    }
}

void server_page_problem(struct server_page *page, int http_status, enum profd_status code, const char *detail)
{
    server_page_init(page, http_status, "application/problem+json");
    if (http_status == 503)
        page->retry_after_ms = 1000;
    render_problem(code, http_status, detail, &page->body);
}

static void server_page_ready(struct server *s, struct server_page *page)
{
    if (s->stopping) {
        server_page_problem(page, 503, PROFD_STOPPING, "the daemon is stopping");
    } else if (s->write_failed) {
        server_page_problem(page, 503, PROFD_IO, s->write_error.sentence);
    } else if (s->full) {
        server_page_problem(page, 503, PROFD_FULL, s->full_error.sentence);
    } else {
        server_page_init(page, 200, "application/json; charset=utf-8");
        buffer_add_text(&page->body, "{\"status\":\"ready\"}\n");
    }
}

bool server_page_find(struct server *s, const struct query_request *request, struct server_page *page)
{
    const char *target = request->target;
    const size_t n = strcspn(target, "?");
    struct server_web_form form;

    if (server_web_coded_find(s->web, target, n, request->coding, &form)) {
        server_page_static(page, &form, request);
        return true;
    }
    if (n == 8 && !memcmp(target, "/healthz", 8)) {
        server_page_init(page, 200, "application/json; charset=utf-8");
        buffer_add_format(&page->body, "{\"status\":\"ok\",\"version\":\"%s\",\"writable\":%s}\n", PROFD_VERSION,
                          s->write_failed ? "false" : "true");
        return true;
    }
    if (n == 7 && !memcmp(target, "/readyz", 7)) {
        server_page_ready(s, page);
        return true;
    }
    return false;
}

void server_page_metrics(struct server *s, const struct store_totals *totals, const struct query_cache_use *cache,
                         struct server_page *page)
{
    struct metrics_view v = {.totals = *totals, .cache = *cache, .answers = query_answers_measure(s->answers)};
    struct server_upkeep_view upkeep;

    conn_group_get_counts(s->conns, &v.conns);
    for (int i = SERVER_HTTP; i < SERVER_DOORS; i++) {
        struct http_door_counts counts;

        if (!s->doors[i])
            continue;
        memset(&counts, 0, sizeof counts);
        http_door_get_counts(s->doors[i], &counts);
        v.http.connections += counts.connections;
        v.http.bytes += counts.bytes;
        for (unsigned class = 0; class < 6; class ++)
            v.http.answered[class] += counts.answered[class];
    }
    v.writer_pending = work_pending(s->writer);
    v.batches = work_batches(s->writer);
    v.reader_pending = work_pending(s->readers);
    v.object_pending = work_pending(s->objects);
    v.lines_suppressed = log_suppressed();
    v.answer_bytes = s->answer_bytes;
    v.writable = !s->write_failed;
    v.full = s->full;
    server_attach_view(s, &v);
    server_upkeep_view(s, &upkeep);
    v.backlog_bytes = upkeep.backlog_bytes;
    v.rolled_up = upkeep.uploads[UPKEEP_COMPACT];
    for (int i = 0; i < UPKEEP_TASKS; i++)
        v.upkeep_seconds[i] = upkeep.seconds[i];
    v.rounds = upkeep.rounds;
    v.round_ended = upkeep.round_ended;
    v.round_mismatches = upkeep.round_mismatches;
    v.start = s->start;
    server_page_init(page, 200, "text/plain; version=0.0.4; charset=utf-8");
    metrics_format(&s->metrics, &v, &page->body);
}
