/* Which addresses a bin of a histogram counts. Pure.
 *
 * glibc's collector (monstartup, profil) rounds the text outward to multiples of four bytes, takes
 * K = roundup((high - low) / 2, 8) bytes for its 16-bit counters, and counts an address in bin
 * floor(floor((address - low) / 2) * scale / 65536), scale = (int)((float)K / (high - low) * 65536). Its bins are
 * therefore not (high - low) / count bytes wide. A histogram whose bounds and count of bins agree with this is read by
 * that rule; every other one has bins of equal width. Both rules agree where (high - low) is a multiple of 16. */
#ifndef PROFD_PROTO_BINS_H
#define PROFD_PROTO_BINS_H

#include <stdint.h>

__extension__ typedef unsigned __int128 bins_offset;

struct bins {
    uint64_t low, span; /* high - low */
    uint32_t count;
    uint32_t scale; /* of glibc's rule; 0: bins of equal width */
    uint32_t unit;  /* offsets are in fractions 1/unit of a byte, so that bins of broken width need no rounding */
};

/* Chooses the rule for a histogram of `count` bins. low < high, count > 0. */
struct bins bins_make(uint64_t low, uint64_t high, uint32_t count);

/* Returns the start of bin i, in 1/unit bytes above low. i may be count: the end of the last bin, which by glibc's rule
 * may be a few bytes above high. */
bins_offset bins_start(const struct bins *b, uint32_t i);

/* Returns the bin that counts the address low + offset; count or more if none does. */
uint64_t bins_find(const struct bins *b, uint64_t offset);

/* Computes the bytes that bin i counts, [*low, *high), rounded outward; at least one. */
void bins_range(const struct bins *b, uint32_t i, uint64_t *low, uint64_t *high);

#endif
