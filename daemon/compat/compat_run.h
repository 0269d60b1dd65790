/* The steps that make a listing: symbols, then counts, then print. compat.h has all in one step.
 * Steps 1 to 3 (compat_run_open and on) are boundaries of the arena (core/arena.h): what they call never tests memory.
 */
#ifndef PROFD_COMPAT_COMPAT_RUN_H
#define PROFD_COMPAT_COMPAT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compat/compat.h"
#include "core/arena.h"
#include "core/buffer.h"
#include "core/object.h"
#include "proto/counts.h"
#include "proto/status.h"

/* Stable sort of indices: gprof breaks ties by the order before the sort. */

/* Returns a negative number, zero or a positive number if a sorts before, with or after b. */
typedef int compat_compare(const void *context, uint32_t a, uint32_t b);

/* Sorts n items in place; equal items keep their order. scratch has capacity for n items. Divides and merges as glibc's
 * qsort does, because one of gprof's comparisons contradicts itself (-C), so the result depends on which pairs are
 * compared. O(n log n), no recursion. */
void compat_sort(uint32_t *items, uint32_t *scratch, size_t n, compat_compare *compare, const void *context);

/* Symbols by name, once for all listings. */

/* Orders the numbers 0 … n − 1 by their names as strcmp does; equal names keep the order of their numbers. Sorts by
 * eight bytes at a time, so that common prefixes cost little. O(bytes of names) and at most n log n
 * comparisons. */
uint32_t *compat_names_order(const char *const *names, uint32_t n, struct arena *a);

/* gprof's table of symbols: which symbols of .symtab count, which of several at one address is kept, where each ends.
 * "Table order" is ascending by address. */

#define COMPAT_NONE UINT32_MAX

#define COMPAT_SYMBOL_FUNCTION 1u /* STT_FUNC: may be called */
#define COMPAT_SYMBOL_STATIC 2u   /* local */

/* Parallel arrays of count entries. Symbol sizes are not used: an entry ends where the next one begins. */
struct compat_symbols {
    uint32_t count;
    uint64_t *address; /* strictly ascending */
    uint64_t
        *end; /* last address that it owns; that of the last entry is the end of .text and may be below its address */
    const char **raw;  /* name in the symbol table */
    const char **name; /* name shown: demangled */
    const char **file; /* source path, "" if unknown */
    uint32_t *line;    /* 0 if unknown */
    uint8_t *flags;
    const struct object *object;
    uint32_t *met; /* usable symbols of the object in its order, before one for each address was chosen */
    uint32_t met_count;
    uint32_t *stripe; /* number of entries before each stripe of 2^stripe_bits addresses, from the first entry on; may
                         be NULL */
    uint32_t stripes;
    unsigned stripe_bits;
};

/* Chooses symbols of .symtab by the options (no_static, only_functions, lines). Strings are borrowed from the object.
 * REFUSED: it has no .text or no symbol that gprof uses. O(symbols log symbols). */
enum profd_status compat_symbols_choose(const struct object *object, const struct compat_options *options,
                                        struct arena *a, struct compat_symbols *out, struct profd_error *e);

/* Makes the printed names: raw, demangled, with file and line. O(symbols). */
void compat_symbols_name(struct compat_symbols *s, const struct compat_options *options, struct arena *a);

/* Returns the last part of a path. */
const char *compat_symbols_file(const char *path);

/* Builds the stripes, at most as many as there are entries. Called by choose. O(count). */
void compat_symbols_stripe(struct compat_symbols *s, struct arena *a);

/* Returns the entry that owns the address, or COMPAT_NONE. O(1) if entries are spread evenly over the addresses,
 * otherwise O(log count). */
uint32_t compat_symbols_find(const struct compat_symbols *s, uint64_t address);

/* Decides which symbols and arcs are used for what. For each purpose, gprof keeps one table of included address ranges
 * and one of excluded ones; here these are bits of the symbols. */

