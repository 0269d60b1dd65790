/* GET /api/v1/status: stored data and state of the daemon, for profctl status. */
#ifndef PROFD_REQUESTS_STATUS_H
#define PROFD_REQUESTS_STATUS_H

#include "core/buffer.h"
#include "requests/numbers.h"
#include "store/store.h"

/* What the configuration says. */
struct status_setup {
    const char *http;    /* ADDR:PORT of the configuration; NULL: none */
    bool http_open;      /* no token is asked for */
    unsigned user_share; /* percent */
    const char *relay;   /* URL of the centre; NULL: nothing is forwarded */
    const char *tier;    /* URL of ClickHouse; NULL: past days stay */
};

/* What the store says. */
struct status_store {
    struct store_totals totals;
    struct store_relay relay;
    struct store_centre centre;
};

/* Appends a JSON object. */
void status_format(const struct status_setup *setup, const struct pages_numbers *n, const struct status_store *store,
                   struct buffer *to);

#endif
