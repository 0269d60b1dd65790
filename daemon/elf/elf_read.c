#include "elf/elf_read.h"

#include <inttypes.h>

#include "elf/elf_dwarf.h"
#include "elf/elf_internal.h"
#include "proto/limits.h"

#define NOTE_MAX 4000 /* bytes; object_decode takes LIMIT_SYMBOL_NAME */

/* Reads each executable section once: hashes it and its functions, and finds the arcs and instructions in it. *count:
 * its executable sections. */
static enum profd_status read_code(struct elf_build *b, const struct elf_file *f, struct elf_plt *plt,
                                   const struct elf_read_options *options, struct sha256_ctx *hash, uint32_t *count,
                                   struct profd_error *e)
{
    struct elf_functions functions;
    struct elf_arcs *arcs = NULL;
    struct elf_instructions *instructions = NULL;
    uint32_t *code;
    enum profd_status status = elf_functions_make(b, &functions, e);
    if (!status && options->static_arcs) {
        status = elf_arcs_new(b, f, &functions, plt, &arcs, e);
    }
    if (!status && options->instructions) {
        status = elf_instructions_new(b, f, &functions, &instructions, e);
    }
    if (!status) {
        status = elf_file_code(f, b->scratch, &code, count, e);
    }
    for (uint32_t i = 0; !status && i < *count; i++) {
        const GElf_Shdr *s = &f->sections[code[i]];
        const uint8_t *bytes;
        status = elf_file_bytes(f, s, &bytes, e);
        if (!status) {
            elf_id_hash_section(hash, s, bytes);
            status = arcs != NULL ? elf_arcs_scan(arcs, s, bytes, e) : PROFD_OK;
        }
        status = status || instructions == NULL ? status : elf_instructions_scan(instructions, s, bytes, e);
        if (!status && arcs != NULL) {
            elf_code_hash(b, f, &functions, s, bytes);
        }
    }
    if (!status && arcs != NULL) {
        elf_arcs_finish(arcs);
    }
    status = status || instructions == NULL ? status : elf_instructions_finish(instructions, e);
    elf_arcs_free(arcs);
    elf_instructions_free(instructions);
    return status;
}

/* The debug file of another build would name other functions. */
static enum profd_status open_debug(int debug, const struct elf_build *b, bool has_id, struct elf_file **out,
                                    struct profd_error *e)
{
    FAIL_IF(!has_id, e, PROFD_WRONG_BUILD, "a debug file needs an executable with a build-id; this one has none");
    struct buildid id;
    enum profd_status status = elf_file_open(debug, b->scratch, out, e);
    if (!status) {
        status = elf_id_from_notes(*out, &id, e);
    }
    FAIL_IF(status == PROFD_NOT_FOUND, e, PROFD_WRONG_BUILD,
            "a debug file must have the build-id %s; this one has none", b->object->id.text);
    if (status) {
        return profd_error_wrap(e, status, "debug file");
    }
    FAIL_IF(strcmp(id.text, b->object->id.text) != 0, e, PROFD_WRONG_BUILD,
            "a debug file must have the build-id %s, not %s", b->object->id.text, id.text);
    return PROFD_OK;
}

/* Reads everything after the header. *separate: the debug file, if it was opened; the caller closes it. */
static enum profd_status read_object(struct elf_build *b, const struct elf_file *f, int debug,
                                     const struct elf_read_options *options, struct elf_file **separate,
                                     struct profd_error *e)
{
    struct object *o = b->object;
    const bool has_id = elf_id_from_notes(f, &o->id, NULL) == PROFD_OK;
    struct elf_plt plt = {0};
    struct sha256_ctx hash;
    uint32_t sections = 0;
    sha256_init(&hash);
    if (debug >= 0) {
        TRY(open_debug(debug, b, has_id, separate, e));
    }
    TRY(elf_symbols_read(b, f, *separate, e));
    TRY(elf_ranges_read(b, f, e));
    TRY(elf_plt_read(b, f, &plt, e));
    TRY(read_code(b, f, &plt, options, &hash, &sections, e));
    if (!has_id) {
        TRY(elf_id_from_code(&hash, sections, &o->id, e));
    }
    elf_id_variant(&hash, o, b->names.data, o->variant);

    const GElf_Shdr *text = options->text ? elf_file_find(f, ".text") : NULL;
    if (text != NULL) {
        const uint8_t *bytes;
        TRY(elf_file_bytes(f, text, &bytes, e));
        o->text = (const uint8_t *)arena_copy(b->out, (const char *)bytes, (size_t)text->sh_size);
        FAIL_IF(o->text == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu64 " bytes of .text", text->sh_size);
        o->text_address = text->sh_addr;
        o->text_size = text->sh_size;
    }

    const bool lines = options->lines || options->all_lines;
    if (lines || options->inlined) {
        struct elf_dwarf d;
        enum profd_status status = PROFD_OK;
        elf_dwarf_open(&d, b, f, *separate);
        if (d.dwarf != NULL && lines) {
            const enum elf_line_keep keep = options->line_table ? ELF_LINE_KEEP_FUNCTIONS
                                            : options->rows     ? ELF_LINE_KEEP_ROWS
                                                                : ELF_LINE_KEEP_NONE;
            status = elf_line_read(b, &d, options->all_lines, keep, e);
        }
        if (!status && d.dwarf != NULL && options->inlined) {
            status = elf_inlined_read(b, &d, e);
        }
        elf_dwarf_close(&d);
        if (status) {
            return status;
        }
    }
    if (options->demangle) {
        elf_demangle_all(b, !options->no_cxx, !options->no_rust);
    }
    return PROFD_OK;
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
    if (!status) {
        elf_build_limit(&b, f->size);
        b.object->machine = f->machine;
        b.object->bits = f->bits;
        b.object->big_endian = f->big_endian;
        b.object->position_independent = f->type == ET_DYN;
        status = read_object(&b, f, debug, options, &separate, e);
    }
    elf_file_close(separate);
    elf_file_close(f);
    /* Freed before the names are copied, so that the tables and two copies of the names never exist together. */
    arena_free(b.scratch);
    if (!status) {
        status = elf_build_finish(&b, e);
    }
    if (!status) {
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
    FAIL_IF(loads == NULL, e, PROFD_NO_MEMORY, "out of memory for the segments of a file");
    *out = loads;
    *count = n;
    return PROFD_OK;
}
