/* Histograms, arcs and stacks of one upload or of a sum, and their encoding. The same bytes are sent, validated
 * by decoding, and stored. */
#ifndef PROFD_PROTO_COUNTS_H
#define PROFD_PROTO_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* The fields of the geometry, as one struct and as single members. */
#define COUNTS_WITH_GEOMETRY                                                                                           \
    union {                                                                                                            \
        struct counts_geometry geometry;                                                                               \
        struct {                                                                                                       \
            COUNTS_GEOMETRY                                                                                            \
        };                                                                                                             \
    };

/* Order of first arrival: the number of the upload in order of acceptance, then the position in it. */
struct counts_order {
    uint64_t commit;
    uint32_t rank;
};

struct counts_histogram {
    COUNTS_WITH_GEOMETRY
    uint32_t first; /* its bins are bin_index[first … first+used) */
    uint32_t used;
    struct counts_order order; /* of sorted counts */
};

/* The stacks of one clock as a tree: its nodes are those from first on. */
struct counts_tree {
    uint32_t rate;      /* ticks per second; 1 to LIMIT_RATE */
    char dimension[16]; /* as in a histogram; never the collector's counters */
    char abbreviation;
    uint32_t first, used; /* used ≥ 1 */
};

/* A node of a tree is a frame below the frame that called it. */
#define COUNTS_NODE_RETURN 0 /* a return address */
#define COUNTS_NODE_PC 1     /* where the tick found the thread; has no children */

/* The only addresses that frames of build COUNTS_NOWHERE may have. */
#define COUNTS_FRAME_OUTSIDE 0    /* an address outside every known build */
#define COUNTS_FRAME_INCOMPLETE 1 /* at depth 0, a return address: the outer frames are not known */

/* Structure of arrays. Bins of one histogram are in ascending index and non-zero. A count of 0 is legal (an arc known
 * only from the executable). An arc end with build index COUNTS_NOWHERE is outside every known build; its address is
 * kept.
 * The rows of an upload are in order of first arrival, and arcs may repeat. Those of a sum are sorted, so that sums
 * merge without hashing: histograms ascend by counts_compare_geometry, arcs by (from_build, from, to_build, to) with
 * COUNTS_NOWHERE last, and no key is there twice; each histogram and arc has its order of first arrival, and no number
 * is above 2^63−1.
 * Trees ascend by counts_compare_clocks, and their nodes follow each other without gaps. Nodes of a tree are in
 * preorder: depth 0 is the outermost frame, a node's depth is at most one more than that of the node before it,
 * siblings ascend by counts_compare_frames (counts_tree.h), and no two siblings are the same. node_ticks are the ticks
 * that end at this node: at a PC those with exactly this stack, at a return address those with cut inner frames. A leaf
 * has at least one tick. Therefore equal stacks have equal arrays. */
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
    uint64_t *commit; /* of sorted counts: order of each arc's first arrival */
    uint32_t *rank;
    uint32_t tree_count, node_count;
    struct counts_tree *trees;
    uint8_t *node_depth, *node_kind;
    uint32_t *node_build;
    uint64_t *node_address, *node_ticks;
    bool sorted;
    bool saturated; /* some sum of ticks or calls, the totals included, stopped at 2^63−1 */
    void *block;    /* owns all arrays, unless struct counts_memory gave them */
};
#define COUNTS_NOWHERE UINT32_MAX

/* Counts by random group of processes, row by row beside the bins, arcs and nodes of sorted counts: row i,
 * group g at [i·COUNTS_GROUPS + g]. The row's sum is its number (saturating). */
#define COUNTS_GROUPS 16u
struct counts_shares {
    uint64_t *bins, *arcs, *nodes;
};

/* The arrays of struct counts, by kind of row. */
enum counts_kind {
    COUNTS_HISTOGRAM_ROWS,
    COUNTS_BIN_ROWS,
    COUNTS_ARC_ROWS,
    COUNTS_TREE_ROWS,
    COUNTS_NODE_ROWS,
    COUNTS_KINDS
};
struct counts_column {
    size_t at; /* of the pointer in struct counts */
    size_t size;
    enum counts_kind kind;
    bool sorted; /* only sorted counts have it */
};
#define COUNTS_COLUMNS 16
extern const struct counts_column counts_columns[COUNTS_COLUMNS];

static inline void *counts_column_of(const struct counts *c, const struct counts_column *column)
{
    void *array;
    memcpy(&array, (const char *)c + column->at, sizeof array);
    return array;
}

static inline void counts_column_set(struct counts *c, const struct counts_column *column, void *array)
{
    memcpy((char *)c + column->at, &array, sizeof array);
}

/* Returns whether a arrived before b: by commit, then by rank. */
static inline bool counts_order_less(struct counts_order a, struct counts_order b)
{
    return a.commit < b.commit || (a.commit == b.commit && a.rank < b.rank);
}

/* Sets *order to the earlier of the two. */
static inline void counts_order_lower(struct counts_order *order, struct counts_order other)
{
    *order = counts_order_less(other, *order) ? other : *order;
}

