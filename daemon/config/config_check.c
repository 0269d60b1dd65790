/* Fills in defaults and checks values and their combinations. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "config/config_file.h"
#include "config/config_network.h"
#include "config/config_units.h"
#include "core/arena.h"
#include "core/watch_list.h"
#include "net/http_target.h"
#include "net/listen.h"
#include "net/peer.h"
#include "proto/limits.h"
#include "proto/runtime.h"
#include "tier/address.h"

#define RAW_AGE_MIN INT64_C(1000000000)
#define RAW_BYTES_MIN (64u << 10)
#define KEEP_BYTES_MIN (1u << 20)
#define RELAY_KEEP_MIN (1u << 20)
#define WATCH_ARENA (1u << 20)
#define SEAL_AFTER_MIN INT64_C(86400000000000)
#define TIER_NAME_MOST 64
#define INTERVAL_MIN INT64_C(1000000000)
#define INTERVAL_MAX INT64_C(3600000000000)

static enum profd_status config_set_default(struct config *config, enum config_option option, const char *first,
                                            const char *second, struct profd_error *e)
{
    const size_t n = strlen(first) + strlen(second) + 1;
    char *text;

    if (config->values[option]) {
        return PROFD_OK;
    }
    text = malloc(n);
    if (!text) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the configuration");
    }
    snprintf(text, n, "%s%s", first, second);
    config->values[option] = text;
    return PROFD_OK;
}

static enum profd_status config_default_state(struct config *config, struct profd_error *e)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (config->values[CONFIG_state_dir]) {
        return PROFD_OK;
    }
    if (geteuid() == 0) {
        return config_set_default(config, CONFIG_state_dir, "/var/lib/profd", "", e);
    }
    if (state && *state == '/') {
        return config_set_default(config, CONFIG_state_dir, state, "/profd", e);
    }
    if (home && *home == '/') {
        return config_set_default(config, CONFIG_state_dir, home, "/.local/state/profd", e);
    }
    return profd_error_set(e, PROFD_CONFIG,
                           "No state directory: neither XDG_STATE_HOME nor HOME is set. Use --state-dir DIR.");
}

static bool config_is_own(const char *directory)
{
    struct stat st;

    return !stat(directory, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static enum profd_status config_default_sockets(struct config *config, struct profd_error *e)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *below = "/profd";
    char own[RUNTIME_SIZE], directory[4096];
    enum profd_status status;

    runtime_directory(RUNTIME_USER, geteuid(), own);
    if (geteuid() == 0) {
        runtime = "/run";
    } else if (!runtime || *runtime != '/' || !config_is_own(runtime)) {
        runtime = own;
        if (!config_is_own(own)) {
            if (getenv("NOTIFY_SOCKET") && !getenv("LISTEN_FDS") && !config->values[CONFIG_socket]) {
                return profd_error_set(e, PROFD_CONFIG,
                                       "A service needs a socket: the service manager passed none. Use --socket PATH.");
            }
            runtime_directory(RUNTIME_SHARED, geteuid(), own);
            below = "";
        }
    }
    /* If only the upload socket is moved, the default HTTP socket could replace that of another daemon. */
    if (config->values[CONFIG_socket] && !config->values[CONFIG_http_socket]) {
        return PROFD_OK;
    }
    if (snprintf(directory, sizeof directory, "%s%s", runtime, below) >= (int)sizeof directory) {
        return profd_error_set(e, PROFD_CONFIG, "XDG_RUNTIME_DIR has %zu bytes; the limit is %zu", strlen(runtime),
                               sizeof directory - sizeof "/profd");
    }
    status = config_set_default(config, CONFIG_socket, directory, "/profd.sock", e);
    if (!status) {
        status = config_set_default(config, CONFIG_http_socket, directory, "/http.sock", e);
    }
    return status;
}

/* scheme://host[:port] as browsers send it in Origin: lower case, and no port if it is the default of the scheme. */
static enum profd_status config_check_origin(struct config *config, struct profd_error *e)
{
    char *origin = config->values[CONFIG_http_origin];
    const char *own_port = NULL;
    size_t n, scheme;

