#include "clickhouse/address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/http_text.h"

#define SCHEME "clickhouse://"
#define PORT 8123u
#define PORT_TLS 8443u

/* A piece of the URL. */
struct piece {
    const char *at;
    size_t size;
};

static bool piece_is(struct piece p, const char *text)
{
    return p.size == strlen(text) && memcmp(p.at, text, p.size) == 0;
}

/* Cuts the piece at the first of these characters: the part before it remains in *p, the rest begins at it. */
static struct piece piece_cut(struct piece *p, const char *characters)
{
    size_t n = 0;
    while (n < p->size && strchr(characters, p->at[n]) == NULL) {
        n++;
    }
    const struct piece rest = {p->at + n, p->size - n};
    p->size = n;
    return rest;
}

/* A name: a letter or '_', then letters, digits, '_', and those of more. */
static enum profd_status name_take(const char *what, struct piece p, const char *more,
                                   char out[CLICKHOUSE_NAME_MAX + 1], struct profd_error *e)
{
    bool fine = p.size >= 1 && p.size <= CLICKHOUSE_NAME_MAX && !(p.at[0] >= '0' && p.at[0] <= '9');
    for (size_t i = 0; i < p.size && fine; i++) {
        fine = http_is_alphanumeric(p.at[i]) || p.at[i] == '_' || (i > 0 && strchr(more, p.at[i]) != NULL);
    }
    if (!fine) {
        return profd_error_set(
            e, PROFD_USAGE,
            "the %s \"%.*s\" in the URL of ClickHouse is not 1 to %d characters of A-Z, a-z, 0-9 and "
            "\"_%s\", of which the first is a letter or \"_\"",
            what, (int)p.size, p.at, CLICKHOUSE_NAME_MAX, more);
    }
    memcpy(out, p.at, p.size);
    out[p.size] = '\0';
    return PROFD_OK;
}

static enum profd_status port_take(struct piece p, unsigned *out, struct profd_error *e)
{
    unsigned long port = 0;
    bool fine = p.size >= 1 && p.size <= 5;
    for (size_t i = 0; i < p.size && fine; i++) {
        fine = p.at[i] >= '0' && p.at[i] <= '9';
        port = 10 * port + (unsigned long)(p.at[i] - '0');
    }
    if (!fine || port < 1 || port > 65535) {
        return profd_error_set(e, PROFD_USAGE, "the port \"%.*s\" in the URL of ClickHouse is not 1 to 65535",
                               (int)p.size, p.at);
    }
    *out = (unsigned)port;
    return PROFD_OK;
}

/* HOST[:PORT]; an IPv6 address stands in brackets. */
static enum profd_status host_take(struct piece p, struct clickhouse_server *a, struct profd_error *e)
{
    const bool v6 = p.size > 0 && p.at[0] == '[';
    struct piece rest = piece_cut(&p, v6 ? "]" : ":");
    if (v6 && rest.size > 0) {
        p.size++;
        rest.at++;
        rest.size--;
    }
    bool fine = p.size >= (v6 ? 3u : 1u) && p.size < sizeof a->host && (!v6 || p.at[p.size - 1] == ']');
    for (size_t i = v6; i + v6 < p.size && fine; i++) {
        fine = v6 ? http_hex_value(p.at[i]) >= 0 || strchr(":.", p.at[i]) != NULL
                  : http_is_alphanumeric(p.at[i]) || strchr("-.", p.at[i]) != NULL;
    }
    if (!fine || (rest.size > 0 && rest.at[0] != ':')) {
        return profd_error_set(e, PROFD_USAGE,
                               "\"%.*s\" in the URL of ClickHouse is not a host name, an IPv4 address or an IPv6 "
                               "address in brackets",
                               (int)(p.size + rest.size), p.at);
    }
    memcpy(a->host, p.at, p.size);
    a->host[p.size] = '\0';
    return rest.size ? port_take((struct piece){rest.at + 1, rest.size - 1}, &a->port, e) : PROFD_OK;
}

/* HOST[:PORT], separated by commas. */
static enum profd_status hosts_take(struct piece p, struct clickhouse_address *a, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    bool more = true;
    while (status == PROFD_OK && more) {
        struct piece one = p;
        p = piece_cut(&one, ",");
        more = p.size > 0;
        p.at += more;
        p.size -= more;
        if (a->server_count == CLICKHOUSE_SERVERS_MOST) {
            return profd_error_set(e, PROFD_USAGE, "the URL of ClickHouse names more than %u servers",
                                   CLICKHOUSE_SERVERS_MOST);
        }
        status = host_take(one, &a->servers[a->server_count++], e);
    }
    return status;
}

static enum profd_status flag_take(struct piece key, struct piece value, bool *out, struct profd_error *e)
{
    if (!piece_is(value, "1") && !piece_is(value, "0")) {
        return profd_error_set(e, PROFD_USAGE, "%.*s=%.*s in the URL of ClickHouse: the value is 0 or 1", (int)key.size,
                               key.at, (int)value.size, value.at);
    }
    *out = value.at[0] == '1';
    return PROFD_OK;
}

static enum profd_status parameter_take(struct piece key, struct clickhouse_address *a, struct profd_error *e)
{
    struct piece value = piece_cut(&key, "=");
    if (value.size > 0) {
        value.at++;
        value.size--;
    }
    if (piece_is(key, "cluster")) {
        return name_take("cluster", value, "-", a->cluster, e);
    }
    if (piece_is(key, "replicated")) {
        return flag_take(key, value, &a->replicated, e);
    }
    if (piece_is(key, "tls")) {
        return flag_take(key, value, &a->tls, e);
    }
    return profd_error_set(e, PROFD_USAGE,
                           "the URL of ClickHouse has no parameter \"%.*s\": there are cluster, replicated and tls",
                           (int)key.size, key.at);
}

