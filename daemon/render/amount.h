/* Times and shares as people read them, and their widths in tables. What is above 0 never reads 0. */
#ifndef PROFD_RENDER_AMOUNT_H
#define PROFD_RENDER_AMOUNT_H

#include <stdint.h>

#include "core/buffer.h"

/* Adds value with two decimals, right-aligned in at least width bytes: "1.94"; "<0.01" for what is above 0 and would
 * read 0.00. */
void amount_add(struct buffer *out, double value, int width);
/* Bytes of what amount_add adds with width 0. */
int amount_width(double value);

/* Adds a time with a unit of its own, right-aligned in at least width bytes: at most three significant digits and no
 * zeros at their end, "350ns", "1.2us", "4.53ms", "2.1s"; from 1000 s on whole seconds, "12345s"; "<0.01ns" for what is
 * shorter. seconds is finite and above 0. */
void amount_add_duration(struct buffer *out, double seconds, int width);
/* Bytes of what amount_add_duration adds with width 0. */
int amount_duration_width(double seconds);

/* Decimal digits of a count. */
int amount_count_width(uint64_t value);

#endif
