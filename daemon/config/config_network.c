/* What profd-relay and profd-gate need of the configuration. */
#include "config/config_network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_units.h"
#include "net/http_target.h"
#include "net/listen.h"

#define RELAY_INTERVAL_MIN INT64_C(1000000000)
#define RELAY_INTERVAL_MAX INT64_C(86400000000000)

enum profd_status config_check_level(struct config *config, struct profd_error *e)
{
    const char *level = config->values[CONFIG_log_level];

    config->log_level = LOG_LEVEL_NOTICE;
    if (level && !log_find_level(level, &config->log_level)) {
        return profd_error_set(e, PROFD_CONFIG, "log-level is \"%s\", not error, warning, notice, info or debug",
                               level);
    }
    return PROFD_OK;
}

/* Where HOST:PORT begins behind the scheme, or NULL. */
static const char *config_find_host(const char *url, const char *scheme)
{
    const char *host = url + strlen(scheme), *colon = strrchr(url, ':');
    char *end;
    unsigned long port;

    if (strncmp(url, scheme, strlen(scheme)) != 0 || colon <= host || colon[1] < '1' || colon[1] > '9') {
        return NULL;
    }
    port = strtoul(colon + 1, &end, 10);
    return !*end && port <= UINT16_MAX && http_host_valid(host, strlen(host)) ? host : NULL;
}

enum profd_status config_check_relay_url(struct config *config, struct profd_error *e)
{
    config->relay = config->values[CONFIG_relay];
    if (!config_find_host(config->relay, "tls://")) {
        return profd_error_set(e, PROFD_CONFIG, "relay is \"%s\", not tls://HOST:PORT", config->relay);
    }
    return PROFD_OK;
}

/* The value of a key, or the default. NO_MEMORY. */
static enum profd_status config_take_path(struct config *config, enum config_option option, const char *usual,
                                          const char **path, struct profd_error *e)
{
    if (!config->values[option]) {
        config->values[option] = strdup(usual);
    }
    *path = config->values[option];
    return *path ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the configuration");
}

static enum profd_status config_check_relay_program(struct config *c, struct profd_error *e)
{
    const char *interval = c->values[CONFIG_relay_interval], *proxy = c->values[CONFIG_relay_proxy];
    enum profd_status status;

    if (!c->values[CONFIG_relay]) {
        return profd_error_set(e, PROFD_CONFIG, "relay is not configured: name the centre, as tls://HOST:PORT");
    }
    status = config_check_relay_url(c, e);
    if (!status) {
        status = config_parse_age("relay-interval", interval ? interval : "60s", &c->relay_interval, e);
    }
    if (!status && (c->relay_interval < RELAY_INTERVAL_MIN || c->relay_interval > RELAY_INTERVAL_MAX)) {
        status = profd_error_set(e, PROFD_CONFIG, "relay-interval is \"%s\", not 1s to 1d", interval);
    }
    if (!status && proxy) {
        c->proxy = config_find_host(proxy, "http://");
        status = c->proxy ? PROFD_OK
                          : profd_error_set(e, PROFD_CONFIG, "relay-proxy is \"%s\", not http://HOST:PORT", proxy);
    }
    if (!status) {
        status = config_take_path(c, CONFIG_relay_certificate, SYSCONFDIR "/profd/relay.crt", &c->certificate, e);
    }
    if (!status) {
        status = config_take_path(c, CONFIG_relay_key, SYSCONFDIR "/profd/relay.key", &c->key, e);
    }
    return status ? status : config_take_path(c, CONFIG_relay_ca, SYSCONFDIR "/profd/relay-ca.crt", &c->ca, e);
}

static enum profd_status config_check_gate_program(struct config *c, struct profd_error *e)
{
    enum profd_status status =
        config_take_path(c, CONFIG_gate_certificate, SYSCONFDIR "/profd/gate.crt", &c->certificate, e);

    c->revoked = c->values[CONFIG_gate_revoked];
    c->gate_listen = c->values[CONFIG_gate_listen];
    if (!status) {
        status = config_take_path(c, CONFIG_gate_key, SYSCONFDIR "/profd/gate.key", &c->key, e);
    }
    return status ? status : config_take_path(c, CONFIG_gate_ca, SYSCONFDIR "/profd/gate-ca.crt", &c->ca, e);
}

enum profd_status config_check_network(enum config_program program, struct config *config, struct profd_error *e)
{
    enum profd_status status = config_check_level(config, e);

    if (!status) {
        status = config_take_path(config, CONFIG_socket, "/run/profd/profd.sock", &config->socket, e);
    }
    if (!status) {
        status = listen_parse_unix(config->socket, e);
    }
    if (status) {
        return status;
    }
    return program == OF_RELAY ? config_check_relay_program(config, e) : config_check_gate_program(config, e);
}
