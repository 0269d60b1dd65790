/* Labels of a series as they are stored: name NUL value NUL …, ascending by name. */
#ifndef PROFD_STORE_LABELS_H
#define PROFD_STORE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/rows.h"
#include "core/hashmap.h"
#include "store/store.h"

/* Appends the labels' text. */
void labels_encode(const struct store_label *labels, size_t n, struct buffer *out);

/* Reads the next pair from [*text, end). False at the end, or if the text is malformed. */
bool labels_next(const char **text, const char *end, struct store_label *pair);

/* True if the labels satisfy every matcher. A missing label equals "". A pattern that exceeds its limits counts as
 * false; store_pattern_judge reports it. */
bool labels_match(const char *text, size_t n, const struct store_matcher *matchers, size_t count);

/* Could rows of a host of this name match? Only what is asked of the label `host` is looked at. */
bool labels_match_host(const struct store_filter *filter, const char *name);
/* True if a matcher is about this label. */
bool labels_are_asked(const struct store_filter *filter, const char *name);
/* Copies labels and adds `host`, in its place, to out, which has space for n + 1. Returns n + 1. None has that name. */
size_t labels_add_host(const struct store_label *labels, size_t n, const char *host, struct store_label *out);

/* labels_pattern.c: true if the pattern matches the whole value */
bool pattern_match(struct store_pattern *p, const char *value);

/* Counts uploads by pair. */
struct label_tally {
    struct hashmap pairs; /* key: name NUL value NUL; value: uint64_t */
};
void label_tally_init(struct label_tally *t);
void label_tally_done(struct label_tally *t);
enum profd_status label_tally_add(struct label_tally *t, const char *text, size_t n, uint64_t uploads,
                                  struct profd_error *e);
/* Lists the pairs ascending by name and value. O(n log n). */
enum profd_status label_tally_each(const struct label_tally *t,
                                   bool (*each)(void *context, const struct label_row *row), void *context,
                                   struct profd_error *e);

#endif