/* Addresses [low, high] of adjacent symbols that match. high may be below low: the last symbol owns no address. */
struct compat_range {
    uint64_t low, high;
    uint32_t first; /* the symbol at low */
};

/* Matches arcs from symbols in left to symbols in one of the right ranges. */
struct compat_arc_rule {
    struct compat_range left;
    const struct compat_range *right;
    uint32_t right_count;
};

struct compat_arc_rules {
    struct compat_arc_rule *list;
    uint32_t count;
};

struct compat_filter {
    uint8_t *included, *excluded; /* by symbol, bit 1 << purpose */
    uint8_t including;            /* bit 1 << purpose: the purpose's table of included symbols is not empty */
    struct compat_arc_rules arcs_included, arcs_excluded;
};

/* Reads the user's specs, and excludes the profiler's own functions (mcount and similar) from everything. If several
 * ranges of one table begin at the same symbol, gprof keeps the one given last, whatever its length. O(symbols ×
 * specs). */
void compat_filter_init(const struct compat_spec *specs, uint32_t spec_count, const struct compat_symbols *s,
                        struct arena *a, struct compat_filter *out);

static inline bool compat_filter_includes(const struct compat_filter *f, enum compat_purpose purpose, uint32_t symbol)
{
    return (f->included[symbol] >> purpose & 1) != 0;
}

static inline bool compat_filter_excludes(const struct compat_filter *f, enum compat_purpose purpose, uint32_t symbol)
{
    return (f->excluded[symbol] >> purpose & 1) != 0;
}

/* Returns whether the symbol is included by name; or not excluded, if no symbol is included by name. */
static inline bool compat_filter_on(const struct compat_filter *f, enum compat_purpose purpose, uint32_t symbol)
{
    if (compat_filter_includes(f, purpose, symbol)) {
        return true;
    }
    return (f->including >> purpose & 1) == 0 && !compat_filter_excludes(f, purpose, symbol);
}

/* Returns whether arc records between these symbols are loaded. O(rules). */
bool compat_filter_arc(const struct compat_filter *f, const struct compat_symbols *s, uint32_t from, uint32_t to);

/* Assigns ticks to symbols as gprof does: in units of two bytes, each bin divided by overlap. */

/* Returns how many units of two bytes a bin of the record has. gprof refuses records if this differs by more than
 * 0.000001. */
static inline double compat_hist_scale(const struct counts_histogram *h)
{
    return (double)((h->high - h->low) / 2) / h->bins;
}

/* All records of one range, added up. Bins ascend; bins without ticks may be missing. */
struct compat_hist_range {
    uint64_t low, high;
    uint32_t bins; /* of the first record */
    uint64_t used;
    const uint32_t *index;
    const uint64_t *ticks;
};

/* Times are in ticks; divide by rate when printing. */
struct compat_hist {
    uint32_t range_count;
    struct compat_hist_range *ranges; /* groups in the order of their first records */
    double scale;                     /* units of two bytes in a bin of the first record; 0 if there is no record */
    uint32_t rate;                    /* rate of the first record, 0 if there is none: later rates are ignored */
    char dimension[16];               /* "seconds" */
    char abbreviation;
    double *time; /* by symbol */
    double total; /* ticks of all bins, including bins outside every symbol, without those of filtered symbols */
};

/* Adds up records of the same range, keeps disjoint ranges apart, and divides the bins. CONFLICT, with gprof's message:
 * records differ in dimension, abbreviation or scale, or overlap. A range that is empty or reversed overlaps no other.
 * O(records² + bins + symbols), records ≤ LIMIT_HISTOGRAMS. */
enum profd_status compat_hist_assign(const struct counts *c, const struct compat_symbols *s,
                                     const struct compat_filter *f, struct arena *a, struct compat_hist *out,
                                     struct profd_error *e);

/* Arcs between symbols, from both of their ends. */

/* -c: calls in the machine code, found as gprof finds them. On x86 each byte 0xe8 is read as a call with
 * an unsigned operand, so backward calls are not found. On AArch64 each word that is b or bl is a call. */

