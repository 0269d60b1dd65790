/* Rows of table segment_group: a segment becomes one row for each group of processes that has a share in it, and each
 * row is the sum of what that group counted. The sum of its rows is the sum that the segment is. Pure. */
#ifndef PROFD_CLICKHOUSE_SEGMENT_H
#define PROFD_CLICKHOUSE_SEGMENT_H

#include "clickhouse/rows.h"
#include "core/rollup.h"
#include "proto/segment.h"

#define SEGMENT_ROW_SERIES 16

/* Columns of a row, in the order in which they are written and read: which row it is, what only the row with head = 1
 * has (the others: 0 and empty arrays), and the counts. */
#define SEGMENT_ROW_KEY                                                                                                \
    "program, sent, epoch, sequence, grp, number, digest, group_rows, head, series, hour, uid, generation, host"
#define SEGMENT_ROW_SUMS                                                                                               \
    "first, last, ended, inexact, uploads, processes, ticks, calls, stack_ticks, nanoseconds, into, touching"
#define SEGMENT_ROW_COUNTS                                                                                             \
    "h_build, h_low, h_high, h_bins, h_rate, h_dimension, h_abbreviation, h_rank, h_used, b_index, b_n, arcs, "        \
    "a_from_build, a_from, a_to_build, a_to, a_rank, a_n, t_rate, t_dimension, t_abbreviation, t_used, n_depth, "      \
    "n_kind, n_build, n_address, n_n"
#define SEGMENT_ROW_ALL SEGMENT_ROW_KEY ", " SEGMENT_ROW_SUMS ", " SEGMENT_ROW_COUNTS

/* Texts and arrays are borrowed, or live in the arena of the reader. */
struct segment_row {
    const char *program; /* build-id */
    uint32_t sent;       /* hours since the epoch, by the host's clock */
    uint8_t epoch[SEGMENT_EPOCH_SIZE];
    uint64_t sequence;
    uint8_t group;
    uint64_t number;
    uint8_t digest[SEGMENT_DIGEST_SIZE];
    uint8_t group_rows; /* of the segment */
    bool head;
    uint8_t series[SEGMENT_ROW_SERIES];
    uint32_t hour, uid, generation;
    uint32_t host;              /* slot */
    int64_t first, last, ended; /* ns; from here on only of a head */
    uint32_t inexact;
    uint64_t uploads;
    uint64_t processes[SEGMENT_GROUPS];
    uint64_t ticks, calls, stack_ticks;
    size_t build_count; /* 0 of other rows than the head */
    const uint64_t *nanoseconds, *into, *touching;
};

/* The hour `sent` of a segment, within what the column has. */
uint32_t segment_row_sent(const struct segment *s);

/* Appends the rows of a segment of counts (segment_check) to rows of columns SEGMENT_ROW_ALL: of head all but group,
 * group_rows and head is set. Scratch memory is of the arena. *count: how many rows. NO_MEMORY or OK; a full buffer has
 * failed. O(rows × groups that have a share). */
enum profd_status segment_row_put(const struct segment_row *head, const struct segment *s, struct arena *a,
                                  struct buffer *rows, uint32_t *count, struct profd_error *e);

/* Read the columns SEGMENT_ROW_KEY, and SEGMENT_ROW_SUMS, of the next row. The program is copied to the arena. False:
 * out of memory, or r->cut. */
bool segment_row_read_key(struct row_reader *r, struct arena *a, struct segment_row *out);
bool segment_row_read_sums(struct row_reader *r, struct arena *a, struct segment_row *out);

/* Reads SEGMENT_ROW_COUNTS: what the group counted, as a sum, its times of arrival as rollup_from_segment gives them
 * (with incoming_order of the row's hour, epoch and sequence). saturated is set only of a head with INEXACT_SATURATED,
 * so read its sums before. builds: of the row's series. Builds, ranges and trees are checked, so that the sum may be
 * added. DAMAGED: the row breaks a rule; BUSY: it is cut off; NO_MEMORY or OK. O(counts). */
enum profd_status segment_row_read_counts(struct row_reader *r, struct arena *a, const struct segment_row *row,
                                          uint32_t builds, struct rollup *out, struct profd_error *e);
/* Skips SEGMENT_ROW_COUNTS. */
void segment_row_skip_counts(struct row_reader *r);

/* The spread of a sum of which all is of one group: this one. NO_MEMORY or OK. O(counts × ROLLUP_GROUPS). */
enum profd_status segment_row_spread(const struct rollup *r, uint32_t group, struct arena *a, struct rollup_spread *out,
                                     struct profd_error *e);

#endif
