/* gmon.sum, as gprof -s writes it: counts of all files added up, cut as gprof cuts them. */
#ifndef PROFD_COMPAT_COMPAT_SUM_H
#define PROFD_COMPAT_COMPAT_SUM_H

#include "compat/compat_run.h"
#include "core/buffer.h"

/* Appends the file, little-endian with pointers of 4 or 8 bytes: histograms by range, with bins cut to 16 bits, then
 * arcs between the beginnings of symbols, with counts cut to 32 bits. The 12 spare bytes of the header are 0; in gprof
 * they are undefined. If blocks is set, an empty record of basic blocks ends the file. Step 2 must be done. Reaching
 * the limit of the buffer is recorded in the buffer. O(bins + symbols + arcs). */
void compat_sum_write(const struct compat_run *r, unsigned pointer, bool blocks, struct buffer *out);

#endif
