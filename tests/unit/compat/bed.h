/* A small executable and a small profile, put together by hand. */
#ifndef TESTS_UNIT_COMPAT_BED_H
#define TESTS_UNIT_COMPAT_BED_H

#include <stdint.h>

#include "compat/compat.h"

#define BED_MAX 20000

struct bed {
    struct object object;
    struct object_symbol symbols[BED_MAX];
    struct object_range text;
    char names[BED_MAX * 24];
    struct counts counts;
    struct counts_histogram histograms[8];
    uint32_t bin_index[BED_MAX], from_build[BED_MAX], to_build[BED_MAX];
    uint64_t bin_ticks[BED_MAX], from[BED_MAX], to[BED_MAX], calls[BED_MAX];
    struct profd_error error;
    struct arena *arena;
};

/* A new one with .text at [low, high). Lives in its own arena. */
struct bed *bed_new(uint64_t low, uint64_t high);
void bed_free(struct bed *b);

/* A symbol of an executable section, added at the end of the table. Returns it for changes. */
struct object_symbol *bed_symbol(struct bed *b, const char *name, uint64_t address, enum object_bind bind,
                                 enum object_type type);
/* A global function. */
void bed_function(struct bed *b, const char *name, uint64_t address);
/* A string in the object. */
uint32_t bed_name(struct bed *b, const char *text);
/* A histogram of seconds at 100 Hz; its bins follow. */
struct counts_histogram *bed_histogram(struct bed *b, uint64_t low, uint64_t high, uint32_t bins);
void bed_bin(struct bed *b, uint32_t index, uint64_t ticks);
void bed_arc(struct bed *b, uint64_t from, uint64_t to, uint64_t calls);

/* What compat_print prints, NUL-terminated, in the arena; fails the test unless it says OK. */
const char *bed_print(struct bed *b, const struct compat_options *options);
/* What it says. Fails the test if anything was printed although it failed. */
enum profd_status bed_status(struct bed *b, const struct compat_options *options);

#endif