    config->http_origin = origin;
    if (!origin) {
        return PROFD_OK;
    }
    n = strlen(origin);
    for (size_t i = 0; i < n; i++) {
        origin[i] = (char)(origin[i] >= 'A' && origin[i] <= 'Z' ? origin[i] + ('a' - 'A') : origin[i]);
    }
    scheme = !strncmp(origin, "https://", 8) ? 8 : !strncmp(origin, "http://", 7) ? 7 : 0;
    if (!scheme || !http_host_valid(origin + scheme, n - scheme)) {
        return profd_error_set(e, PROFD_CONFIG,
                               "http-origin is \"%s\", not http://HOST[:PORT] or https://HOST[:PORT] without a path",
                               origin);
    }
    own_port = scheme == 8 ? ":443" : ":80";
    if (n > strlen(own_port) && !strcmp(origin + n - strlen(own_port), own_port)) {
        origin[n - strlen(own_port)] = 0;
    }
    return PROFD_OK;
}

static enum profd_status config_check_http(struct config *config, struct profd_error *e)
{
    uint16_t port;

    return config->http ? listen_parse_tcp(config->http, &port, e) : PROFD_OK;
}

/* Without the option, the group of the packages is used if it exists. */
static enum profd_status config_check_group(const char *key, const char *group, const char *usual, bool *has,
                                            uint32_t *gid, struct profd_error *e)
{
    if (!group) {
        *has = peer_find_group(usual, gid, NULL) == PROFD_OK;
        return PROFD_OK;
    }
    if (peer_find_group(group, gid, e)) {
        return profd_error_wrap(e, PROFD_CONFIG, "%s", key);
    }
    *has = true;
    return PROFD_OK;
}

/* False: there is no user of this name. */
static bool config_find_user(const char *name, uint32_t *uid)
{
    struct passwd entry, *found = NULL;
    char space[16384];

    if (getpwnam_r(name, &entry, space, sizeof space, &found) || !found) {
        return false;
    }
    *uid = found->pw_uid;
    return true;
}

static enum profd_status config_check_groups(struct config *config, struct profd_error *e)
{
    enum profd_status status = config_check_group("read-group", config->values[CONFIG_read_group], "profd-read",
                                                  &config->has_read_group, &config->read_group, e);

    if (!status) {
        status = config_check_group("admin-group", config->values[CONFIG_admin_group], "profd-admin",
                                    &config->has_admin_group, &config->admin_group, e);
    }
    config->has_record_user = config_find_user("profd-record", &config->record_user);
    return status;
}

static const char *config_or(const char *value, const char *otherwise)
{
    return value ? value : otherwise;
}

/* What is rolled up when, and what is kept how long. */
static enum profd_status config_check_policy(struct config *c, struct profd_error *e)
{
    const char *raw_age = config_or(c->values[CONFIG_raw_age], "48h");
    const char *keep_age = config_or(c->values[CONFIG_keep_age], "400d");
    const char *raw_bytes = config_or(c->values[CONFIG_raw_bytes], "1G");
    const char *keep_bytes = config_or(c->values[CONFIG_keep_bytes], "0");
    enum profd_status status = config_parse_age("raw-age", raw_age, &c->raw_age, e);

