/* What a filter selects: series, the hours in which they have something, and the rows that are given of these. A plan
 * is what the tables said when it was made: the version of an hour is read before its segments, so nothing is missing
 * that was acknowledged before. */
#ifndef PROFD_CLICKHOUSE_PLAN_H
#define PROFD_CLICKHOUSE_PLAN_H

#include "clickhouse/engine_internal.h"

#define PLAN_MINUTE INT64_C(60000000000) /* ns */
#define PLAN_WIDE 60u                    /* minutes of an hour */

/* A series. Everything lives in the plan's arena. */
struct plan_series {
    uint8_t hash[ENGINE_SERIES_SIZE];
    uint64_t number; /* for readers: of the hash */
    uint32_t uid, generation;
    uint32_t program; /* index into builds */
    bool totals;      /* it is given as totals by host */
    size_t build_count;
    struct store_build *builds; /* in load order; names by plan_find_names */
    size_t label_count;
    const struct store_label *labels;
};

/* An hour of a series in which something counts. */
struct plan_hour {
    uint32_t series; /* index */
    uint32_t hour;
    uint64_t version; /* > 0 */
    uint64_t rolled;  /* version of a rollup that has all of it; 0: there is none, and the segments count */
    uint64_t commit;  /* of the rollup's first segment */
    uint32_t sent_from, sent_to;
};

/* A row to be given: an hour, or the segments of it that are in a slice of the clock. */
struct plan_ref {
    uint64_t commit; /* of its first segment; ascends */
    uint32_t rank;
    uint32_t hour;    /* index into hours */
    uint32_t minutes; /* width of the slice; PLAN_WIDE: the hour */
    uint32_t at;      /* which slice of the hour */
    uint64_t segments;
    bool rolled;
};

struct plan {
    struct clickhouse_store *s;
    struct arena *arena;
    const struct store_filter *filter;
    int64_t since, until; /* the filter's, as they can be had: see store_get_range */
    bool sliced;          /* there is a limit: hours that are not rolled up are given by slices */
    struct plan_series *series;
    uint32_t series_count;
    struct hashmap by_hash;  /* of series: hash → index */
    struct plan_hour *hours; /* ascending by hour and series */
    uint32_t hour_count, hour_capacity;
    struct plan_ref *refs; /* ascending by commit; none of totals */
    uint32_t ref_count, ref_capacity;
};

/* Finds the series that the filter selects (builds have no names yet). plan_done frees, in every case. A filter without
 * build selects the series of all builds. */
enum profd_status plan_init(struct plan *p, struct clickhouse_store *s, const struct store_scope *scope,
                            const struct store_filter *filter, struct profd_error *e);
void plan_done(struct plan *p);
/* The series with this hash; NULL: it is not selected. */
struct plan_series *plan_find_series(const struct plan *p, const uint8_t hash[ENGINE_SERIES_SIZE]);

/* Names the builds of all series: of each build and uid what the first series called it. */
enum profd_status plan_find_names(struct plan *p, struct profd_error *e);
/* Finds the hours from first to last in which the series have something. */
enum profd_status plan_find_hours(struct plan *p, uint32_t first, uint32_t last, struct profd_error *e);
/* Finds the rows of these hours, and moves the limits of time to borders of rows. */
enum profd_status plan_find_refs(struct plan *p, struct profd_error *e);

/* The index in hours of an hour of a series, or of one of which the segments count; PLAN_NONE: there is none. After
 * plan_find_refs. O(log n). */
#define PLAN_NONE UINT32_MAX
uint32_t plan_find_hour(const struct plan *p, const struct plan_series *series, uint32_t hour);
uint32_t plan_find_open(const struct plan *p, const struct plan_series *series, uint32_t hour);
/* What rows of a series share. */
struct store_row plan_begin_row(const struct plan_series *x);
/* The hours that the limits of the filter touch. False: none. */
bool plan_window(const struct plan *p, uint32_t *first, uint32_t *last);

/* The minutes of the narrowest slice (1, 5, 15, or the hour) that contains all ends of a segment's windows; 0 for the
 * earliest end: the hour. */
uint32_t plan_slice(int64_t ended, int64_t last);

/* Appends a condition on the columns program and series that holds for the wanted ones of the plan's series (NULL:
 * all), and, if these are many, for others: so look each row's series up. */
#define PLAN_SERIES_MOST 500u
void plan_put_series(const struct plan *p, const bool *wanted, struct buffer *b);

#endif
