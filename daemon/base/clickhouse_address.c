#include "base/clickhouse_address.h"

#include <string.h>

#include "proto/http_text.h"

/* A piece of the URL. */
struct piece {
    const char *at;
    size_t size;
};

static bool piece_is(struct piece p, const char *text)
{
    return p.size == strlen(text) && !memcmp(p.at, text, p.size);
}

/* Cuts *p at the first c. Returns what follows c; its `at` is NULL if there is no c. */
static struct piece piece_cut(struct piece *p, char c)
{
    const char *at = memchr(p->at, c, p->size);
    if (!at) {
        return (struct piece){NULL, 0};
    }
    const struct piece rest = {at + 1, p->size - (size_t)(at + 1 - p->at)};
    p->size = (size_t)(at - p->at);
    return rest;
}

/* Takes a name: a letter or '_', then letters, digits, '_', and characters of more. */
static enum profd_status name_take(const char *what, struct piece p, const char *more,
                                   char out[CLICKHOUSE_NAME_MAX + 1], struct profd_error *e)
{
    bool fine = p.size >= 1 && p.size <= CLICKHOUSE_NAME_MAX && !(p.at[0] >= '0' && p.at[0] <= '9');
    for (size_t i = 0; i < p.size && fine; i++) {
        fine = http_is_alphanumeric(p.at[i]) || p.at[i] == '_' || (i && p.at[i] && strchr(more, p.at[i]));
    }
    FAIL_IF(!fine, e, PROFD_USAGE,
            "the %s \"%.*s\" in the URL of the tier is not 1 to %d characters of A-Z, a-z, 0-9 and \"_%s\", the first "
            "a letter or \"_\"",
            what, (int)p.size, p.at ? p.at : "", CLICKHOUSE_NAME_MAX, more);
    memcpy(out, p.at, p.size);
    out[p.size] = 0;
    return PROFD_OK;
}

/* Takes HOST[:PORT], with an IPv6 address in brackets. */
static enum profd_status server_take(struct piece p, bool tls, struct clickhouse_server *out, struct profd_error *e)
{
    const struct piece whole = p;
    const bool v6 = p.size && p.at[0] == '[';
    unsigned long port = tls ? 8443 : 8123;
    struct piece rest = piece_cut(&p, v6 ? ']' : ':');
    bool fine = v6 ? rest.at && (!rest.size || rest.at[0] == ':') && p.size > 1 : p.size > 0;
    p.size += v6 && fine; /* with its bracket */
    fine = fine && p.size < sizeof out->host;
    for (size_t i = v6; i + v6 < p.size && fine; i++) {
        fine = v6 ? http_hex_value(p.at[i]) >= 0 || p.at[i] == ':' || p.at[i] == '.'
                  : http_is_alphanumeric(p.at[i]) || p.at[i] == '-' || p.at[i] == '.';
    }
    FAIL_IF(!fine, e, PROFD_USAGE,
            "\"%.*s\" in the URL of the tier is not a host name, an IPv4 address or an IPv6 address in brackets",
            (int)whole.size, whole.at);
    if (v6 && rest.size) {
        rest = (struct piece){rest.at + 1, rest.size - 1};
    }
    if (v6 ? rest.at != p.at + p.size : rest.at != NULL) {
        port = 0;
        for (size_t i = 0; i < rest.size; i++) {
            const bool digit = rest.at[i] >= '0' && rest.at[i] <= '9';
            port = !digit || port > 65535 ? 65536 : 10 * port + (unsigned long)(rest.at[i] - '0');
        }
        FAIL_IF(port < 1 || port > 65535, e, PROFD_USAGE, "the port \"%.*s\" in the URL of the tier is not 1 to 65535",
                (int)rest.size, rest.at);
    }
    memcpy(out->host, p.at, p.size);
    out->host[p.size] = 0;
    out->port = (unsigned)port;
    const bool loopback = !strcmp(out->host, "localhost") || !strcmp(out->host, "[::1]") ||
                          (!strncmp(out->host, "127.", 4) && !out->host[strspn(out->host, "0123456789.")]);
    return tls || loopback
               ? PROFD_OK
               : profd_error_set(e, PROFD_USAGE,
                                 "the URL of the tier begins with http://, which is for loopback only, and names the "
                                 "host %s: use https://",
                                 out->host);
}

enum profd_status clickhouse_parse_address(const char *url, struct clickhouse_address *out, struct profd_error *e)
{
    struct clickhouse_address a = {.user = "default", .database = "profd", .tls = !strncmp(url, "https://", 8)};
    FAIL_IF(!a.tls && strncmp(url, "http://", 7), e, PROFD_USAGE, "\"%s\" does not begin with https://", url);
    const size_t scheme = a.tls ? 8 : 7;
    struct piece place = {url + scheme, strlen(url) - scheme};
    struct piece parameters = piece_cut(&place, '?');
    const struct piece database = piece_cut(&place, '/');
    struct piece user = place;
    const struct piece hosts = piece_cut(&user, '@');
    if (hosts.at) {
        FAIL_IF(memchr(user.at, ':', user.size), e, PROFD_USAGE,
                "the URL of the tier holds a password, which every user could read: write it to the file that "
                "tier-password-file names");
        TRY(name_take("user", user, "-.", a.user, e));
        place = hosts;
    }
    while (place.at) {
        const struct piece rest = piece_cut(&place, ',');
        FAIL_IF(a.server_count == CLICKHOUSE_SERVERS_MOST, e, PROFD_USAGE,
                "the URL of the tier names more than %u servers", CLICKHOUSE_SERVERS_MOST);
        TRY(server_take(place, a.tls, &a.servers[a.server_count++], e));
        place = rest;
    }
    if (database.size) {
        TRY(name_take("database", database, "", a.database, e));
    }
    while (parameters.at) {
        const struct piece rest = piece_cut(&parameters, '&');
        const struct piece value = piece_cut(&parameters, '=');
        if (piece_is(parameters, "cluster")) {
            TRY(name_take("cluster", value, "-", a.cluster, e));
        } else if (!piece_is(parameters, "replicated")) {
            return profd_error_set(e, PROFD_USAGE,
                                   "the URL of the tier has no parameter \"%.*s\": there are cluster and replicated",
                                   (int)parameters.size, parameters.at);
        } else if (!piece_is(value, "0") && !piece_is(value, "1")) {
            return profd_error_set(e, PROFD_USAGE, "replicated=%.*s in the URL of the tier: the value is 0 or 1",
                                   (int)value.size, value.at ? value.at : "");
        } else {
            a.replicated = piece_is(value, "1");
        }
        parameters = rest;
    }
    FAIL_IF(a.replicated && !a.cluster[0], e, PROFD_USAGE,
            "replicated=1 in the URL of the tier also needs cluster=NAME: replicas belong to the shards of a cluster");
    *out = a;
    return PROFD_OK;
}

struct clickhouse_address clickhouse_pick_server(const struct clickhouse_address *a, unsigned server)
{
    struct clickhouse_address one = *a;
    one.servers[0] = a->servers[server];
    one.server_count = 1;
    return one;
}
