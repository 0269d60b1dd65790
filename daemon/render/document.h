/* Small documents of JSON, built with jansson: health, status, problems. Rows of reports and lists are written straight
 * into a buffer (render/json_write.c), because a tree of values costs more than the whole report. */
#ifndef PROFD_RENDER_DOCUMENT_H
#define PROFD_RENDER_DOCUMENT_H

#include <jansson.h>
#include <stddef.h>

#include "core/buffer.h"

/* A string of n bytes; what is not UTF-8 in it becomes U+FFFD. NULL when out of memory. */
json_t *document_text_of(const char *text, size_t n);
/* The same of a NUL-terminated text; NULL becomes null. */
json_t *document_text(const char *text);

/* Appends the document in one line, its keys in the order in which they were set, and takes the reference. <, >, & and
 * invisible characters are escaped, as in reports. A root of NULL, which stands for exhausted memory, makes
 * out->failed true. */
void document_write(json_t *root, struct buffer *out);

#endif
