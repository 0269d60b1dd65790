#include "requests/pages.h"

#include <stdlib.h>
#include <string.h>

#include "requests/metrics.h"
#include "requests/status.h"
#include "web/web_files.h"
#include "render/document.h"

struct pages {
    struct pages_config config;
    struct web_coded *web;
};

static const char pages_dashboard_csp[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

enum profd_status pages_new(const struct pages_config *config, struct pages **out, struct profd_error *e)
{
    struct pages *p = calloc(1, sizeof *p);

    if (p) {
        p->config = *config;
        p->web = web_coded_new();
    }
    if (!p || !p->web) {
        free(p);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the dashboard's files");
    }
    *out = p;
    return PROFD_OK;
}

void pages_set_setup(struct pages *p, const struct status_setup *setup)
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

static void pages_make_health(const struct pages_numbers *n, struct page *page)
{
    page_init(page, 200, "application/json; charset=utf-8");
    document_write(json_pack("{s:s, s:s, s:b}", "status", "ok", "version", PROFD_VERSION, "writable", !n->failure),
                   &page->body);
}

bool pages_find(struct pages *p, enum query_source source, const struct query_request *request, struct page *page)
{
    struct pages_numbers n;
    struct web_form form;

    if (source == QUERY_HEALTH || source == QUERY_READY) {
        pages_get_numbers(p, &n);
        (source == QUERY_READY ? pages_make_ready : pages_make_health)(&n, page);
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

void pages_make_status(struct pages *p, const struct status_store *store, struct page *page)
{
    struct pages_numbers n;

    pages_get_numbers(p, &n);
    page_init(page, 200, "application/json; charset=utf-8");
    status_format(&p->config.setup, &n, store, &page->body);
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

void pages_make_metrics(struct pages *p, const struct status_store *store, const struct query_cache_use *cache,
                        struct metrics_hosts *hosts, struct page *page)
{
    struct pages_numbers n;

    pages_get_numbers(p, &n);
    page_init(page, 200, "text/plain; version=0.0.4; charset=utf-8");
    page->body.limit += METRICS_HOSTS_BYTES;
    if (store) {
        metrics_format(&n, &store->totals, cache, p->config.start, &page->body);
        metrics_format_fleet(&p->config.setup, &n, store, &page->body);
    }
    buffer_add(&page->body, hosts->text.data, hosts->text.size);
    page->body.failed = page->body.failed || hosts->text.failed;
    metrics_hosts_done(hosts);
}
