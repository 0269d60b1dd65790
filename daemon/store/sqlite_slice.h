/* Slices of time: the uploads that live processes grow. Only sqlite*.c include this. */
#ifndef PROFD_STORE_SQLITE_SLICE_H
#define PROFD_STORE_SQLITE_SLICE_H

#include "store/sqlite_sums.h"

#define SQLITE_SLICE_NARROW 1 /* minutes: what a slice begins with */
#define SQLITE_SLICE_WIDE 60
#define SQLITE_SLICE_WIDTHS 4
extern const int sqlite_slice_widths[SQLITE_SLICE_WIDTHS]; /* ascending */

/* A row of table slice. */
struct sqlite_slice {
    int64_t series;
    int width;   /* minutes: 1, 5, 15 or 60. Slices are nested: each lies in one of each greater width */
    int64_t end; /* a time in it, ns: the end of the upload's window, by which an upload is in one slice */
    int64_t instance, upload;
};

/* Number of the slice in which a time lies. */
static inline int64_t sqlite_slice_at(int width, int64_t time)
{
    return time / (width * INT64_C(60000000000));
}

enum profd_status sqlite_slice_add(struct store *s, const struct sqlite_slice *slice, struct profd_error *e);
enum profd_status sqlite_slice_find(struct store *s, const struct sqlite_slice *slice, bool *found,
                                    struct profd_error *e);
/* Those of a series in these hours, both included. */
enum profd_status sqlite_slice_remove_hours(struct store *s, int64_t series, int64_t from, int64_t to,
                                            struct profd_error *e);

#endif
