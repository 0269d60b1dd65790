/* Totals by host of what a centre keeps without the host in the series. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_HOST_TOTAL_H
#define PROFD_STORE_SQLITE_HOST_TOTAL_H

#include "store/incoming.h"
#include "store/sqlite_sums.h"

/* A row: calls of shares are those of arcs that begin or end in the build. Strings are borrowed until the next one. */
struct sqlite_host_total {
    int64_t host; /* row of fleet_host; 0: it comes from the tier */
    const char *name, *identity;
    struct sqlite_sums sums;
};
typedef enum profd_status sqlite_host_total_sink(void *context, const struct sqlite_host_total *x,
                                                 struct profd_error *e);

/* Shall the host of what arrives from a tenant in that hour stand in the series? A transaction that begins with this
 * number of the centre puts that many segments. Exact: the series of the tenant's hosts are counted anew when the hour
 * changes, and when segments since the last count could have reached the limit. */
enum profd_status sqlite_host_detail(struct store *s, uint32_t uid, int64_t hour, uint64_t number, size_t segments,
                                     bool *detail, struct profd_error *e);
/* The number of series of hosts, of a second ago at most. On the writing handle. */
enum profd_status sqlite_tenant_series(struct store *s, int64_t hour, uint64_t *out, struct profd_error *e);
/* What a segment adds to sums. */
void sqlite_incoming_sums(const struct incoming *in, struct sqlite_sums *out);
/* Adds a segment to the total of its series, hour and host (row of fleet_host). late: the block for which its day is
 * frozen; 0: it is not. Inside a write transaction. */
enum profd_status sqlite_host_total_add(struct store *s, int64_t series, int64_t host, int64_t late,
                                        const struct incoming *in, struct profd_error *e);
/* Calls each with the totals of a series with that many builds in these hours, both included, by hour. before: without
 * what came when the day was frozen for this block or a later one; INT64_MAX: with all. */
enum profd_status sqlite_host_totals_each(struct store *s, int64_t series, size_t builds, int64_t from, int64_t to,
                                          int64_t before, sqlite_host_total_sink *each, void *context,
                                          struct profd_error *e);

/* Encodes what sqlite_host_totals_each gives, added up by host, in the arena. *size 0: there are none. */
enum profd_status sqlite_host_totals_encode(struct store *s, struct arena *a, int64_t series, size_t builds,
                                            int64_t from, int64_t to, int64_t before, const uint8_t **out, size_t *size,
                                            struct profd_error *e);
/* Calls each with the totals. DAMAGED if the bytes are not an encoding. */
enum profd_status sqlite_host_totals_decode(struct store *s, const uint8_t *bytes, size_t size, size_t builds,
                                            sqlite_host_total_sink *each, void *context, struct profd_error *e);

#endif