    if (!status) {
        status = config_parse_age("keep-age", keep_age, &c->keep_age, e);
    }
    if (!status) {
        status = config_parse_bytes("raw-bytes", raw_bytes, &c->raw_bytes, e);
    }
    if (!status) {
        status = config_parse_bytes("keep-bytes", keep_bytes, &c->keep_bytes, e);
    }
    if (!status) {
        status = config_parse_percent("user-share", config_or(c->values[CONFIG_user_share], "50%"), &c->user_share, e);
    }
    if (status) {
        return status;
    }
    /* A default gives way to what was said. */
    if (!c->values[CONFIG_raw_age] && c->keep_age && c->keep_age < c->raw_age) {
        c->raw_age = c->keep_age;
    }
    if (!c->values[CONFIG_keep_age] && c->keep_age < c->raw_age) {
        c->keep_age = c->raw_age;
    }
    if (!c->values[CONFIG_raw_bytes] && c->keep_bytes && c->keep_bytes / 2 < c->raw_bytes) {
        c->raw_bytes = c->keep_bytes / 2;
    }
    if (c->raw_age < RAW_AGE_MIN) {
        return profd_error_set(e, PROFD_CONFIG, "raw-age is \"%s\"; it must be at least 1s", raw_age);
    }
    if (c->keep_bytes && c->keep_bytes < KEEP_BYTES_MIN) {
        return profd_error_set(e, PROFD_CONFIG, "keep-bytes is \"%s\"; it must be at least 1M, or 0 for no limit",
                               keep_bytes);
    }
    if (c->raw_bytes < RAW_BYTES_MIN) {
        return profd_error_set(e, PROFD_CONFIG, "raw-bytes is \"%s\"; it must be at least 64K", raw_bytes);
    }
    /* Removing data before it is rolled up would change the meaning of raw-age. */
    if (c->keep_age && c->keep_age < c->raw_age) {
        return profd_error_set(e, PROFD_CONFIG, "keep-age %s is less than raw-age %s", keep_age, raw_age);
    }
    if (c->keep_bytes && c->keep_bytes < c->raw_bytes) {
        return profd_error_set(e, PROFD_CONFIG, "keep-bytes %s is less than raw-bytes %s", keep_bytes, raw_bytes);
    }
    return PROFD_OK;
}

static enum profd_status config_check_interval(const char *name, const char *text, int64_t *out, struct profd_error *e)
{
    int64_t interval;
    enum profd_status status = config_parse_age(name, text, &interval, e);

    if (status) {
        return status;
    }
    if (interval < INTERVAL_MIN || interval > INTERVAL_MAX) {
        return profd_error_set(e, PROFD_CONFIG, "%s is \"%s\", not 1s to 1h", name, text);
    }
    *out = interval;
    return PROFD_OK;
}

static enum profd_status config_check_proxy(struct config *c, struct profd_error *e)
{
    const char *name = c->values[CONFIG_proxy_user];
    char *end = NULL;

    if (!name) {
        return PROFD_OK;
    }
    if (!config_find_user(name, &c->http_proxy_user)) {
        const unsigned long number = strtoul(name, &end, 10);

        if (*name < '0' || *name > '9' || *end || number >= LIMIT_UID_TENANTS) {
            return profd_error_set(e, PROFD_CONFIG, "proxy-user is \"%s\": there is no such user", name);
        }
        c->http_proxy_user = (uint32_t)number;
    }
    if (!c->http_proxy_user || c->http_proxy_user == geteuid()) {
        return profd_error_set(e, PROFD_CONFIG,
                               "proxy-user is \"%s\": a proxy must not run as root or as the user of profd, because "
                               "these may read and delete everything",
                               name);
    }
    c->has_http_proxy_user = true;
    return PROFD_OK;
}

static enum profd_status config_check_detail(struct config *c, struct profd_error *e)
{
    const char *text = config_or(c->values[CONFIG_host_detail], "auto");

    if (!strcmp(text, "auto")) {
        c->host_detail = CONFIG_DETAIL_AUTO;
    } else if (!strcmp(text, "always")) {
        c->host_detail = CONFIG_DETAIL_ALWAYS;
    } else if (!strcmp(text, "never")) {
        c->host_detail = CONFIG_DETAIL_NEVER;
    } else {
        return profd_error_set(e, PROFD_CONFIG, "host-detail is \"%s\"; it must be auto, always or never", text);
    }
    return PROFD_OK;
}

static enum profd_status config_check_hosts_interval(struct config *c, struct profd_error *e)
{
    if (c->values[CONFIG_relay]) { /* then the interval is profd-relay's */
        return PROFD_OK;
    }
    return config_check_interval("relay-interval", config_or(c->values[CONFIG_relay_interval], "60s"),
                                 &c->relay_interval, e);
}

static enum profd_status config_check_relay(struct config *c, struct profd_error *e)
{
    const char *bytes = config_or(c->values[CONFIG_relay_keep_bytes], "1G");
    enum profd_status status = config_parse_bytes("relay-keep-bytes", bytes, &c->relay_keep_bytes, e);

