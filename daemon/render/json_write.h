/* Pieces of JSON written straight into a buffer: a tree of values costs more than the whole report. Internal to render.
 */
#ifndef PROFD_RENDER_JSON_WRITE_H
#define PROFD_RENDER_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"

/* Appends a string literal. */
#define JSON_ADD(out, literal) buffer_add((out), (literal), sizeof(literal) - 1)

/* Each appends `,"key":value`; a key is plain ASCII. */
void json_add_count(struct buffer *out, const char *key, uint64_t value); /* and "key_str" beyond 2^53 (DECISIONS 5) */
void json_add_number(struct buffer *out, const char *key, double value);
/* null where the value is not known, and for a value that no JSON number has. */
void json_add_known(struct buffer *out, const char *key, double value, bool known);
/* self_seconds, children_seconds and total_seconds, in the unit of the report's dimension. */
void json_add_times(struct buffer *out, double self, double children);
void json_add_text(struct buffer *out, const char *key, const char *text); /* NULL becomes null */
void json_add_flag(struct buffer *out, const char *key, bool value);
void json_add_time(struct buffer *out, const char *key, int64_t nanoseconds); /* 0 becomes null */
/* `,"window":{"since":…,"until":…}`: the edges that were used. */
void json_add_window(struct buffer *out, int64_t since, int64_t until);
void json_add_address(struct buffer *out, const char *key, uint64_t address); /* "0x401230" */
/* `,"exact":…,"inexact_reasons":[…]` from message_inexact bits. */
void json_add_exact(struct buffer *out, uint32_t inexact);
/* `,"inexact_meanings":[…]`: sentences, in the order of the reasons. */
void json_add_meanings(struct buffer *out, uint32_t inexact);
/* `,"calls_exact":…,"ticks_exact":…`: which of the two the reasons concern. */
void json_add_exact_parts(struct buffer *out, uint32_t inexact);

/* Appends the end of a list that began with {"rows":[, and a line feed. next: the cursor of the following page, NULL on
 * the last. */
void json_add_end(struct buffer *out, const char *next);

/* Appends JSON that has the escapes of RFC 8259: those that reports have besides are added. */
void json_add_document(struct buffer *out, const char *text, size_t n);

#endif
