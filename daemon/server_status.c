/* GET /api/v1/status: what the daemon holds and how it is doing, for profctl status. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server_parts.h"
#include "server_upkeep.h"

static void server_status_number(struct buffer *out, const char *name, uint64_t value)
{
    buffer_add_format(out, ",\"%s\":%" PRIu64, name, value);
}

static void server_status_sentence(struct buffer *out, const char *name, bool said, const char *sentence)
{
    buffer_add_format(out, ",\"%s\":", name);
    if (!said) {
        buffer_add_text(out, "null");
        return;
    }
    buffer_add_char(out, '"');
    server_page_add_json(out, sentence, strlen(sentence));
    buffer_add_char(out, '"');
}

/* Where a browser finds the dashboard: the loopback address of the configuration, or that of a socket that was passed
 * in. */
static void server_status_http(struct buffer *out, const struct server *s)
{
    const char *address = s->config->http ? s->config->http : "127.0.0.1:", *colon = strrchr(address, ':');
    char url[256];
    bool tcp = s->http_port != 0 && colon;

    if (tcp)
        (void)snprintf(url, sizeof url, "http://%.*s:%u/", (int)(colon - address), address, (unsigned)s->http_port);
    server_status_sentence(out, "http_url", tcp, tcp ? url : "");
    buffer_add_format(out, ",\"http_token\":%s", tcp && !s->config->http_open ? "true" : "false");
}

void server_page_status(struct server *s, const struct store_totals *t, struct server_page *page)
{
    struct buffer *out = &page->body;
    struct server_upkeep_view v;

    server_upkeep_view(s, &v);
    server_page_init(page, 200, "application/json; charset=utf-8");
    buffer_add_format(out, "{\"version\":\"%s\",\"writable\":%s", PROFD_VERSION, s->write_failed ? "false" : "true");
    server_status_sentence(out, "write_error", s->write_failed, s->write_error.sentence);
    server_status_sentence(out, "no_space", s->full, s->full_error.sentence);
    server_status_number(out, "builds", t->builds);
    server_status_number(out, "builds_without_names", t->builds_without_names);
    server_status_number(out, "uploads", t->uploads - t->retired_uploads);
    server_status_number(out, "accepted_uploads", t->uploads);
    server_status_number(out, "retired_uploads", t->retired_uploads);
    server_status_number(out, "raw_uploads", t->raw_uploads);
    server_status_number(out, "raw_bytes", t->raw_bytes);
    server_status_number(out, "rollups", t->rollups);
    server_status_number(out, "backlog_bytes", v.backlog_bytes);
    server_status_number(out, "file_bytes", t->file_bytes);
    server_status_number(out, "wal_bytes", t->wal_bytes);
    server_status_number(out, "free_bytes", t->free_bytes);
    server_status_number(out, "ledger_mismatches", v.mismatches);
    server_status_number(out, "verification_rounds", v.rounds);
    server_status_number(out, "verified_at", (uint64_t)v.round_ended);
    server_status_number(out, "verified_uploads", v.round_uploads);
    server_status_number(out, "verified_mismatches", v.round_mismatches);
    server_status_http(out, s);
    buffer_add_text(out, "}\n");
}
