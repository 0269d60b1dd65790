/* How numbers become digits, for code that writes into memory of its own. core/buffer.h has the same for buffers. */
#ifndef PROFD_CORE_BUFFER_NUMBER_H
#define PROFD_CORE_BUFFER_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Writes value at p, right-aligned in at least width bytes, width ≤ 20; returns the end. At most 20 bytes. */
char *buffer_put_u64(char *p, uint64_t value, unsigned width);

/* Likewise what buffer_add_fixed writes; at most BUFFER_FIXED_MOST bytes. */
#define BUFFER_FIXED_MOST 336
char *buffer_put_fixed(char *p, double value, unsigned width, unsigned decimals);

#endif
