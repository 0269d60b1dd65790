/* The last step of a query: an answer's body in a coding that the client accepts. */
#ifndef PROFD_QUERY_CODED_H
#define PROFD_QUERY_CODED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buffer.h"
#include "core/coding.h"

/* Text, JSON and SVG: what becomes much smaller. */
bool coded_suits(const char *content_type);
/* Puts the coded body (at the quickest level; hard: at gzip's best, for what is coded once and kept) in the place of
 * body. False, and body as it was: it would not become smaller, and need not be coded; or no memory. Same input, same
 * bytes. O(n). */
bool coded_body(enum coding coding, bool hard, bool must, struct buffer *body);

#endif
