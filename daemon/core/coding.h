/* Content codings of answers (RFC 9110, 8.4.1 and 12.5.3): which of them a client accepts. Pure. */
#ifndef PROFD_CORE_CODING_H
#define PROFD_CORE_CODING_H

#include <stdbool.h>
#include <stddef.h>

/* The first three can be sent. NONE: nothing that can be sent is acceptable. */
enum coding { CODING_IDENTITY, CODING_GZIP, CODING_ZSTD, CODING_NONE };
#define CODING_COUNT 3

/* What the Accept-Encoding fields of one request say; zeroed: nothing. */
struct coding_wish {
    short thousandths[CODING_COUNT + 1]; /* 1 + 1000 × q of each coding, then of "*"; 0: not named */
};

/* Parses one field of n bytes; several fields are combined, and the later of two statements about a coding counts.
 * False if it is not a list of codings with weights from 0 to 1. O(n). */
bool coding_wish_read(struct coding_wish *w, const char *text, size_t n);

/* The coding to send: of equally welcome ones the one that takes fewer bytes. Nothing is coded unless it was asked for.
 */
enum coding coding_choose(const struct coding_wish *w);
/* Returns whether the answer must not be sent as it is. */
bool coding_refuses_identity(const struct coding_wish *w);

/* "identity", "gzip", "zstd". */
const char *coding_name(enum coding c);

#endif