/* Compares by build, low, high, bins, rate, dimension and abbreviation, the order in sums. 0: the same geometry. */
int counts_compare_geometry(const struct counts_geometry *a, const struct counts_geometry *b);

struct counts_sizes {
    uint32_t histograms, bins, arcs, trees, nodes;
    bool sorted; /* with the order of arcs */
};

/* Memory for arrays that are decoded: size bytes, zeroed, aligned for any type, or NULL. */
struct counts_memory {
    void *(*take)(void *context, size_t size);
    void *context;
};

/* Takes one block for arrays of these sizes, from memory or (NULL) with malloc. NO_MEMORY or OK. */
enum profd_status counts_take_block(struct counts *c, const struct counts_sizes *sizes,
                                    const struct counts_memory *memory, struct profd_error *e);
/* Allocates one zeroed block for arrays of these sizes. NO_MEMORY or OK. */
enum profd_status counts_init_sizes(struct counts *c, const struct counts_sizes *sizes, struct profd_error *e);
/* The same without trees. */
enum profd_status counts_init(struct counts *c, uint32_t histograms, uint32_t bins, uint32_t arcs,
                              struct profd_error *e);
/* Returns the size of this block. */
size_t counts_weigh(const struct counts_sizes *sizes);
/* Frees the block. Accepts a zeroed struct. */
void counts_done(struct counts *c);

/* Encodes into a new block that the caller frees. Layout (profd-protocol(7)): sizes, then a zstd frame with checksum
 * for each of arcs, histograms and stacks. Counts that counts_decode would refuse are refused. O(n) if the arcs ascend
 * by caller, else O(n) for each byte in which callers and callees differ. */
enum profd_status counts_encode(const struct counts *c, uint8_t **out, size_t *out_size, struct profd_error *e);
/* Encodes the shares separately, because most readers do not need them. Values that the totals imply are omitted. */
enum profd_status counts_encode_shares(const struct counts *c, const struct counts_shares *shares, uint8_t **out,
                                       size_t *out_size, struct profd_error *e);

/* Reads the head of encoded counts: their sizes, and the bytes of all sections after decompression. MALFORMED or
 * TOO_LARGE if counts_decode would refuse the head, or OK. O(1), allocates nothing. */
enum profd_status counts_decode_sizes(const uint8_t *in, size_t n, struct counts_sizes *out, uint64_t *raw,
                                      struct profd_error *e);

/* The parts of the counts that are decoded. The others stay empty and are not decompressed. */
#define COUNTS_ARCS 1u
#define COUNTS_HISTOGRAMS 2u
#define COUNTS_STACKS 4u
#define COUNTS_ALL 7u

/* Decodes and validates: every limit of limits.h, low < high, indices ascending and below bins, build indices below
 * builds (or COUNTS_NOWHERE), the order of sorted rows, trees as struct counts says, the geometry of the collector's
 * counters (collector.h; the caller must check that their build is the program), no surplus bytes. Lengths are checked
 * against the input before memory is taken. memory NULL: the caller ends the block with counts_done, and
 * on failure nothing is allocated. MALFORMED, TOO_LARGE, NO_MEMORY or OK. O(bytes). */
enum profd_status counts_decode_parts(const uint8_t *in, size_t n, uint32_t builds, unsigned parts,
                                      const struct counts_memory *memory, struct counts *c, struct profd_error *e);
/* Decodes all parts into a block of their own. */
enum profd_status counts_decode(const uint8_t *in, size_t n, uint32_t builds, struct counts *c, struct profd_error *e);
/* Decodes the shares of counts that were decoded with all parts, as counts_decode_parts does. With memory NULL the
 * shares are only checked and *out is unchanged, because they need COUNTS_GROUPS numbers for each row. */
enum profd_status counts_decode_shares(const struct counts *c, const uint8_t *in, size_t n,
                                       const struct counts_memory *memory, struct counts_shares *out,
                                       struct profd_error *e);

/* Returns whether dimension is printable ASCII followed by NULs up to its end, and abbreviation is printable ASCII. */
bool counts_dimension_valid(const char dimension[16], char abbreviation);

/* Checks the limits of an upload (limits.h). TOO_LARGE or OK. */
enum profd_status counts_judge_sizes(uint64_t histograms, uint64_t bins, uint64_t arcs, struct profd_error *e);

/* Checks every rule for one histogram, except build and first. at names the histogram in the sentence. */
enum profd_status counts_judge_histogram(const struct counts_histogram *h, uint32_t at, struct profd_error *e);

/* Checks that at most one histogram has the collector's counters. MALFORMED or OK. */
enum profd_status counts_check_collector(const struct counts *c, struct profd_error *e);

/* Computes Σ ticks and Σ calls, saturating at 2^63−1. The collector's counters (collector.h) are not ticks. */
void counts_totals(const struct counts *c, uint64_t *ticks, uint64_t *calls);

#endif
