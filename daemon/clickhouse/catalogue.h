/* Series, and the hours that count of them: what every list and every report begins with. */
#ifndef PROFD_CLICKHOUSE_CATALOGUE_H
#define PROFD_CLICKHOUSE_CATALOGUE_H

#include "clickhouse/engine_internal.h"

/* A row of table series. Everything lives in the arena. */
struct engine_series {
    uint8_t hash[ENGINE_SERIES_SIZE];
    uint32_t uid, generation; /* generation: the current one of its program and uid; rows of others do not count */
    uint64_t number;          /* when it was made */
    const char *program;
    uint32_t program_at; /* of its builds */
    size_t build_count, label_count;
    const char **builds, **names;
    struct store_label *labels;
};

struct engine_catalogue {
    struct engine_series *list; /* ascending by hash */
    size_t count;
};

/* How series are chosen by the builds that they name. */
enum engine_choice {
    ENGINE_EVERY,
    ENGINE_PROGRAM, /* its program is this build */
    ENGINE_BUILD,   /* it has this build */
    ENGINE_PREFIX   /* it has a build with an id that begins so */
};
/* Loads the series of a scope, whether they have hours or not. text: a build-id or a prefix of one; not read for EVERY.
 * One query for the series and one for the generations. */
enum profd_status engine_load_series(struct clickhouse_store *s, struct arena *a, const struct store_scope *scope,
                                     enum engine_choice choice, const char *text, struct engine_catalogue *out,
                                     struct profd_error *e);
/* The series with this hash, or NULL. O(log n). */
const struct engine_series *engine_find_series(const struct engine_catalogue *c,
                                               const uint8_t hash[ENGINE_SERIES_SIZE]);

/* Appends a condition on the columns program and series that holds for all rows of these series, and, if there are
 * many, for others: so look each row's series up. */
void engine_put_selection(struct buffer *b, const struct engine_catalogue *c);
/* Appends a SELECT, in parentheses, for the hours in which something has arrived: program, series, hour, generation,
 * version, sent_from, sent_to. The rows of table segment_group that count in such an hour have its series, hour and
 * generation, and hours of sent from sent_from to sent_to. where: on columns of table change. Rows of other generations
 * are there, too. */
void engine_put_hours(struct buffer *b, const char *where);

/* Keeps the series of which an hour counts. */
enum profd_status engine_keep_visible(struct clickhouse_store *s, struct engine_catalogue *c, struct profd_error *e);

/* What the hours of a series add up to. */
struct engine_sums {
    uint64_t hours; /* 0: nothing of the series is stored */
    uint64_t uploads, ticks, calls, stack_ticks, processes;
    uint64_t single; /* of the uploads, those in hours without such a rollup */
    int64_t first, last;
    uint32_t inexact;
    bool saturated;
    uint64_t *nanoseconds, *into; /* by build of the series */
};
/* Adds up all hours of the series: out[i] is of series i. The rollup of an hour counts if it has everything that has
 * arrived, else the hour's segments do. where: on the columns program, series and hour, NULL: none. */
enum profd_status engine_load_sums(struct clickhouse_store *s, struct arena *a, const struct engine_catalogue *c,
                                   const char *where, struct engine_sums *out, struct profd_error *e);
/* The same of segments alone. */
enum profd_status engine_sum_segments(struct clickhouse_store *s, struct arena *a, const struct engine_catalogue *c,
                                      const char *where, struct engine_sums *out, struct profd_error *e);

/* Ids of builds, ascending, none twice; borrowed from series. */
struct engine_ids {
    const char **list;
    size_t count;
};
/* The builds of the series with ids greater than after that begin with prefix. */
enum profd_status engine_collect_ids(struct arena *a, const struct engine_catalogue *c, const char *after,
                                     const char *prefix, struct engine_ids *out, struct profd_error *e);
/* The position of an id, or the number of ids. O(log n). */
size_t engine_find_id(const struct engine_ids *ids, const char *id);

#endif
