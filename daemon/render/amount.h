/* Times and shares as people read them, and their widths in tables. What is above 0 never reads 0. */
#ifndef PROFD_RENDER_AMOUNT_H
#define PROFD_RENDER_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/report.h"

/* Adds value with two decimals, right-aligned in at least width bytes: "1.94"; "<0.01" for what is above 0 and would
 * read 0.00. */
void amount_add(struct buffer *out, double value, int width);
/* Bytes of what amount_add adds with width 0. */
int amount_width(double value);

/* Significant digits that a time of that many ticks has: 1 below 10 ticks, 2 below 1,000, otherwise 3. By chance alone,
 * 10 ticks may as well be 7 or 13, and 1,000 ticks 968 or 1,032. */
int amount_digits(double ticks);

/* The report has samples of time, but fewer than 30: its times and percentages are rough. A sample may bring several
 * ticks. */
bool amount_is_rough(const struct report *r);

/* Adds a time with a unit of its own, right-aligned in at least width bytes: rounded to digits significant digits,
 * from 1 to 3, without zeros at their end, "350ns", "1.2us", "4.53ms", "2.1s"; from 1000 s on whole seconds, "12345s";
 * "<0.01ns" for what is shorter. seconds is finite and above 0. */
void amount_add_duration(struct buffer *out, double seconds, int digits, int width);
/* Bytes of what amount_add_duration adds with width 0. */
int amount_duration_width(double seconds, int digits);

/* A percentage of that many ticks as amount_add_percent shows it: below 1,000 ticks with two significant digits. */
double amount_round_percent(double percent, double ticks);
/* Adds it: with two decimals as amount_add does, below 1,000 ticks as "2%", "0.25%", "81%". */
void amount_add_percent(struct buffer *out, double percent, double ticks);

/* Adds a ratio of counts, right-aligned in at least width bytes: with as many decimals as make four digits, 4 at most,
 * without zeros at their end, "0.3333", "1.5", "12.35", "20000"; "<0.0001" for what is above 0 and would read 0. */
void amount_add_ratio(struct buffer *out, double value, int width);

/* Decimal digits of a count. */
int amount_count_width(uint64_t value);

#endif
