/* What was counted: histograms, arcs and stacks of one upload or of a sum, and their stored encoding.
 * The same bytes travel, are validated by decoding them, and are stored (DECISIONS 18). */
#ifndef PROFD_PROTO_COUNTS_H
#define PROFD_PROTO_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

/* Geometry of a histogram. Bin i covers the addresses [low + i·(high−low)/bins, low + (i+1)·(high−low)/bins) of its
 * build. Histograms of one geometry can be added up. */
#define COUNTS_GEOMETRY                                                                                                \
    uint32_t build;     /* index into a table of builds */                                                             \
    uint32_t bins;      /* number of bins, zero ones included; ≥ 1 */                                                \
    uint64_t low, high; /* link-time addresses, low < high */                                                          \
    uint32_t rate;      /* ticks per second (gmon: prof_rate); ≥ 1 */                                                \
    char dimension[16]; /* "seconds", NUL-terminated */                                                                \
    char abbreviation;  /* 's' */

struct counts_geometry {
    COUNTS_GEOMETRY
};

/* The fields of the geometry as a whole, and one by one. */
#define COUNTS_WITH_GEOMETRY                                                                                           \
    union {                                                                                                            \
        struct counts_geometry geometry;                                                                               \
        struct {                                                                                                       \
            COUNTS_GEOMETRY                                                                                            \
        };                                                                                                             \
    };

struct counts_histogram {
    COUNTS_WITH_GEOMETRY
    uint32_t first; /* its bins are bin_index[first … first+used) */
    uint32_t used;
};

/* The stacks of one clock as a tree: its nodes are those from first on. */
struct counts_tree {
    uint32_t rate;      /* ticks per second; 1 to LIMIT_RATE */
    char dimension[16]; /* as of a histogram; never the collector's counters */
    char abbreviation;
    uint32_t first, used; /* used ≥ 1 */
};

/* A node of a tree is a frame below the frame that called it. */
#define COUNTS_NODE_RETURN 0 /* a return address */
#define COUNTS_NODE_PC 1     /* where the tick found the thread; has no children */

/* Addresses of frames of build COUNTS_NOWHERE, which have no others. */
#define COUNTS_FRAME_OUTSIDE 0    /* an address outside every known build */
#define COUNTS_FRAME_INCOMPLETE 1 /* at depth 0, a return address: the outer frames are not known */

/* Structure of arrays. Bins of one histogram are in ascending index and non-zero; arcs are in order of first arrival
 * and may repeat; a count of 0 is legal (an arc known only from the executable). An arc end with build index
 * COUNTS_NOWHERE is outside every known build; its address is kept.
 * Trees ascend by counts_compare_clocks, and their nodes follow each other without gaps. Nodes of a tree are in
 * preorder: depth 0 is the outermost frame, a node's depth is at most one more than that of the node before it,
 * siblings ascend by counts_compare_frames (counts_tree.h), and no two siblings are the same. node_ticks are the ticks
 * that end at this node: at a PC those of the whole stack, at a return address those of which inner frames were cut. A
 * leaf has at least one. So equal stacks have equal arrays. */
struct counts {
    uint32_t histogram_count;
    uint32_t bin_count;
    uint32_t arc_count;
    struct counts_histogram *histograms;
    uint32_t *bin_index;
    uint64_t *bin_ticks;
    uint32_t *from_build, *to_build;
    uint64_t *from, *to; /* link-time addresses: return address or call site of the caller; address in the callee */
    uint64_t *calls;
    uint32_t tree_count, node_count;
    struct counts_tree *trees;
    uint8_t *node_depth, *node_kind;
    uint32_t *node_build;
    uint64_t *node_address, *node_ticks;
    void *block; /* owns all the arrays */
};
#define COUNTS_NOWHERE UINT32_MAX

/* The order of stored sums: by build, low, high, bins, rate, dimension, abbreviation. 0: the same geometry. */
int counts_compare_geometry(const struct counts_geometry *a, const struct counts_geometry *b);

/* A geometry in the encodings of uploads and of sums: varints of build, bins, low as the encoding has it, high − low
 * and rate, the dimension behind its length, the abbreviation. Returns the end of what was written. */
uint8_t *counts_encode_geometry(const struct counts_geometry *g, uint64_t low, uint8_t *p);
/* Afterwards low is as it was encoded, and high is high − low. *wide: build, bins or rate needs more than 32 bits.
 * False if the bytes end before, or the dimension is too long. */
bool counts_decode_geometry(const uint8_t **at, const uint8_t *end, struct counts_geometry *g, bool *wide);

struct counts_sizes {
    uint32_t histograms, bins, arcs, trees, nodes;
};

/* Takes one block for arrays of these sizes, zeroed. NO_MEMORY or OK. */
enum profd_status counts_init_sizes(struct counts *c, const struct counts_sizes *sizes, struct profd_error *e);
/* The same without trees. */
enum profd_status counts_init(struct counts *c, uint32_t histograms, uint32_t bins, uint32_t arcs,
                              struct profd_error *e);
/* Frees the block. Accepts a zeroed struct. */
void counts_done(struct counts *c);

/* Encodes into a new block that the caller frees. Layout (profd-protocol(7)): a format byte (1; 2 if there are trees),
 * the raw size, and one zstd-1 frame over the columns. Columns keep arrival order; addresses are signed deltas to the
 * previous one of the same column, numbers are LEB128 varints. */
enum profd_status counts_encode(const struct counts *c, uint8_t **out, size_t *out_size, struct profd_error *e);

/* Decodes and validates: every limit of limits.h, low < high, indices ascending and below bins, build indices below
 * builds (or COUNTS_NOWHERE), trees as struct counts says, the geometry of the collector's counters (collector.h; the
 * caller must check that their build is the program), no surplus bytes. Lengths are checked against the input before
 * memory is taken. On failure nothing is allocated. O(bytes). */
enum profd_status counts_decode(const uint8_t *in, size_t n, uint32_t builds, struct counts *c, struct profd_error *e);

/* The dimension is printable ASCII, NUL behind it up to its end; the abbreviation is printable ASCII. */
bool counts_dimension_valid(const char dimension[16], char abbreviation);

/* Every rule on one histogram but its build and first. at names it in the sentence. */
enum profd_status counts_judge_histogram(const struct counts_histogram *h, uint32_t at, struct profd_error *e);

/* Σ ticks and Σ calls, saturating at 2^63−1. The collector's counters (collector.h) are not ticks. */
void counts_totals(const struct counts *c, uint64_t *ticks, uint64_t *calls);

#endif
