/* Fills in defaults and checks values and their combinations. */
#include "base/config_check.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clickhouse_address.h"
#include "core/arena.h"
#include "core/watch_list.h"
#include "net/http.h"
#include "net/listen.h"
#include "net/peer.h"
#include "proto/limits.h"
#include "proto/runtime.h"

#define RAW_AGE_MIN INT64_C(1000000000)
#define RAW_BYTES_MIN (64u << 10)
#define KEEP_BYTES_MIN (1u << 20)
#define RELAY_KEEP_MIN (1u << 20)
#define WATCH_ARENA (1u << 20)
#define SEAL_AFTER_MIN INT64_C(86400000000000)
#define TIER_NAME_MOST 64
#define INTERVAL_MIN INT64_C(1000000000)
#define INTERVAL_MAX INT64_C(3600000000000)
#define RELAY_INTERVAL_MIN INT64_C(1000000000)
#define RELAY_PREFIX_MOST 200 /* bytes */
#define RELAY_INTERVAL_MAX INT64_C(86400000000000)
#define SECOND INT64_C(1000000000)
#define AGE_MAX (INT64_C(36525) * 86400 * SECOND) /* a century */

/* Parses the digits at the beginning; *rest points behind them. Returns false without digits or above 2^63−1. */
static bool config_parse_number(const char *text, uint64_t *number, const char **rest)
{
    uint64_t value = 0;

    *rest = text;
    for (; **rest >= '0' && **rest <= '9'; (*rest)++) {
        const uint64_t digit = (uint64_t)(**rest - '0');

        if (value > (INT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *number = value;
    return *rest != text;
}

static const char *config_or(const char *value, const char *otherwise)
{
    return value ? value : otherwise;
}

struct config_unit {
    const char *name;
    uint64_t factor;
};

enum config_scaled { CONFIG_SCALED, CONFIG_NO_NUMBER, CONFIG_TOO_MUCH };

/* Parses a whole number with the name of one of n units behind it. */
static enum config_scaled config_parse_scaled(const char *text, const struct config_unit *units, size_t n,
                                              uint64_t most, uint64_t *out)
{
    const char *rest;
    uint64_t number;
    size_t i = 0;

    if (!config_parse_number(text, &number, &rest)) {
        return CONFIG_NO_NUMBER;
    }
    while (i < n && strcmp(rest, units[i].name) != 0) {
        i++;
    }
    if (i == n || number > most / units[i].factor) {
        return i == n ? CONFIG_NO_NUMBER : CONFIG_TOO_MUCH;
    }
    *out = number * units[i].factor;
    return CONFIG_SCALED;
}

enum profd_status config_parse_age(const char *key, const char *text, int64_t *ns, struct profd_error *e)
{
    static const struct config_unit units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
    uint64_t seconds = 0;
    const enum config_scaled result =
        !strcmp(text, "0") ? CONFIG_SCALED
                           : config_parse_scaled(text, units, sizeof units / sizeof *units, AGE_MAX / SECOND, &seconds);

    FAIL_IF(result == CONFIG_TOO_MUCH, e, PROFD_CONFIG, "%s is \"%s\"; it must not exceed 100 years", key, text);
    FAIL_IF(result != CONFIG_SCALED, e, PROFD_CONFIG,
            "%s is \"%.100s\", not a whole number followed by s, m, h, d or w", key, text);
    *ns = (int64_t)seconds * SECOND;
    return PROFD_OK;
}

enum profd_status config_parse_bytes(const char *key, const char *text, uint64_t *bytes, struct profd_error *e)
{
    static const struct config_unit units[] = {
        {"", 1},
        {"K", UINT64_C(1) << 10},
        {"M", UINT64_C(1) << 20},
        {"G", UINT64_C(1) << 30},
        {"T", UINT64_C(1) << 40},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
        {"kB", UINT64_C(1000)},
        {"MB", UINT64_C(1000000)},
        {"GB", UINT64_C(1000000000)},
        {"TB", UINT64_C(1000000000000)},
    };
    const enum config_scaled result = config_parse_scaled(text, units, sizeof units / sizeof *units, INT64_MAX, bytes);

    FAIL_IF(result == CONFIG_TOO_MUCH, e, PROFD_CONFIG, "%s is \"%.100s\"; it must not exceed 2^63 bytes", key, text);
    return result == CONFIG_SCALED ? PROFD_OK
                                   : profd_error_set(e, PROFD_CONFIG,
                                                     "%s is \"%.100s\", not a whole number of bytes, or a number "
                                                     "followed by K, M, G or T (also KiB … and kB …)",
                                                     key, text);
}

/* CONFIG unless log-level is the name of a level; notice if it was not given. */
static enum profd_status config_check_level(struct config *config, struct profd_error *e)
{
    const char *level = config->values[CONFIG_log_level];

    config->log_level = LOG_LEVEL_NOTICE;
    FAIL_IF(level && !log_find_level(level, &config->log_level), e, PROFD_CONFIG,
            "log-level is \"%s\", not error, warning, notice, info or debug", level);
    return PROFD_OK;
}

bool config_parse_address(const char *text, struct config_address *out)
{
    const size_t brackets = *text == '[';
    const char *colon = strrchr(text, ':'), *host = text + brackets;
    const size_t n = colon > host + brackets ? (size_t)(colon - host) - brackets : 0;

    if (!n || n >= sizeof out->host || !colon[1] || !http_host_valid(text, strlen(text))) {
        return false;
    }
    memcpy(out->host, host, n);
    out->host[n] = 0;
    memcpy(out->port, colon + 1, strlen(colon + 1) + 1); /* of at most 5 digits */
    return true;
}

/* CONFIG unless relay is https://HOST[:PORT][/PREFIX], with an IPv6 address in brackets. The prefix has only characters
 * that need no encoding, and no segment "." or "..". "otlp:" may precede it; then http:// is possible to this machine.
 * The key must have a value. */
static enum profd_status config_check_relay_url(struct config *config, struct profd_error *e)
{
    static const char scheme[] = "https://", otlp[] = "otlp:", *const local[] = {"127.0.0.1", "[::1]", "localhost"};
    const char *url = config->values[CONFIG_relay];

    config->relay_otlp = !strncmp(url, otlp, strlen(otlp));
    config->relay = url + (config->relay_otlp ? strlen(otlp) : 0);
    bool fine = !strncmp(config->relay, scheme, strlen(scheme));
    const char *host = fine ? config->relay + strlen(scheme) : "";

    for (size_t i = 0; config->relay_otlp && !fine && i < sizeof local / sizeof *local; i++) {
        const size_t n = strlen(local[i]);

        host = config->relay + strlen("http://");
        fine = !strncmp(config->relay, "http://", strlen("http://")) && !strncmp(host, local[i], n) &&
               (!host[n] || host[n] == ':' || host[n] == '/');
    }
    const char *path = fine ? host + strcspn(host, "/") : "";

    fine = fine && http_host_valid(host, (size_t)(path - host)) && strlen(path) <= RELAY_PREFIX_MOST;
    while (*path && fine) {
        const size_t n = strcspn(path + 1, "/");

        fine = strspn(path + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") >= n &&
               (n || !path[1]) && (!n || n > 2 || n != strspn(path + 1, "."));
        path += n + 1;
    }
    return fine ? PROFD_OK
                : profd_error_set(e, PROFD_CONFIG,
                                  "relay is \"%s\", not https://HOST[:PORT][/PREFIX] without user, query and encoded "
                                  "characters, nor otlp: and such a URL, which may be http://127.0.0.1:PORT",
                                  url);
}

/* Decodes %XX in place. Returns false if two digits are missing, or if the result has a control character. */
static bool config_decode_percent(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        if (*from == '%') {
            const char digits[3] = {from[1], from[1] ? from[2] : 0, 0};

            if (strspn(digits, "0123456789abcdefABCDEF") != 2) {
                return false;
            }
            *to = (char)strtoul(digits, NULL, 16);
            from += 2;
        } else {
            *to = *from;
        }
        if ((unsigned char)*to < ' ' || *to == 0x7f) {
            return false;
        }
        to++;
    }
    *to = 0;
    return true;
}

/* Parses http://[USER:PASSWORD@]HOST:PORT. The sentence must not show user and password. */
static enum profd_status config_check_relay_proxy(struct config *c, char *url, struct profd_error *e)
{
    static const char scheme[] = "http://";
    char *at = strrchr(url, '@'), *user = url + strlen(scheme);
    const bool is_http = !strncmp(url, scheme, strlen(scheme));

    c->has_proxy = is_http && config_parse_address(at ? at + 1 : user, &c->proxy) && *c->proxy.port != '0';
    FAIL_IF(!c->has_proxy, e, PROFD_CONFIG, "relay-proxy is \"%s%s\", not http://HOST:PORT", at ? "…@" : "",
            at ? at + 1 : url);
    if (at) {
        *at = 0;
        c->proxy_user = user;
    }
    FAIL_IF(at && (*user == ':' || !strchr(user, ':') || !config_decode_percent(user)), e, PROFD_CONFIG,
            "before the @ of relay-proxy is not USER:PASSWORD, with %%XX for each of : @ %% in them");
    return PROFD_OK;
}

/* Takes the value of a key, or the default. NO_MEMORY. */
static enum profd_status config_take_path(struct config *config, enum config_option option, const char *usual,
                                          const char **path, struct profd_error *e)
{
    if (!config->values[option]) {
        config->values[option] = strdup(usual);
    }
    *path = config->values[option];
    return *path ? PROFD_OK : profd_no_memory(e);
}

enum profd_status config_check_network(struct config *c, struct profd_error *e)
{
    const char *interval = config_or(c->values[CONFIG_relay_interval], "60s");
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    char path[CONFIG_PATH_MAX];

    TRY(config_check_level(c, e));
    TRY(config_take_path(c, CONFIG_socket, "/run/profd/profd.sock", &c->socket, e));
    TRY(listen_parse_unix(c->socket, e));
    FAIL_IF(!c->values[CONFIG_relay], e, PROFD_CONFIG, "relay is not configured: name the centre, as https://HOST");
    TRY(config_check_relay_url(c, e));
    TRY(config_parse_age("relay-interval", interval, &c->relay_interval, e));
    FAIL_IF(c->relay_interval < RELAY_INTERVAL_MIN || c->relay_interval > RELAY_INTERVAL_MAX, e, PROFD_CONFIG,
            "relay-interval is \"%s\", not 1s to 1d", interval);
    TRY(c->values[CONFIG_relay_proxy] ? config_check_relay_proxy(c, c->values[CONFIG_relay_proxy], e) : PROFD_OK);

    /* By default, systemd's copy of the token comes before the file in /etc. */
    if (!directory || snprintf(path, sizeof path, "%s/relay.token", directory) >= (int)sizeof path ||
        access(path, F_OK)) {
        (void)snprintf(path, sizeof path, "%s", SYSCONFDIR "/profd/relay.token");
    }
    c->ca = c->values[CONFIG_relay_ca];
    c->relay_host = c->values[CONFIG_relay_host];
    return config_take_path(c, CONFIG_relay_token, path, &c->token, e);
}

static enum profd_status config_judge_secret(const char *what, const char *path, const struct stat *st,
                                             struct profd_error *e)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    const size_t n = directory ? strlen(directory) : 0;

    FAIL_IF(!S_ISREG(st->st_mode), e, PROFD_CONFIG, "the %s file %s is not a regular file", what, path);
    /* A credential of the service manager is private whatever its mode. */
    if (n && !strncmp(path, directory, n) && path[n] == '/' && !strstr(path + n, "/../")) {
        return PROFD_OK;
    }
    FAIL_IF(st->st_uid && st->st_uid != geteuid(), e, PROFD_CONFIG,
            "the %s file %s belongs to user %u, not to root or user %u", what, path, st->st_uid, geteuid());
    return st->st_mode & 077
               ? profd_error_set(e, PROFD_CONFIG, "other users may access the %s file %s (mode %04o); set mode 0600",
                                 what, path, (unsigned)(st->st_mode & 07777))
               : PROFD_OK;
}

enum profd_status config_read_secret(const char *what, const char *path, size_t least, char *out, size_t size,
                                     struct profd_error *e)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    ssize_t got = -1;
    enum profd_status status = PROFD_OK;

    if (fd >= 0 && !fstat(fd, &st)) {
        status = config_judge_secret(what, path, &st, e);
        got = status ? 0 : read(fd, out, size - 1);
    }
    if (got < 0) {
        status = profd_error_set(e, PROFD_CONFIG, "cannot read the %s file %s: %s", what, path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    if (status) {
        return status;
    }
    out[got] = 0;
    out[strcspn(out, "\r\n")] = 0;
    FAIL_IF(strlen(out) < least || strlen(out) > size - 2, e, PROFD_CONFIG,
            "no %s in %s: its first line has %zu bytes, a %s has %zu to %zu", what, path, strlen(out), what, least,
            size - 2);
    for (const char *c = out; *c; c++) {
        FAIL_IF(*c <= ' ' || *c > '~', e, PROFD_CONFIG, "byte %td of the %s in %s is not printable ASCII", c - out + 1,
                what, path);
    }
    return PROFD_OK;
}

static enum profd_status config_set_default(struct config *config, enum config_option option, const char *first,
                                            const char *second, struct profd_error *e)
{
    const size_t n = strlen(first) + strlen(second) + 1;

    if (config->values[option]) {
        return PROFD_OK;
    }
    char *text = malloc(n);
    TRY(text ? PROFD_OK : profd_no_memory(e));
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

    runtime_directory(RUNTIME_USER, geteuid(), own);
    if (geteuid() == 0) {
        runtime = "/run";
    } else if (!runtime || *runtime != '/' || !config_is_own(runtime)) {
        runtime = own;
        if (!config_is_own(own)) {
            FAIL_IF(getenv("NOTIFY_SOCKET") && !getenv("LISTEN_FDS") && !config->values[CONFIG_socket], e, PROFD_CONFIG,
                    "A service needs a socket: the service manager passed none. Use --socket PATH.");
            runtime_directory(RUNTIME_SHARED, geteuid(), own);
            below = "";
        }
    }
    /* If only the upload socket is moved, the default HTTP socket could replace that of another daemon. */
    if (config->values[CONFIG_socket] && !config->values[CONFIG_http_socket]) {
        return PROFD_OK;
    }
    FAIL_IF(snprintf(directory, sizeof directory, "%s%s", runtime, below) >= (int)sizeof directory, e, PROFD_CONFIG,
            "XDG_RUNTIME_DIR has %zu bytes; the limit is %zu", strlen(runtime), sizeof directory - sizeof "/profd");
    TRY(config_set_default(config, CONFIG_socket, directory, "/profd.sock", e));
    return config_set_default(config, CONFIG_http_socket, directory, "/http.sock", e);
}

/* Converts http-origin to the form that browsers send in Origin: lower case, and no port if it is the scheme's default.
 */
static enum profd_status config_check_origin(struct config *config, struct profd_error *e)
{
    char *origin = config->values[CONFIG_http_origin];
    const char *own_port = NULL;

    config->http_origin = origin;
    if (!origin) {
        return PROFD_OK;
    }
    size_t n = strlen(origin);
    for (size_t i = 0; i < n; i++) {
        origin[i] = (char)(origin[i] >= 'A' && origin[i] <= 'Z' ? origin[i] + ('a' - 'A') : origin[i]);
    }
    size_t scheme = !strncmp(origin, "https://", 8) ? 8 : !strncmp(origin, "http://", 7) ? 7 : 0;
    FAIL_IF(!scheme || !http_host_valid(origin + scheme, n - scheme), e, PROFD_CONFIG,
            "http-origin is \"%s\", not http://HOST[:PORT] or https://HOST[:PORT] without a path", origin);
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

/* Returns false if there is no user of this name. */
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

/* Checks the times and sizes of rolling up and of retention. */
static enum profd_status config_check_policy(struct config *c, struct profd_error *e)
{
    const char *raw_age = config_or(c->values[CONFIG_raw_age], "48h");
    const char *keep_age = config_or(c->values[CONFIG_keep_age], "400d");
    const char *raw_bytes = config_or(c->values[CONFIG_raw_bytes], "1G");
    const char *keep_bytes = config_or(c->values[CONFIG_keep_bytes], "0");
    const char *share = config_or(c->values[CONFIG_user_share], "50%"), *rest;
    uint64_t percent;
    TRY(config_parse_age("raw-age", raw_age, &c->raw_age, e));
    TRY(config_parse_age("keep-age", keep_age, &c->keep_age, e));
    TRY(config_parse_bytes("raw-bytes", raw_bytes, &c->raw_bytes, e));
    TRY(config_parse_bytes("keep-bytes", keep_bytes, &c->keep_bytes, e));
    FAIL_IF(!config_parse_number(share, &percent, &rest) || strcmp(rest, "%") != 0 || percent < 1 || percent > 100, e,
            PROFD_CONFIG, "user-share is \"%.100s\", not a whole number from 1%% to 100%%", share);
    c->user_share = (unsigned)percent;
    /* A default is adapted to a given value. */
    if (!c->values[CONFIG_raw_age] && c->keep_age && c->keep_age < c->raw_age) {
        c->raw_age = c->keep_age;
    }
    if (!c->values[CONFIG_keep_age] && c->keep_age < c->raw_age) {
        c->keep_age = c->raw_age;
    }
    if (!c->values[CONFIG_raw_bytes] && c->keep_bytes && c->keep_bytes / 2 < c->raw_bytes) {
        c->raw_bytes = c->keep_bytes / 2;
    }
    FAIL_IF(c->raw_age < RAW_AGE_MIN, e, PROFD_CONFIG, "raw-age is \"%s\"; it must be at least 1s", raw_age);
    FAIL_IF(c->keep_bytes && c->keep_bytes < KEEP_BYTES_MIN, e, PROFD_CONFIG,
            "keep-bytes is \"%s\"; it must be at least 1M, or 0 for no limit", keep_bytes);
    FAIL_IF(c->raw_bytes < RAW_BYTES_MIN, e, PROFD_CONFIG, "raw-bytes is \"%s\"; it must be at least 64K", raw_bytes);
    /* Removing data before it is rolled up would change the meaning of raw-age. */
    FAIL_IF(c->keep_age && c->keep_age < c->raw_age, e, PROFD_CONFIG, "keep-age %s is less than raw-age %s", keep_age,
            raw_age);
    FAIL_IF(c->keep_bytes && c->keep_bytes < c->raw_bytes, e, PROFD_CONFIG, "keep-bytes %s is less than raw-bytes %s",
            keep_bytes, raw_bytes);
    return PROFD_OK;
}

static enum profd_status config_check_interval(const char *name, const char *text, int64_t *out, struct profd_error *e)
{
    int64_t interval = 0;
    TRY(config_parse_age(name, text, &interval, e));
    FAIL_IF(interval < INTERVAL_MIN || interval > INTERVAL_MAX, e, PROFD_CONFIG, "%s is \"%s\", not 1s to 1h", name,
            text);
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

        FAIL_IF(*name < '0' || *name > '9' || *end || number >= LIMIT_UID_TENANTS, e, PROFD_CONFIG,
                "proxy-user is \"%s\": there is no such user", name);
        c->http_proxy_user = (uint32_t)number;
    }
    FAIL_IF(!c->http_proxy_user || c->http_proxy_user == geteuid(), e, PROFD_CONFIG,
            "proxy-user is \"%s\": a proxy must not run as root or as the user of profd, because these may read and "
            "delete everything",
            name);
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
    TRY(config_parse_bytes("relay-keep-bytes", bytes, &c->relay_keep_bytes, e));
    FAIL_IF(c->relay_keep_bytes < RELAY_KEEP_MIN, e, PROFD_CONFIG, "relay-keep-bytes is \"%s\"; it must be at least 1M",
            bytes);
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
    FAIL_IF(c->seal_after < SEAL_AFTER_MIN, e, PROFD_CONFIG, "seal-after is \"%s\"; it must be at least 1d", after);
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
    TRY(config_check_level(config, e));
    TRY(config_default_state(config, e));

    config->http_given = config->values[CONFIG_http_socket] != NULL;
    config->state_dir = config->values[CONFIG_state_dir];
    if (config->values[CONFIG_restore]) {
        return PROFD_OK; /* a restore opens no sockets */
    }
    TRY(config_default_sockets(config, e));
    config->socket = config->values[CONFIG_socket];
    config->http_socket = config->values[CONFIG_http_socket];
    if (config->http_socket && !strcmp(config->http_socket, "none")) {
        config->http_socket = NULL;
    }
    FAIL_IF(config->http_socket && !strcmp(config->http_socket, config->socket), e, PROFD_CONFIG,
            "socket and http-socket are the same path: %s", config->socket);
    TRY(listen_parse_unix(config->socket, e));
    TRY(config->http_socket ? listen_parse_unix(config->http_socket, e) : PROFD_OK);
    config->http = config->values[CONFIG_http];
    config->containers = config_or(config->values[CONFIG_containers], PLACE_LINKS);
    config->http_open = open && !strcmp(open, "yes");
    config->has_record_user = config_find_user("profd-record", &config->record_user);
    TRY(config_check_group("read-group", config->values[CONFIG_read_group], "profd-read", &config->has_read_group,
                           &config->read_group, e));
    TRY(config_check_group("admin-group", config->values[CONFIG_admin_group], "profd-admin", &config->has_admin_group,
                           &config->admin_group, e));
    TRY(config_check_policy(config, e));
    TRY(config_check_interval("harvest-interval", config_or(config->values[CONFIG_harvest_interval], "10s"),
                              &config->harvest_interval, e));
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        TRY(checks[i](config, e));
    }
    return PROFD_OK;
}
