/* Labels of a series as they are stored: name NUL value NUL …, ascending by name. */
#ifndef PROFD_STORE_LABELS_H
#define PROFD_STORE_LABELS_H

#include "store/store.h"

/* Appends the labels' text. */
void labels_encode(const struct store_label *labels, size_t n, struct buffer *out);

/* Reads the next pair from [*text, end). False at the end, or if the text is malformed. */
bool labels_next(const char **text, const char *end, struct store_label *pair);

/* Returns whether the labels satisfy every matcher. A missing label equals "". A pattern that exceeds its limits does
 * not match; store_pattern_judge reports it. */
bool labels_match(const char *text, size_t n, const struct store_matcher *matchers, size_t count);

/* Returns whether rows of a host with this name can match. Considers only matchers of the label `host`. */
bool labels_match_host(const struct store_filter *filter, const char *name);
/* Returns whether a matcher is about this label. */
bool labels_are_asked(const struct store_filter *filter, const char *name);
/* Copies labels to out, and adds `host` in its place. out has space for n + 1; no label is named `host`. Returns n + 1.
 */
size_t labels_add_host(const struct store_label *labels, size_t n, const char *host, struct store_label *out);

#endif
