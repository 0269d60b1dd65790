/* An object under construction: its memory, names and note. */
#ifndef PROFD_ELF_ELF_BUILD_H
#define PROFD_ELF_ELF_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/object.h"
#include "proto/status.h"

struct elf_build {
    struct arena *out;     /* the caller's: data of the object */
    struct arena *scratch; /* freed when the object is complete */
    struct object *object;
    struct buffer names; /* begins with the empty string */
    struct buffer note;
    size_t name_limit;  /* limit of one name: LIMIT_SYMBOL_NAME, or none */
    uint64_t names_cut; /* longer than that */
};

/* Copies n bytes, cut at name_limit, and returns their offset. 0 for the empty name, and if memory or the limit of all
 * names is exhausted; that sets names.failed, which elf_build_finish checks. */
uint32_t elf_build_name(struct elf_build *b, const char *text, size_t n);

/* Adds one sentence to the object's note. */
void elf_build_note(struct elf_build *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* LIMIT or NO_MEMORY if names did not fit; otherwise moves names and note into the object. */
enum profd_status elf_build_finish(struct elf_build *b, struct profd_error *e);

/* Limits the names of a file of that size: symbols that share one long name must not need quadratic space. */
void elf_build_limit(struct elf_build *b, uint64_t file_size);

/* The sentence for names.failed. */
enum profd_status elf_build_names_full(const struct elf_build *b, struct profd_error *e);

#endif
