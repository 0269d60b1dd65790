#include "clickhouse/opener.h"

#include <curl/curl.h>

#include "clickhouse/engine.h"

static enum profd_status open_reader(const struct store_opener *base, struct store **out, struct profd_error *e)
{
    const struct clickhouse_opener *o = (const struct clickhouse_opener *)base;
    return store_clickhouse_open(&o->address, o->ca, false, out, e);
}

enum profd_status clickhouse_opener_open_writer(const struct clickhouse_opener *o, struct store **out,
                                                struct profd_error *e)
{
    return store_clickhouse_open(&o->address, o->ca, true, out, e);
}

enum profd_status clickhouse_opener_init(struct clickhouse_opener *o, const char *url, const char *password,
                                         const char *ca, struct profd_error *e)
{
    *o = (struct clickhouse_opener){.base = {.shared = true, .open = open_reader}, .ca = ca};
    enum profd_status status = clickhouse_parse_address(url, &o->address, e);
    if (status == PROFD_OK && password) {
        status = clickhouse_read_password(password, &o->address, e);
    }
    if (status == PROFD_OK && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        status = profd_no_memory(e);
    }
    return status == PROFD_USAGE ? PROFD_CONFIG : status;
}
