#include "elf/elf_build.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "proto/limits.h"

uint32_t elf_build_name(struct elf_build *b, const char *text, size_t n)
{
    if (n == 0 || b->names.failed) {
        return 0;
    }
    if (n > b->name_limit) {
        b->names_cut++;
        n = b->name_limit;
    }
    uint32_t offset = (uint32_t)b->names.size;
    buffer_add(&b->names, text, n);
    buffer_add_char(&b->names, '\0');
    return b->names.failed ? 0 : offset;
}

void elf_build_note(struct elf_build *b, const char *format, ...)
{
    char sentence[512];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(sentence, sizeof sentence, format, list);
    va_end(list);
    if (n <= 0) {
        return;
    }
    if (b->note.size != 0) {
        buffer_add_char(&b->note, ' ');
    }
    buffer_add_text(&b->note, sentence);
}

/* Linkers let names share their ends, and demangled names are longer than raw ones; valid files stay far below the
 * limit. */
#define NAMES_PER_BYTE 16
#define NAMES_LEAST (UINT64_C(1) << 20)

void elf_build_limit(struct elf_build *b, uint64_t file_size)
{
    if (file_size < (LIMIT_NAME_BYTES - NAMES_LEAST) / NAMES_PER_BYTE) {
        b->names.limit = (size_t)(file_size * NAMES_PER_BYTE + NAMES_LEAST);
    }
}

enum profd_status elf_build_names_full(const struct elf_build *b, struct profd_error *e)
{
    return profd_error_set(e, PROFD_LIMIT,
                           "the names of this object may have at most %zu bytes together, and must fit into memory",
                           b->names.limit);
}

enum profd_status elf_build_finish(struct elf_build *b, struct profd_error *e)
{
    if (b->names_cut != 0) {
        elf_build_note(b, "%" PRIu64 " names longer than %zu bytes were cut.", b->names_cut, b->name_limit);
    }
    if (b->names.failed) {
        return elf_build_names_full(b, e);
    }
    char *names = arena_copy(b->out, b->names.data, b->names.size);
    const char *note = b->note.size == 0 ? "" : arena_copy(b->out, b->note.data, b->note.size);
    if (names == NULL || note == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %zu bytes of names", b->names.size);
    }
    b->object->names = names;
    b->object->name_bytes = (uint32_t)b->names.size;
    b->object->note = note;
    return PROFD_OK;
}