/* Calls, in the order in which gprof finds them. They may repeat. */
struct compat_calls {
    uint32_t count;
    uint32_t *parent, *child;
};

/* Returns whether gprof finds calls on this machine. */
bool compat_calls_possible(const struct object *o);

/* Scans the part of .text of each symbol that a histogram covers. Code outside .text and the last symbol are not
 * scanned: gprof reads the end of that symbol from memory outside the data. O(bytes × log symbols). */
struct compat_calls compat_calls_find(const struct object *o, const struct compat_symbols *s,
                                      const struct compat_hist *h, struct arena *a);

/* Two tables of the same arcs, so that iterating over a symbol's arcs reads memory in order. In each list the oldest
 * arc is first; gprof inserts new arcs at the front of its lists, so it visits the newest first. */
struct compat_arcs {
    uint32_t count;
    uint32_t *child_first; /* arcs out of symbol s: places child_first[s] … child_first[s + 1] of the next two */
    uint32_t *child;
    uint64_t *calls;
    uint32_t *parent_first; /* arcs into s, likewise */
    uint32_t *parent;
    uint64_t *parent_calls;
    uint32_t *recorded; /* by symbol: its arcs before this place were counted, the others are known from the machine
                           code only */
    uint64_t *total;    /* by symbol: calls to it, including its own */
};

/* Finds both ends of every record that the filter (may be NULL) passes, and adds up the records of each pair; then adds
 * the calls of the machine code (may be NULL) with count 0. A record is dropped if no symbol owns one of its ends. A
 * call to a symbol that is not a function goes to the nearest function before it. Sums wrap at 2^64, as in gprof.
 * LIMIT from 2^32 − 1 records. O(symbols + records × arc rules): arcs are sorted by radix, first by one end,
 * then by the other. */
enum profd_status compat_arcs_tally(const struct counts *c, const struct compat_symbols *s,
                                    const struct compat_filter *f, const struct compat_calls *calls, struct arena *a,
                                    struct compat_arcs *out, struct profd_error *e);

/* Cycles and the topological order: strongly connected components with gprof's order of members. */

struct compat_cycles {
    uint32_t count;                   /* number of components with two or more members; cycles are numbered from 1 */
    uint32_t *number;                 /* by symbol, 0 if in none */
    uint32_t *member_first, *members; /* cycle n: members[member_first[n − 1] … member_first[n]) */
    uint32_t *order;                  /* all symbols, callees before callers; members of a cycle are adjacent */
};

/* Depth-first search over all arcs, including those of count 0; iterative. O(symbols + arcs). */
struct compat_cycles compat_cycles_find(const struct compat_arcs *arcs, uint32_t symbols, struct arena *a);

/* The call graph with its times: gprof's order of every addition, so that every double has gprof's bits. */

/* A symbol, or a cycle as a whole. One cache line, because each arc reads it. Times are in ticks. */
struct compat_node {
    double time, child;  /* own ticks; ticks of callees */
    double child_share;  /* propagated part of child */
    double fraction;     /* share of its time that is propagated */
    uint64_t calls;      /* calls from others; of a cycle: from outside */
    uint64_t self_calls; /* calls from itself; of a cycle: from members to other members */
    uint32_t place;      /* node that represents it: itself, or its cycle's node */
    uint32_t index;      /* from 1, in the order of the listing */
    bool shown;
};

/* Nodes are the symbols, then one node for each cycle as a whole (cycle n is node symbols + n − 1). */
struct compat_graph {
    uint32_t symbols, nodes;
    struct compat_node *node;
    uint32_t *listing; /* nodes in the order of the listing */
    uint32_t *by_name; /* symbols by name; those of the same name in table order */
    double print_time; /* Σ shares of own ticks */
    bool orderly;      /* no time is NaN, so sorting has only one result */
};

/* Returns the propagated part of a node's own ticks. */
static inline double compat_node_share(const struct compat_node *n)
{
    return n->time * n->fraction;
}

