/* The components' parts of the configuration, at the start and after a reload. */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server.h"

struct store_policy server_get_policy(const struct config *c)
{
    return (struct store_policy){.raw_age = c->raw_age,
                                 .raw_bytes = c->raw_bytes,
                                 .keep_age = c->keep_age,
                                 .keep_bytes = c->keep_bytes,
                                 .relay_bytes = c->relay ? c->relay_keep_bytes : 0,
                                 .relay_age = STORE_RELAY_AGE};
}

struct pages_setup server_get_setup(const struct config *c)
{
    return (struct pages_setup){.http = c->http,
                                .http_open = c->http_open,
                                .user_share = c->user_share,
                                .relay = c->values[CONFIG_relay],
                                .tier = c->tier};
}

struct store_detail server_get_detail(const struct config *c)
{
    static const enum store_detail_when details[] = {[CONFIG_DETAIL_AUTO] = STORE_DETAIL_AUTO,
                                                     [CONFIG_DETAIL_ALWAYS] = STORE_DETAIL_ALWAYS,
                                                     [CONFIG_DETAIL_NEVER] = STORE_DETAIL_NEVER};

    return (struct store_detail){.when = details[c->host_detail]};
}

enum profd_status server_make_watcher(struct server *s, struct profd_error *e)
{
    const struct watcher_config config = {
        .shared = &s->shared, .verifier = s->verifier, .cache = query_service_get_cache(s->queries)};
    TRY(watcher_start(&config, &s->watcher, e));

    watcher_set(s->watcher, s->config->watch, s->config->watch_interval);
    return PROFD_OK;
}

struct endpoints_access server_get_access(const struct config *c)
{
    return (struct endpoints_access){.policy = {.own_uid = (uint32_t)geteuid(),
                                                .has_read_group = c->has_read_group,
                                                .read_group = c->read_group,
                                                .has_admin_group = c->has_admin_group,
                                                .admin_group = c->admin_group,
                                                .has_relay_user = c->has_relay_user,
                                                .relay_user = c->relay_user,
                                                .has_record_user = c->has_record_user,
                                                .record_user = c->record_user,
                                                .has_proxy_user = c->has_http_proxy_user,
                                                .proxy_user = c->http_proxy_user},
                                     .http_open = c->http_open,
                                     .origin = c->http_origin};
}

enum profd_status server_reload(struct server *s, struct config_change *change, struct profd_error *e)
{
    struct config old;
    enum profd_status status = s->stopping ? profd_error_set(e, PROFD_STOPPING, "the daemon is stopping")
                                           : config_reload(OF_PROFD, s->argc, s->argv, s->config, &old, change, e);

    if (!status) {
        const struct config *c = s->config;
        const struct endpoints_access access = server_get_access(c);
        const struct store_policy policy = server_get_policy(c);
        const struct pages_setup setup = server_get_setup(c);
        const struct store_detail detail = server_get_detail(c);
        struct profd_error why;

        if (endpoints_set_access(s->endpoints, &access, &why)) {
            log_write(LOG_LEVEL_WARNING, NULL, "%s", why.sentence);
        }
        log_open(c->log_level);
        s->tokens.has_proxy = c->has_http_proxy_user;
        s->tokens.proxy_user = c->http_proxy_user;
        live_set_interval(s->live, c->harvest_interval);
        space_set_limits(s->space, c->keep_bytes, c->user_share);
        upkeep_job_set_policy(s->upkeep, &policy);
        intake_set(s->intake, c->relay_interval, &detail);
        pages_set_setup(s->pages, &setup);
        watcher_set(s->watcher, c->watch, c->watch_interval);
        config_done(&old);
    }
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "the configuration stays as it was: %s", e->sentence);
    } else {
        config_log_change(change);
    }
    return status;
}