    if (status) {
        return status;
    }
    if (c->relay_keep_bytes < RELAY_KEEP_MIN) {
        return profd_error_set(e, PROFD_CONFIG, "relay-keep-bytes is \"%s\"; it must be at least 1M", bytes);
    }
    if (!c->values[CONFIG_relay]) {
        return PROFD_OK;
    }
    TRY(config_check_relay_url(c, e));
    c->has_relay_user = config_find_user("profd-relay", &c->relay_user);
    return PROFD_OK;
}

static enum profd_status config_check_watch(struct config *c, struct profd_error *e)
{
    struct arena *a = arena_new(WATCH_ARENA);
    struct watch_list list;
    enum profd_status status = a ? watch_list_parse(c->values[CONFIG_watch], a, &list, e) : profd_no_memory(e);

    arena_free(a);
    c->watch = c->values[CONFIG_watch];
    return status ? status
                  : config_check_interval("watch-interval", config_or(c->values[CONFIG_watch_interval], "60s"),
                                          &c->watch_interval, e);
}

static enum profd_status config_check_tier(struct config *c, struct profd_error *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *after = config_or(c->values[CONFIG_seal_after], "2d");
    struct clickhouse_address address;
    char host[TIER_NAME_MOST + 1] = "";

    TRY(config_parse_age("seal-after", after, &c->seal_after, e));
    if (c->seal_after < SEAL_AFTER_MIN) {
        return profd_error_set(e, PROFD_CONFIG, "seal-after is \"%s\"; it must be at least 1d", after);
    }
    c->tier = c->values[CONFIG_tier];
    c->tier_password_file = c->values[CONFIG_tier_password_file];
    c->tier_ca = c->values[CONFIG_tier_ca];
    if (!c->tier) {
        return PROFD_OK;
    }
    if (clickhouse_parse_address(c->tier, &address, e)) {
        return PROFD_CONFIG;
    }
    (void)gethostname(host, sizeof host - 1);
    TRY(config_set_default(c, CONFIG_tier_name, host, "", e));
    c->tier_name = c->values[CONFIG_tier_name];
    const size_t n = strlen(c->tier_name);
    return n && n <= TIER_NAME_MOST && strspn(c->tier_name, allowed) == n
               ? PROFD_OK
               : profd_error_set(e, PROFD_CONFIG, "tier-name is \"%s\", not 1 to %d letters, digits and \"._-\"",
                                 c->tier_name, TIER_NAME_MOST);
}

enum profd_status config_check(struct config *config, struct profd_error *e)
{
    static enum profd_status (*const checks[])(struct config *, struct profd_error *) = {
        config_check_hosts_interval, config_check_detail, config_check_proxy, config_check_relay,
        config_check_origin,         config_check_http,   config_check_watch, config_check_tier};
    const char *open = config->values[CONFIG_http_open];
    enum profd_status status = config_check_level(config, e);

    config->http_given = config->values[CONFIG_http_socket] != NULL;
    if (status) {
        return status;
    }
    status = config_default_state(config, e);
    config->state_dir = config->values[CONFIG_state_dir];
    if (!status && config->values[CONFIG_restore]) {
        return PROFD_OK; /* a restore opens no sockets */
    }
    if (!status) {
        status = config_default_sockets(config, e);
    }
    if (status) {
        return status;
    }
    config->socket = config->values[CONFIG_socket];
    config->http_socket = config->values[CONFIG_http_socket];
    if (config->http_socket && !strcmp(config->http_socket, "none")) {
        config->http_socket = NULL;
    }
    if (config->http_socket && !strcmp(config->http_socket, config->socket)) {
        return profd_error_set(e, PROFD_CONFIG, "socket and http-socket are the same path: %s", config->socket);
    }
    status = listen_parse_unix(config->socket, e);
    if (!status && config->http_socket) {
        status = listen_parse_unix(config->http_socket, e);
    }
    if (status) {
        return status;
    }
    config->http = config->values[CONFIG_http];
    config->http_open = open && !strcmp(open, "yes");
    status = config_check_groups(config, e);
    if (!status) {
        status = config_check_policy(config, e);
    }
    if (!status) {
        status = config_check_interval("harvest-interval", config_or(config->values[CONFIG_harvest_interval], "10s"),
                                       &config->harvest_interval, e);
    }
    for (size_t i = 0; !status && i < sizeof checks / sizeof *checks; i++) {
        status = checks[i](config, e);
    }
    return status;
}
