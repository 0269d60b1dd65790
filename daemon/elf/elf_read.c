#include "elf/elf_read.h"

#include <inttypes.h>

#include "elf/elf_dwarf.h"
#include "elf/elf_internal.h"
#include "proto/limits.h"

#define NOTE_MAX 4000 /* bytes; object_decode takes LIMIT_SYMBOL_NAME */

/* What reads the code of a file; each may be NULL. */
struct code_readers {
    struct elf_arcs *arcs;
    struct elf_instructions *instructions;
};

/* Reads each executable section once: hashes it and its functions, and passes it to the readers. */
static enum profd_status read_code(struct elf_build *b, const struct elf_file *f, const struct elf_functions *functions,
                                   const struct code_readers *readers, struct sha256_ctx *hash, uint32_t *count,
                                   struct profd_error *e)
{
    uint32_t *code;
    enum profd_status status = elf_file_code(f, b->scratch, &code, count, e);
    for (uint32_t i = 0; status == PROFD_OK && i < *count; i++) {
        const GElf_Shdr *s = &f->sections[code[i]];
        const uint8_t *bytes;
        status = elf_file_bytes(f, s, &bytes, e);
        if (status == PROFD_OK) {
            elf_id_hash_section(hash, s, bytes);
            status = readers->arcs != NULL ? elf_arcs_scan(readers->arcs, s, bytes, e) : PROFD_OK;
        }
        if (status == PROFD_OK && readers->instructions != NULL) {
            status = elf_instructions_scan(readers->instructions, s, bytes, e);
        }
        if (status == PROFD_OK && readers->arcs != NULL) {
            elf_code_hash(b, f, functions, s, bytes);
        }
    }
    return status;
}

static enum profd_status read_arcs(struct elf_build *b, const struct elf_file *f, struct elf_plt *plt,
                                   const struct elf_read_options *options, struct sha256_ctx *hash, uint32_t *sections,
                                   struct profd_error *e)
{
    struct elf_functions functions;
    struct code_readers readers = {.arcs = NULL};
    enum profd_status status = elf_functions_make(b, &functions, e);
    if (status == PROFD_OK && options->static_arcs) {
        status = elf_arcs_new(b, f, &functions, plt, &readers.arcs, e);
    }
    if (status == PROFD_OK && options->instructions) {
        status = elf_instructions_new(b, f, &functions, &readers.instructions, e);
    }
    if (status == PROFD_OK) {
        status = read_code(b, f, &functions, &readers, hash, sections, e);
    }
    if (status == PROFD_OK && readers.arcs != NULL) {
        status = elf_arcs_finish(readers.arcs, e);
    }
    if (status == PROFD_OK && readers.instructions != NULL) {
        status = elf_instructions_finish(readers.instructions, e);
    }
    elf_arcs_free(readers.arcs);
    elf_instructions_free(readers.instructions);
    return status;
}

/* The debug file of another build would name other functions. */
static enum profd_status open_debug(int debug, const struct elf_build *b, bool has_id, struct elf_file **out,
                                    struct profd_error *e)
{
    if (!has_id) {
        return profd_error_set(e, PROFD_WRONG_BUILD,
                               "a debug file needs an executable with a build-id; this one has none");
    }
    struct buildid id;
    enum profd_status status = elf_file_open(debug, b->scratch, out, e);
    if (status == PROFD_OK) {
        status = elf_id_from_notes(*out, &id, e);
    }
    if (status == PROFD_NOT_FOUND) {
        return profd_error_set(e, PROFD_WRONG_BUILD, "a debug file must have the build-id %s; this one has none",
                               b->object->id.text);
    }
    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "debug file");
    }
    if (strcmp(id.text, b->object->id.text) != 0) {
        return profd_error_set(e, PROFD_WRONG_BUILD, "a debug file must have the build-id %s, not %s",
                               b->object->id.text, id.text);
    }
    return PROFD_OK;
}

/* Stored for a local reader; not for a file without .text. */
static enum profd_status read_text(struct elf_build *b, const struct elf_file *f, struct profd_error *e)
{
    const GElf_Shdr *s = elf_file_find(f, ".text");
    if (s == NULL) {
        return PROFD_OK;
    }
    const uint8_t *bytes;
    TRY(elf_file_bytes(f, s, &bytes, e));
    b->object->text = (const uint8_t *)arena_copy(b->out, (const char *)bytes, (size_t)s->sh_size);
    if (b->object->text == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu64 " bytes of .text", s->sh_size);
    }
    b->object->text_address = s->sh_addr;
    b->object->text_size = s->sh_size;
    return PROFD_OK;
}

