#include "admin/request_reader.h"

#include <stdlib.h>
#include <string.h>

#define SECONDS_MOST 3155760000ull /* 100 years */

enum profd_status request_parse_name(const char *what, const char *text, size_t n, char out[STORE_NAME_MOST + 1],
                                     struct profd_error *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-";
    const size_t fine = strspn(text, allowed);

    if (!n || n > STORE_NAME_MOST || fine < n) {
        return profd_error_set(e, PROFD_USAGE,
                               "%s \"%.*s\": a name has 1 to %u letters, digits and characters of \"._@-\"", what,
                               (int)(n < 100 ? n : 100), text, STORE_NAME_MOST);
    }
    memcpy(out, text, n);
    out[n] = '\0';
    return PROFD_OK;
}

enum profd_status request_parse_tenant(const char *text, size_t n, char out[STORE_NAME_MOST + 1], struct profd_error *e)
{
    if (n == 3 && !memcmp(text, "all", n)) {
        return profd_error_set(e, PROFD_USAGE, "\"all\" is every tenant, and the name of none");
    }
    return request_parse_name("tenant", text, n, out, e);
}

static enum profd_status request_parse_tenants(const char *text, struct store_reader *r, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;

    r->all = !strcmp(text, "all");
    for (const char *at = text; !r->all && !status; at++) {
        const size_t n = strcspn(at, ",");

        if (r->tenant_count == STORE_READER_TENANTS) {
            return profd_error_set(e, PROFD_USAGE, "a reader has at most %u tenants, or \"all\"", STORE_READER_TENANTS);
        }
        status = request_parse_tenant(at, n, r->tenants[r->tenant_count++].name, e);
        at += n;
        if (!*at) {
            break;
        }
    }
    return status;
}

enum profd_status request_parse_reader(const char *const arguments[5], struct store_reader *out, int64_t *lasts,
                                       struct profd_error *e)
{
    char *end = NULL;
    const unsigned long long seconds = strtoull(arguments[3], &end, 10);
    enum profd_status status = request_parse_name("reader", arguments[0], strlen(arguments[0]), out->name, e);

    if (!status && strcmp(arguments[1], "read") != 0 && strcmp(arguments[1], "admin") != 0) {
        status = profd_error_set(e, PROFD_USAGE, "the role of a reader is read or admin, not \"%.100s\"", arguments[1]);
    }
    if (!status && (*arguments[3] < '0' || *arguments[3] > '9' || *end || seconds > SECONDS_MOST)) {
        status = profd_error_set(e, PROFD_USAGE, "\"%.100s\" is not a number of seconds up to %llu", arguments[3],
                                 SECONDS_MOST);
    }
    if (!status && strcmp(arguments[4], "token") != 0 && strcmp(arguments[4], "proxy") != 0) {
        status =
            profd_error_set(e, PROFD_USAGE, "a reader has a token or comes by a proxy, not \"%.100s\"", arguments[4]);
    }
    if (!status) {
        out->admin = !strcmp(arguments[1], "admin");
        out->has_token = !strcmp(arguments[4], "token");
        *lasts = (int64_t)seconds * 1000000000;
        status = request_parse_tenants(arguments[2], out, e);
    }
    return status;
}
