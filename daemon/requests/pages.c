#include "requests/pages.h"

#include <stdio.h>
#include <stdlib.h>

#include "render/document.h"
#include "render/render.h"
#include "requests/metrics.h"
#include "web/web_files.h"

struct pages {
    struct pages_config config;
    struct web_coded *web;
};

static const char pages_dashboard_csp[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

enum profd_status pages_new(const struct pages_config *config, struct pages **out, struct profd_error *e)
{
    struct pages *p = calloc(1, sizeof *p);

    if (p) {
        p->config = *config;
        p->web = web_coded_new();
    }
    if (!p || !p->web) {
        free(p);
        return profd_no_memory(e);
    }
    *out = p;
    return PROFD_OK;
}

void pages_set_setup(struct pages *p, const struct pages_setup *setup)
{
    p->config.setup = *setup;
}

void pages_free(struct pages *p)
{
    if (p) {
        web_coded_free(p->web);
    }
    free(p);
}

static void pages_get_numbers(const struct pages *p, struct pages_numbers *n)
{
    memset(n, 0, sizeof *n);
    p->config.get_numbers(p->config.context, n);
}

static void pages_make_ready(const struct pages_numbers *n, struct page *page)
{
    if (n->stopping) {
        page_problem(page, 503, PROFD_STOPPING, "the daemon is stopping");
    } else if (n->failure) {
        page_problem(page, 503, PROFD_IO, n->failure);
    } else if (n->full) {
        page_problem(page, 503, PROFD_FULL, n->full);
    } else {
        page_init(page, 200, "application/json; charset=utf-8");
        const bool degraded = n->damaged || n->read_failed || n->objects.readers_gone || n->upkeep.clock_ahead > 0;
        json_t *root =
            json_pack("{s:s, s:s}", "status", degraded ? "degraded" : "ready", "reserve", reserve_name(n->reserve));
        if (n->read_failed) {
            json_object_set_new(root, "read_failed", json_true());
        }
        if (n->upkeep.clock_ahead > 0) {
            json_object_set_new(root, "clock_ahead_seconds", json_real(n->upkeep.clock_ahead));
        }
        if (n->damaged) {
            json_object_set_new(root, "damaged_database", document_text(n->damaged_latest));
        }
        if (n->objects.readers_gone) {
            json_object_set_new(root, "executable_readers_gone", json_integer((json_int_t)n->objects.readers_gone));
        }
        document_write(root, &page->body);
    }
}

bool pages_find(struct pages *p, enum query_source source, const struct query_request *request, struct page *page)
{
    struct pages_numbers n;
    struct web_form form;

    if (source == QUERY_HEALTH || source == QUERY_READY) {
        pages_get_numbers(p, &n);
        if (source == QUERY_READY) {
            pages_make_ready(&n, page);
        } else {
            page_init(page, 200, "application/json; charset=utf-8");
            document_write(
                json_pack("{s:s, s:s, s:b}", "status", "ok", "version", PROFD_VERSION, "writable", !n.failure),
                &page->body);
        }
        return true;
    }
    if (!web_coded_find(p->web, request->target, strcspn(request->target, "?"), request->coding, &form)) {
        return false;
    }
    page_init(page, 200, form.content_type);
    page->csp = pages_dashboard_csp;
    page->cache_control = "no-cache";
    page->etag = form.etag;
    page->coding = form.coding;
    page->negotiated = true;
    if (*request->if_none_match && query_match_etag(request->if_none_match, form.tag, form.coding, page->tag)) {
        page->status = 304;
        page->etag = page->tag;
    } else {
        buffer_add(&page->body, form.bytes, form.size);
    }
    return true;
}

bool pages_tells_hosts(const struct pages *p)
{
    struct pages_numbers n;

    pages_get_numbers(p, &n);
    return n.hosts != NULL;
}

enum profd_status pages_begin_hosts(const struct pages *p, int64_t now, struct metrics_hosts *hosts,
                                    struct profd_error *e)
{
    struct pages_numbers n;

    pages_get_numbers(p, &n);
    return metrics_hosts_begin(hosts, n.hosts, now, (int64_t)n.centre.interval_ms * 1000000, e);
}

void pages_make_metrics(struct pages *p, const struct pages_store *store, const struct query_cache_use *cache,
                        struct metrics_hosts *hosts, struct page *page)
{
    struct pages_numbers n;

    pages_get_numbers(p, &n);
    page_init(page, 200, "text/plain; version=0.0.4; charset=utf-8");
    page->body.limit += METRICS_HOSTS_BYTES;
    if (store) {
        metrics_format(&p->config.setup, &n, store, cache, p->config.start, &page->body);
    }
    buffer_add(&page->body, hosts->text.data, hosts->text.size);
    page->body.failed = page->body.failed || hosts->text.failed;
    metrics_hosts_done(hosts);
}

static void status_add_number(json_t *out, const char *name, uint64_t value)
{
    json_object_set_new(out, name, json_integer((json_int_t)value));
}

/* NULL becomes null. */
static void status_add_sentence(json_t *out, const char *name, const char *sentence)
{
    json_object_set_new(out, name, document_text(sentence));
}

/* 0 becomes null. */
static void status_add_time(json_t *out, const char *name, int64_t nanoseconds)
{
    char text[40];
    render_time_second(nanoseconds, text);
    status_add_sentence(out, name, nanoseconds != 0 ? text : NULL);
}

static json_t *status_make_amount(const struct store_amount *a)
{
    return json_pack("{s:I, s:I, s:I}", "uploads", (json_int_t)a->uploads, "ticks", (json_int_t)a->ticks, "calls",
                     (json_int_t)a->calls);
}

/* What is forwarded: accepted = acknowledged + withdrawn + sealed + open. */
static json_t *status_make_relay(const struct pages_setup *setup, const struct pages_numbers *n,
                                 const struct store_relay *r)
{
    json_t *out = json_pack("{s:s}", "url", setup->relay);

    json_object_set_new(out, "accepted", status_make_amount(&r->accepted));
    json_object_set_new(out, "acknowledged", status_make_amount(&r->acknowledged));
    json_object_set_new(out, "not_counted", status_make_amount(&r->rejected));
    json_object_set_new(out, "withdrawn", status_make_amount(&r->withdrawn));
    json_object_set_new(out, "sealed", status_make_amount(&r->sealed));
    json_object_set_new(out, "open", status_make_amount(&r->open));
    status_add_number(out, "outgoing_open", r->open_segments);
    status_add_number(out, "outgoing_sealed", r->sealed_segments);
    status_add_number(out, "outgoing_unreadable", r->unreadable_segments);
    status_add_number(out, "outgoing_kept", r->kept_segments);
    status_add_number(out, "kept_bytes", r->kept_bytes);
    status_add_time(out, "oldest_time", r->oldest);
    status_add_time(out, "heard_time", n->relay.heard);
    status_add_sentence(out, "error", *n->relay.error ? n->relay.error : NULL);
    return out;
}

/* What was moved to ClickHouse. */
static json_t *status_make_tier(const struct pages_setup *setup, const struct sealer_counts *c,
                                const struct mirror_counts *m)
{
    json_t *out = json_pack("{s:s}", "url", setup->tier);

    status_add_number(out, "days_sealed", c->totals.days_sealed);
    status_add_number(out, "days_waiting", c->totals.days_waiting);
    status_add_number(out, "sums", c->totals.sums);
    status_add_number(out, "bytes", c->totals.bytes);
    status_add_time(out, "sealed_to", c->totals.sealed_to);
    json_object_set_new(out, "lag_seconds", json_real(c->lag));
    status_add_number(out, "failures", c->failures);
    status_add_sentence(out, "error", *c->failure ? c->failure : NULL);
    json_t *centres = json_array();

    for (size_t i = 0; i < m->centre_count; i++) {
        const struct store_tier_centre *x = &m->centres[i];
        json_t *row = json_pack("{s:s}", "name", x->name);

        status_add_time(row, "sealed_to", x->sealed_to);
        status_add_number(row, "days", x->days);
        status_add_number(row, "sums", x->sums);
        status_add_number(row, "bytes", x->bytes);
        status_add_number(row, "waiting_blocks", x->waiting);
        json_array_append_new(centres, row);
    }
    json_object_set_new(out, "centres", centres);
    json_object_set_new(out, "adopting", json_boolean(m->adopting));
    status_add_sentence(out, "centres_error", *m->failure ? m->failure : NULL);
    status_add_sentence(out, "centres_refused", *m->refused ? m->refused : NULL);
    status_add_sentence(out, "centres_named_alike", *m->twins ? m->twins : NULL);
    return out;
}

void pages_make_status(struct pages *p, const struct pages_store *store, struct page *page)
{
    const struct pages_setup *setup = &p->config.setup;
    const struct store_totals *t = &store->totals;
    struct pages_numbers n;

    pages_get_numbers(p, &n);
    json_t *out = json_pack("{s:s, s:b}", "version", PROFD_VERSION, "writable", !n.failure);

    status_add_sentence(out, "write_error", n.failure);
    status_add_sentence(out, "no_space", n.full);
    json_object_set_new(out, "read_failed", json_boolean(n.read_failed));
    status_add_sentence(out, "damaged_database", n.damaged ? n.damaged_latest : NULL);
    status_add_number(out, "damaged_databases", n.damaged);
    json_object_set_new(out, "clock_ahead_seconds", json_real(n.upkeep.clock_ahead));
    status_add_number(out, "executable_readers_gone", n.objects.readers_gone);
    status_add_sentence(out, "reserve", reserve_name(n.reserve));
    status_add_number(out, "reserve_bytes", n.reserve_bytes);
    status_add_number(out, "user_share_percent", setup->user_share);
    json_t *largest = json_array();

    for (size_t i = 0; i < t->largest_count; i++) {
        json_array_append_new(largest, json_pack("{s:I, s:I}", "uid", (json_int_t)t->largest[i].uid, "bytes",
                                                 (json_int_t)t->largest[i].bytes));
    }
    status_add_number(out, "users", t->users);
    status_add_number(out, "user_bytes", t->user_bytes);
    json_object_set_new(out, "largest_users", largest);
    status_add_number(out, "builds", t->builds);
    status_add_number(out, "builds_without_names", t->builds_without_names);
    status_add_time(out, "nameless_since", t->nameless_since);
    status_add_number(out, "uploads", t->uploads - t->retired_uploads);
    status_add_number(out, "accepted_uploads", t->uploads);
    status_add_number(out, "relabelled_uploads", n.uploads.relabelled + n.live.relabelled + n.centre.segments.limited);
    status_add_number(out, "retired_uploads", t->retired_uploads);
    status_add_number(out, "raw_uploads", t->raw_uploads);
    status_add_number(out, "raw_bytes", t->raw_bytes);
    status_add_number(out, "rollups", t->rollups);
    status_add_number(out, "backlog_bytes", n.upkeep.backlog_bytes);
    status_add_number(out, "file_bytes", t->file_bytes);
    status_add_number(out, "wal_bytes", t->wal_bytes);
    status_add_number(out, "free_bytes", t->free_bytes);
    status_add_number(out, "ledger_mismatches", n.verified.mismatches);
    status_add_number(out, "verification_rounds", n.verified.rounds);
    status_add_time(out, "verified_time", (int64_t)n.verified.ended * 1000000000);
    status_add_number(out, "verified_uploads", n.verified.uploads);
    status_add_number(out, "verified_mismatches", n.verified.round_mismatches);
    /* The URL of the dashboard: the loopback address of the configuration, or that of a socket that was passed in. */
    const char *address = setup->http ? setup->http : "127.0.0.1:", *colon = strrchr(address, ':');
    char url[256];
    bool tcp = n.http_port != 0 && colon;

    if (tcp) {
        (void)snprintf(url, sizeof url, "http://%.*s:%u/", (int)(colon - address), address, (unsigned)n.http_port);
    }
    status_add_sentence(out, "http_url", tcp ? url : NULL);
    json_object_set_new(out, "http_token", json_boolean(tcp && !setup->http_open));
    json_object_set_new(out, "relay", setup->relay ? status_make_relay(setup, &n, &store->relay) : json_null());
    json_t *centre = json_null();

    if (n.hosts) {
        const struct store_centre *c = &store->centre;

        centre = json_object();
        status_add_number(centre, "hosts", c->hosts);
        status_add_number(centre, "series", c->series);
        json_object_set_new(centre, "host_detail", json_boolean(c->detail));
        json_object_set_new(centre, "received", c->counts_segments ? json_integer((json_int_t)c->number) : json_null());
        status_add_time(centre, "last_time", c->last);
        json_object_set_new(centre, "counted", status_make_amount(&c->counted));
        json_object_set_new(centre, "removed", status_make_amount(&c->removed));
        status_add_number(centre, "damaged_sums", c->damaged);
        status_add_number(centre, "quarantined", c->quarantined);
        status_add_number(centre, "quarantine_bytes", c->quarantine_bytes);
        status_add_number(centre, "repeats", n.centre.segments.again);
        status_add_number(centre, "conflicts", n.centre.segments.conflicts);
        status_add_number(centre, "refused", n.centre.segments.refused);
        status_add_number(centre, "disputed_builds", c->disputed);
        status_add_number(centre, "objects", n.centre.objects_stored);
        status_add_number(centre, "objects_refused", n.centre.objects_refused);
    }
    json_object_set_new(out, "centre", centre);
    json_object_set_new(out, "tier", setup->tier ? status_make_tier(setup, &n.tier, &n.mirror) : json_null());
    page_init(page, 200, "application/json; charset=utf-8");
    document_write(out, &page->body);
}