static enum profd_status read_dwarf(struct elf_build *b, const struct elf_file *f, const struct elf_file *separate,
                                    const struct elf_read_options *options, struct profd_error *e)
{
    struct elf_dwarf d;
    enum profd_status status = PROFD_OK;
    elf_dwarf_open(&d, b, f, separate);
    if (d.dwarf != NULL && (options->lines || options->all_lines)) {
        const enum elf_line_keep keep = options->line_table ? ELF_LINE_KEEP_FUNCTIONS
                                        : options->rows     ? ELF_LINE_KEEP_ROWS
                                                            : ELF_LINE_KEEP_NONE;
        status = elf_line_read(b, &d, options->all_lines, keep, e);
    }
    if (status == PROFD_OK && d.dwarf != NULL && options->inlined) {
        status = elf_inlined_read(b, &d, e);
    }
    elf_dwarf_close(&d);
    return status;
}

/* Reads everything after the header. *separate: the debug file, if it was opened; the caller closes it. */
static enum profd_status read_object(struct elf_build *b, const struct elf_file *f, int debug,
                                     const struct elf_read_options *options, struct elf_file **separate,
                                     struct profd_error *e)
{
    struct object *o = b->object;
    bool has_id = elf_id_from_notes(f, &o->id, NULL) == PROFD_OK;
    struct elf_plt plt = {0};
    struct sha256_ctx hash;
    uint32_t sections = 0;
    sha256_init(&hash);
    enum profd_status status = debug < 0 ? PROFD_OK : open_debug(debug, b, has_id, separate, e);
    if (status == PROFD_OK) {
        status = elf_symbols_read(b, f, *separate, e);
    }
    if (status == PROFD_OK) {
        status = elf_ranges_read(b, f, e);
    }
    if (status == PROFD_OK) {
        status = elf_plt_read(b, f, &plt, e);
    }
    if (status == PROFD_OK) {
        status = read_arcs(b, f, &plt, options, &hash, &sections, e);
    }
    if (status == PROFD_OK && !has_id) {
        status = elf_id_from_code(&hash, sections, &o->id, e);
    }
    if (status != PROFD_OK) {
        return status;
    }
    elf_id_variant(&hash, o, b->names.data, o->variant);
    if (options->text) {
        status = read_text(b, f, e);
    }
    if (status == PROFD_OK && (options->lines || options->all_lines || options->inlined)) {
        status = read_dwarf(b, f, *separate, options, e);
    }
    if (status == PROFD_OK && options->demangle) {
        elf_demangle_all(b, !options->no_cxx, !options->no_rust);
    }
    return status;
}

enum profd_status elf_read(int executable, int debug, const struct elf_read_options *options, struct arena *a,
                           struct object **out, struct profd_error *e)
{
    struct elf_build b = {.out = a, .scratch = arena_new(0), .object = ARENA_NEW(a, struct object)};
    if (b.scratch == NULL || b.object == NULL) {
        arena_free(b.scratch);
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for an object");
    }
    b.name_limit = options->long_names ? LIMIT_NAME_BYTES : LIMIT_SYMBOL_NAME;
    buffer_init(&b.names, LIMIT_NAME_BYTES);
    buffer_init(&b.note, NOTE_MAX);
    buffer_add_char(&b.names, '\0');
    struct elf_file *f = NULL, *separate = NULL;
    enum profd_status status =
        b.names.failed ? elf_build_names_full(&b, e) : elf_file_open(executable, b.scratch, &f, e);
    if (status == PROFD_OK) {
        elf_build_limit(&b, f->size);
        b.object->machine = f->machine;
        b.object->bits = f->bits;
        b.object->big_endian = f->big_endian;
        b.object->position_independent = f->type == ET_DYN;
        status = read_object(&b, f, debug, options, &separate, e);
    }
    elf_file_close(separate);
    elf_file_close(f);
    arena_free(b.scratch); /* freed now; otherwise the tables and two copies of the names would be in memory at the same
                              time */
    if (status == PROFD_OK) {
        status = elf_build_finish(&b, e);
    }
    if (status == PROFD_OK) {
        *out = b.object;
    }
    buffer_done(&b.names);
    buffer_done(&b.note);
    return status;
}

enum profd_status elf_read_loads(int executable, struct arena *a, struct elf_load **out, uint32_t *count,
                                 struct profd_error *e)
{
    struct elf_file *f;
    TRY(elf_file_open(executable, a, &f, e));
    struct elf_load *loads = ARENA_ARRAY(a, (size_t)f->segment_count + 1, struct elf_load);
    uint32_t n = 0;
    for (uint32_t i = 0; loads != NULL && i < f->segment_count; i++) {
        const GElf_Phdr *s = &f->segments[i];
        if (s->p_type == PT_LOAD) {
            loads[n++] = (struct elf_load){s->p_offset, s->p_vaddr, s->p_filesz};
        }
    }
    elf_file_close(f);
    if (loads == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for the segments of a file");
    }
    *out = loads;
    *count = n;
    return PROFD_OK;
}
