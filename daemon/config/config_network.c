/* What profd-relay needs of the configuration. */
#include "config/config_network.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config_units.h"
#include "net/http_target.h"
#include "net/listen.h"

#define RELAY_INTERVAL_MIN INT64_C(1000000000)
#define RELAY_PREFIX_MOST 200 /* bytes */
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

/* https://HOST[:PORT][/PREFIX], of the characters that need no encoding, without "." and "..". */
static bool config_check_https(const char *url)
{
    static const char scheme[] = "https://";

    if (strncmp(url, scheme, strlen(scheme)) != 0) {
        return false;
    }
    const char *host = url + strlen(scheme), *path = host + strcspn(host, "/");

    if (!http_host_valid(host, (size_t)(path - host)) || strlen(path) > RELAY_PREFIX_MOST) {
        return false;
    }
    while (*path) {
        const size_t n = strcspn(path + 1, "/");

        if (strspn(path + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") < n ||
            (!n && path[1]) || (n <= 2 && n == strspn(path + 1, ".") && n)) {
            return false;
        }
        path += n + 1;
    }
    return true;
}

enum profd_status config_check_relay_url(struct config *config, struct profd_error *e)
{
    config->relay = config->values[CONFIG_relay];
    return config_check_https(config->relay)
               ? PROFD_OK
               : profd_error_set(e, PROFD_CONFIG,
                                 "relay is \"%s\", not https://HOST[:PORT][/PREFIX] without user, query and encoded "
                                 "characters",
                                 config->relay);
}

/* Decodes %XX in place. False: two digits are missing, or a control character comes out. */
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

/* http://[USER:PASSWORD@]HOST:PORT. User and password stay out of the sentence. */
static enum profd_status config_check_proxy(struct config *c, char *url, struct profd_error *e)
{
    static const char scheme[] = "http://";
    char *at = strrchr(url, '@'), *user = url + strlen(scheme);
    const bool is_http = !strncmp(url, scheme, strlen(scheme));

    c->has_proxy = is_http && config_parse_address(at ? at + 1 : user, &c->proxy) && *c->proxy.port != '0';
    if (!c->has_proxy) {
        return profd_error_set(e, PROFD_CONFIG, "relay-proxy is \"%s%s\", not http://HOST:PORT", at ? "…@" : "",
                               at ? at + 1 : url);
    }
    if (at) {
        *at = 0;
        c->proxy_user = user;
    }
    if (at && (*user == ':' || !strchr(user, ':') || !config_decode_percent(user))) {
        return profd_error_set(
            e, PROFD_CONFIG, "before the @ of relay-proxy is not USER:PASSWORD, with %%XX for each of : @ %% in them");
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

/* systemd's copy of the token comes before the file in /etc. */
static enum profd_status config_check_token(struct config *c, struct profd_error *e)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    char path[CONFIG_PATH_MAX];

    if (!directory || snprintf(path, sizeof path, "%s/relay.token", directory) >= (int)sizeof path ||
        access(path, F_OK)) {
        (void)snprintf(path, sizeof path, "%s", SYSCONFDIR "/profd/relay.token");
    }
    c->ca = c->values[CONFIG_relay_ca];
    c->relay_host = c->values[CONFIG_relay_host];
    return config_take_path(c, CONFIG_relay_token, path, &c->token, e);
}

static enum profd_status config_check_relay_program(struct config *c, struct profd_error *e)
{
    const char *interval = c->values[CONFIG_relay_interval];
    enum profd_status status;

    if (!c->values[CONFIG_relay]) {
        return profd_error_set(e, PROFD_CONFIG, "relay is not configured: name the centre, as https://HOST");
    }
    status = config_check_relay_url(c, e);
    if (!status) {
        status = config_parse_age("relay-interval", interval ? interval : "60s", &c->relay_interval, e);
    }
    if (!status && (c->relay_interval < RELAY_INTERVAL_MIN || c->relay_interval > RELAY_INTERVAL_MAX)) {
        status = profd_error_set(e, PROFD_CONFIG, "relay-interval is \"%s\", not 1s to 1d", interval);
    }
    if (!status && c->values[CONFIG_relay_proxy]) {
        status = config_check_proxy(c, c->values[CONFIG_relay_proxy], e);
    }
    return status ? status : config_check_token(c, e);
}

enum profd_status config_check_network(struct config *config, struct profd_error *e)
{
    enum profd_status status = config_check_level(config, e);

    if (!status) {
        status = config_take_path(config, CONFIG_socket, "/run/profd/profd.sock", &config->socket, e);
    }
    if (!status) {
        status = listen_parse_unix(config->socket, e);
    }
    return status ? status : config_check_relay_program(config, e);
}

static bool config_is_credential(const char *path)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    const size_t n = directory ? strlen(directory) : 0;

    return n && !strncmp(path, directory, n) && path[n] == '/' && !strstr(path + n, "/../");
}

static enum profd_status config_judge_secret(const char *what, const char *path, const struct stat *st,
                                             struct profd_error *e)
{
    if (!S_ISREG(st->st_mode)) {
        return profd_error_set(e, PROFD_CONFIG, "the %s file %s is not a regular file", what, path);
    }
    if (config_is_credential(path)) {
        return PROFD_OK;
    }
    if (st->st_uid && st->st_uid != geteuid()) {
        return profd_error_set(e, PROFD_CONFIG, "the %s file %s belongs to user %u, not to root or user %u", what, path,
                               st->st_uid, geteuid());
    }
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
    if (strlen(out) < least || strlen(out) > size - 2) {
        return profd_error_set(e, PROFD_CONFIG, "no %s in %s: its first line has %zu bytes, a %s has %zu to %zu", what,
                               path, strlen(out), what, least, size - 2);
    }
    for (const char *c = out; *c; c++) {
        if (*c <= ' ' || *c > '~') {
            return profd_error_set(e, PROFD_CONFIG, "byte %td of the %s in %s is not printable ASCII", c - out + 1,
                                   what, path);
        }
    }
    return PROFD_OK;
}