/* Ticks that are propagated along an arc: the callee's own and those of its callees. */
struct compat_flow {
    double self, child;
};
struct compat_flow compat_graph_flow(const struct compat_graph *g, uint32_t parent, uint32_t child, uint64_t calls);

/* Divides the calls of symbols into self calls and others, propagates times and sorts the nodes. O(n log n + arcs). */
void compat_graph_build(const struct compat_symbols *s, const struct compat_filter *f, const struct compat_hist *hist,
                        const struct compat_arcs *arcs, const struct compat_cycles *cycles, struct arena *a,
                        struct compat_graph *out);

/* The orders of the listings. */

/* Fills g->listing, the order of the call graph: by time with callees; equal ones with cycles first, names with '_'
 * last, then by calls and name. g->by_name must be set. Linear, by radix, unless times are NaN. */
void compat_order_nodes(struct compat_graph *g, const struct compat_symbols *s, struct arena *a);

/* Sorts n symbols, which ascend, into the order of the flat profile: by own time, calls, name. Linear, unless times are
 * NaN. */
void compat_order_flat(const struct compat_graph *g, const struct compat_symbols *s, uint32_t *list, uint32_t n,
                       struct arena *a);

/* State of a listing, and the steps that make it: symbols, then counts, then print. */

struct compat_run {
    struct compat_options options;
    const struct object *object;
    struct compat_symbols symbols;
    struct compat_filter filter;
    bool has_histogram, has_arcs; /* a record was read, even if it has no effect */
    struct compat_hist hist;
    struct compat_arcs arcs;
    struct compat_cycles cycles;
    struct compat_graph graph;
};

/* Ticks are converted to seconds when printed: x / rate. Without a histogram the rate is 0, and gprof prints 0/0. */
static inline double compat_run_rate(const struct compat_run *r)
{
    return (double)r->hist.rate;
}

/* Bytes of a bin as gprof prints them: complete units of two bytes, 0 for NaN, and negative on overflow. */
static inline int64_t compat_run_granularity(const struct compat_run *r)
{
    return r->hist.scale >= 0.0 && r->hist.scale < 0x1p63 ? (int64_t)((uint64_t)r->hist.scale * 2) : 0;
}

/* Step 1: reads and selects the symbols. Borrows the specs of the options and the object. REFUSED: no .text, or no
 * symbols. O(symbols × (log symbols + specs)). */
enum profd_status compat_run_open(struct compat_run *r, const struct compat_options *options,
                                  const struct object *object, struct arena *a, struct profd_error *e);

/* Step 2: assigns counts to symbols, adds the arcs of -c, and computes times. has_histogram and has_arcs are derived
 * from the counts, unless the caller has set them before. CONFLICT as compat_hist_assign. */
enum profd_status compat_run_count(struct compat_run *r, const struct counts *counts, struct arena *a,
                                   struct profd_error *e);

/* Step 3: prints. REFUSED, with gprof's message: a style requires counts that are missing; nothing was printed.
 * TOO_LARGE: the limit of the buffer was reached. If the buffer has a drain, buffer_flush tells whether it accepted
 * everything; what it accepted stays printed. */
enum profd_status compat_run_print(const struct compat_run *r, struct arena *a, struct buffer *out,
                                   struct profd_error *e);

/* gmon.sum, as gprof -s writes it: counts of all files added up, cut as gprof cuts them. */

/* Appends the file, little-endian with pointers of 4 or 8 bytes: histograms by range, with bins cut to 16 bits, then
 * arcs between the beginnings of symbols, with counts cut to 32 bits. The 12 spare bytes of the header are 0; in gprof
 * they are undefined. If blocks is set, an empty record of basic blocks ends the file. Step 2 must be done. Reaching
 * the limit of the buffer is recorded in the buffer. O(bins + symbols + arcs). */
void compat_sum_write(const struct compat_run *r, unsigned pointer, bool blocks, struct buffer *out);

#endif