static enum profd_status parameters_take(struct piece p, struct clickhouse_address *a, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    while (status == PROFD_OK && p.size > 0) { /* it begins with '?' or '&' */
        struct piece one = {p.at + 1, p.size - 1};
        p = piece_cut(&one, "&");
        status = parameter_take(one, a, e);
    }
    if (status == PROFD_OK && a->replicated && !a->cluster[0]) {
        return profd_error_set(e, PROFD_USAGE,
                               "replicated=1 in the URL of ClickHouse also wants cluster=NAME: replicas belong to the "
                               "shards of a cluster");
    }
    return status;
}

enum profd_status clickhouse_parse_address(const char *url, struct clickhouse_address *out, struct profd_error *e)
{
    struct clickhouse_address a = {.user = "default", .database = "profd"};
    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0) {
        return profd_error_set(e, PROFD_USAGE, "\"%s\" does not begin with " SCHEME, url);
    }
    struct piece place = {url + strlen(SCHEME), strlen(url) - strlen(SCHEME)};
    const struct piece parameters = piece_cut(&place, "?");
    struct piece database = piece_cut(&place, "/"), user = place;
    const struct piece host = piece_cut(&user, "@");
    enum profd_status status = PROFD_OK;
    if (host.size > 0 && memchr(user.at, ':', user.size)) {
        return profd_error_set(e, PROFD_USAGE,
                               "the URL of ClickHouse holds a password, which every user could read: give it in a "
                               "file");
    }
    if (host.size > 0) {
        status = name_take("user", user, "-.", a.user, e);
        place = (struct piece){host.at + 1, host.size - 1};
    }
    if (status == PROFD_OK) {
        status = hosts_take(place, &a, e);
    }
    if (status == PROFD_OK && database.size > 1) {
        status = name_take("database", (struct piece){database.at + 1, database.size - 1}, "", a.database, e);
    }
    if (status == PROFD_OK) {
        status = parameters_take(parameters, &a, e);
    }
    if (status == PROFD_OK) {
        for (unsigned i = 0; i < a.server_count; i++) {
            struct clickhouse_server *s = &a.servers[i];
            s->port = s->port ? s->port : a.tls ? PORT_TLS : PORT;
        }
        *out = a;
    }
    return status;
}

struct clickhouse_address clickhouse_pick_server(const struct clickhouse_address *a, unsigned server)
{
    struct clickhouse_address one = *a;
    one.servers[0] = a->servers[server];
    one.server_count = 1;
    return one;
}

/* True if what is sent to the host stays on this machine. */
static bool server_is_loopback(const struct clickhouse_server *a)
{
    return strcmp(a->host, "localhost") == 0 || strcmp(a->host, "[::1]") == 0 ||
           (strncmp(a->host, "127.", 4) == 0 && a->host[strspn(a->host, "0123456789.")] == '\0');
}

/* The first line of the file, which text receives with a NUL; its length, or −1. */
static ssize_t line_read(int fd, char *text, size_t size)
{
    const ssize_t n = read(fd, text, size - 1);
    if (n >= 0) {
        text[n] = '\0';
        text[strcspn(text, "\r\n")] = '\0';
    }
    return n < 0 ? n : (ssize_t)strlen(text);
}

enum profd_status clickhouse_read_password(const char *path, struct clickhouse_address *address, struct profd_error *e)
{
    char text[CLICKHOUSE_PASSWORD_MAX + 2];
    struct stat st;
    for (unsigned i = 0; i < address->server_count; i++) {
        if (!address->tls && !server_is_loopback(&address->servers[i])) {
            return profd_error_set(e, PROFD_CONFIG,
                                   "the password in %s would be sent to %s without TLS: add tls=1 to the URL of "
                                   "ClickHouse",
                                   path, address->servers[i].host);
        }
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const ssize_t n = fd < 0 || fstat(fd, &st) != 0 ? -1 : line_read(fd, text, sizeof text);
    const int why = errno;
    enum profd_status status = PROFD_OK;
    if (n < 0) {
        status = profd_error_set(e, PROFD_NO_INPUT, "cannot read the password in %s: %s", path, strerror(why));
    } else if (st.st_mode & (S_IROTH | S_IWOTH)) {
        status = profd_error_set(e, PROFD_CONFIG, "every user may read or write %s (mode %03o): chmod o= %s", path,
                                 (unsigned)(st.st_mode & 0777), path);
    } else if (n == 0 || n > CLICKHOUSE_PASSWORD_MAX) {
        status = profd_error_set(e, PROFD_CONFIG, "the first line of %s is not a password of 1 to %d bytes", path,
                                 CLICKHOUSE_PASSWORD_MAX);
    }
    for (ssize_t i = 0; i < n && status == PROFD_OK; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            status =
                profd_error_set(e, PROFD_CONFIG, "the password in %s has a byte that is not printable ASCII", path);
        }
    }
    if (status == PROFD_OK) {
        memcpy(address->password, text, (size_t)n + 1);
    }
    explicit_bzero(text, sizeof text);
    if (fd >= 0) {
        close(fd);
    }
    return status;
}
