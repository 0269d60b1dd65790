/* Defaults and judgement: after this a configuration can be used without a doubt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "config_file.h"
#include "net/listen.h"
#include "net/peer.h"

static enum profd_status config_set_default(struct config *config, enum config_option option, const char *first,
                                            const char *second, struct profd_error *e)
{
    const size_t n = strlen(first) + strlen(second) + 1;
    char *text;

    if (config->values[option])
        return PROFD_OK;
    text = malloc(n);
    if (!text)
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the configuration");
    snprintf(text, n, "%s%s", first, second);
    config->values[option] = text;
    return PROFD_OK;
}

static enum profd_status config_default_state(struct config *config, struct profd_error *e)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (config->values[CONFIG_state_dir])
        return PROFD_OK;
    if (geteuid() == 0)
        return config_set_default(config, CONFIG_state_dir, "/var/lib/profd", "", e);
    if (state && *state == '/')
        return config_set_default(config, CONFIG_state_dir, state, "/profd", e);
    if (home && *home == '/')
        return config_set_default(config, CONFIG_state_dir, home, "/.local/state/profd", e);
    return profd_error_set(e, PROFD_CONFIG, "neither XDG_STATE_HOME nor HOME is set: say --state-dir DIR");
}

static enum profd_status config_default_sockets(struct config *config, struct profd_error *e)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char own[64];
    enum profd_status status;
    struct stat st;

    snprintf(own, sizeof own, "/run/user/%u", (unsigned)geteuid());
    if (geteuid() == 0)
        runtime = "/run";
    else if (!runtime || *runtime != '/')
        runtime = !stat(own, &st) && st.st_uid == geteuid() ? own : NULL;
    if (!runtime) {
        if (!config->values[CONFIG_socket])
            return profd_error_set(e, PROFD_CONFIG, "XDG_RUNTIME_DIR is not set: say --socket PATH");
        return PROFD_OK; /* an HTTP socket must be asked for then */
    }
    /* Who moves the one socket does not want the other to take the place of another daemon's. */
    if (config->values[CONFIG_socket] && !config->values[CONFIG_http_socket])
        return PROFD_OK;
    status = config_set_default(config, CONFIG_socket, runtime, "/profd/profd.sock", e);
    if (!status)
        status = config_set_default(config, CONFIG_http_socket, runtime, "/profd/http.sock", e);
    return status;
}

static enum profd_status config_check_http(struct config *config, struct profd_error *e)
{
    const char *token = config->values[CONFIG_http_token];
    enum profd_status status;
    uint16_t port;

    if (config->http_open && token)
        return profd_error_set(e, PROFD_CONFIG, "http-open and http-token %s exclude each other", token);
    if (token) {
        status = config_file_read_token(token, config->http_token_sha256, e);
        if (status)
            return status;
    }
    if (!config->http)
        return PROFD_OK;
    status = listen_parse_tcp(config->http, &port, e);
    if (status)
        return status;
    if (!config->http_open && !token)
        return profd_error_set(e, PROFD_CONFIG,
                               "http %s: any local user could ask there; say http-token FILE, or http-open to allow it",
                               config->http);
    return PROFD_OK;
}

static enum profd_status config_check_group(struct config *config, struct profd_error *e)
{
    const char *group = config->values[CONFIG_read_group];
    enum profd_status status;

    /* Without a word about it the group is that of the packages, if it exists and the daemon serves the system. */
    if (!group && peer_find_group("profd-read", &config->read_group, NULL))
        return PROFD_OK;
    if (!group) {
        config->has_read_group = true;
        return PROFD_OK;
    }
    status = peer_find_group(group, &config->read_group, e);
    if (status)
        return profd_error_wrap(e, PROFD_CONFIG, "read-group");
    config->has_read_group = true;
    return PROFD_OK;
}

enum profd_status config_check(struct config *config, struct profd_error *e)
{
    const char *level = config->values[CONFIG_log_level], *open = config->values[CONFIG_http_open];
    enum profd_status status;

    config->socket_given = config->values[CONFIG_socket] != NULL;
    config->http_given = config->values[CONFIG_http_socket] != NULL;
    status = config_default_state(config, e);
    if (!status)
        status = config_default_sockets(config, e);
    if (status)
        return status;
    config->state_dir = config->values[CONFIG_state_dir];
    config->socket = config->values[CONFIG_socket];
    config->http_socket = config->values[CONFIG_http_socket];
    if (config->http_socket && !strcmp(config->http_socket, "none"))
        config->http_socket = NULL;
    if (config->http_socket && !strcmp(config->http_socket, config->socket))
        return profd_error_set(e, PROFD_CONFIG, "socket and http-socket are the same path: %s", config->socket);
    status = listen_parse_unix(config->socket, e);
    if (!status && config->http_socket)
        status = listen_parse_unix(config->http_socket, e);
    if (status)
        return status;
    config->http = config->values[CONFIG_http];
    config->http_open = open && !strcmp(open, "yes");
    config->log_level = LOG_LEVEL_NOTICE;
    if (level && !log_find_level(level, &config->log_level))
        return profd_error_set(e, PROFD_CONFIG, "log-level is \"%s\", not error, warning, notice, info or debug",
                               level);
    status = config_check_group(config, e);
    return status ? status : config_check_http(config, e);
}
