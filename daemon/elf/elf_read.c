#include "elf/elf_read.h"

#include <elf.h>
#include <inttypes.h>

#include "elf/elf_arcs.h"
#include "elf/elf_build.h"
#include "elf/elf_demangle.h"
#include "elf/elf_file.h"
#include "elf/elf_id.h"
#include "elf/elf_line.h"
#include "elf/elf_plt.h"
#include "elf/elf_ranges.h"
#include "elf/elf_symbols.h"
#include "proto/limits.h"

#define NOTE_MAX 4000 /* bytes; object_decode takes LIMIT_SYMBOL_NAME */

/* Reads each executable section once: hashes it, and finds its arcs (arcs may be NULL). */
static enum profd_status read_code(const struct elf_file *f, struct arena *scratch, struct elf_arcs *arcs,
                                   struct sha256_ctx *hash, uint32_t *count, struct profd_error *e)
{
    uint32_t *code;
    enum profd_status status = elf_file_code(f, scratch, &code, count, e);
    uint64_t budget = f->size; /* sections that share bytes would be read again and again */
    for (uint32_t i = 0; status == PROFD_OK && i < *count; i++) {
        const struct elf_section *s = &f->sections[code[i]];
        if (s->size > budget)
            return profd_error_set(e, PROFD_MALFORMED,
                                   "executable sections must not have more bytes than the file, which has %" PRIu64,
                                   f->size);
        budget -= s->size;
        struct arena *room = arena_new(0);
        uint8_t *bytes;
        if (room == NULL)
            return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for a section");
        status = elf_file_load(f, s, room, &bytes, e);
        if (status == PROFD_OK) {
            elf_id_hash_section(hash, s, bytes);
            if (arcs != NULL)
                status = elf_arcs_scan(arcs, s, bytes, e);
        }
        arena_free(room);
    }
    return status;
}

static enum profd_status read_arcs(struct elf_build *b, const struct elf_file *f, struct elf_plt *plt, bool wanted,
                                   struct sha256_ctx *hash, uint32_t *sections, struct profd_error *e)
{
    struct elf_functions functions;
    struct elf_arcs *arcs = NULL;
    enum profd_status status = elf_functions_make(b, &functions, e);
    if (status == PROFD_OK && wanted)
        status = elf_arcs_new(b, f, &functions, plt, &arcs, e);
    if (status == PROFD_OK)
        status = read_code(f, b->scratch, arcs, hash, sections, e);
    if (status == PROFD_OK && arcs != NULL)
        status = elf_arcs_finish(arcs, e);
    elf_arcs_free(arcs);
    return status;
}

/* The debug file of another build would name other functions. */
static enum profd_status open_debug(int debug, const struct elf_build *b, bool has_id, struct elf_file **out,
                                    struct profd_error *e)
{
    if (!has_id)
        return profd_error_set(e, PROFD_WRONG_BUILD,
                               "a debug file needs an executable with a build-id; this one has none");
    struct buildid id;
    enum profd_status status = elf_file_open(debug, b->scratch, out, e);
    if (status == PROFD_OK)
        status = elf_id_from_notes(*out, b->scratch, &id, e);
    if (status == PROFD_NOT_FOUND)
        return profd_error_set(e, PROFD_WRONG_BUILD, "a debug file must have the build-id %s; this one has none",
                               b->object->id.text);
    if (status != PROFD_OK)
        return profd_error_wrap(e, status, "debug file");
    if (strcmp(id.text, b->object->id.text) != 0)
        return profd_error_set(e, PROFD_WRONG_BUILD, "a debug file must have the build-id %s, not %s",
                               b->object->id.text, id.text);
    return PROFD_OK;
}

/* Kept for a local reader; a file without .text leaves it out. */
static enum profd_status read_text(struct elf_build *b, const struct elf_file *f, struct profd_error *e)
{
    const struct elf_section *s = elf_file_find(f, ".text");
    uint8_t *bytes;
    if (s == NULL)
        return PROFD_OK;
    enum profd_status status = elf_file_load(f, s, b->out, &bytes, e);
    if (status != PROFD_OK)
        return status;
    b->object->text = bytes;
    b->object->text_address = s->address;
    b->object->text_size = s->size;
    return PROFD_OK;
}

/* Everything behind the header. */
static enum profd_status read_object(struct elf_build *b, const struct elf_file *f, int debug,
                                     const struct elf_read_options *options, struct profd_error *e)
{
    struct object *o = b->object;
    bool has_id = elf_id_from_notes(f, b->scratch, &o->id, NULL) == PROFD_OK;
    struct elf_file *separate = NULL;
    struct elf_plt plt = {0};
    struct sha256_ctx hash;
    uint32_t sections = 0;
    sha256_init(&hash);
    enum profd_status status = debug < 0 ? PROFD_OK : open_debug(debug, b, has_id, &separate, e);
    if (status == PROFD_OK)
        status = elf_symbols_read(b, f, separate, e);
    if (status == PROFD_OK)
        status = elf_ranges_read(b, f, e);
    if (status == PROFD_OK)
        status = elf_plt_read(b, f, &plt, e);
    if (status == PROFD_OK)
        status = read_arcs(b, f, &plt, options->static_arcs, &hash, &sections, e);
    if (status == PROFD_OK && !has_id)
        status = elf_id_from_code(&hash, sections, &o->id, e);
    if (status != PROFD_OK)
        return status;
    elf_id_variant(&hash, o, b->names.data, o->variant);
    if (options->text)
        status = read_text(b, f, e);
    if (status == PROFD_OK && (options->lines || options->all_lines))
        status = elf_line_read(b, f, separate, options->all_lines, options->line_table, e);
    if (status == PROFD_OK && options->demangle)
        elf_demangle_all(b, !options->no_cxx, !options->no_rust);
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
    struct elf_file *f;
    enum profd_status status =
        b.names.failed ? elf_build_names_full(&b, e) : elf_file_open(executable, b.scratch, &f, e);
    if (status == PROFD_OK) {
        elf_build_limit(&b, f->size);
        b.object->machine = f->machine;
        b.object->bits = f->bits;
        b.object->big_endian = f->big_endian;
        b.object->position_independent = f->type == ET_DYN;
        status = read_object(&b, f, debug, options, e);
    }
    arena_free(b.scratch); /* now: the tables would stand beside two copies of the names */
    if (status == PROFD_OK)
        status = elf_build_finish(&b, e);
    if (status == PROFD_OK)
        *out = b.object;
    buffer_done(&b.names);
    buffer_done(&b.note);
    return status;
}

enum profd_status elf_read_loads(int executable, struct arena *a, struct elf_load **out, uint32_t *count,
                                 struct profd_error *e)
{
    struct elf_file *f;
    enum profd_status status = elf_file_open(executable, a, &f, e);
    if (status != PROFD_OK)
        return status;
    struct elf_load *loads = ARENA_ARRAY(a, (size_t)f->segment_count + 1, struct elf_load);
    uint32_t n = 0;
    if (loads == NULL)
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " segments", f->segment_count);
    for (uint32_t i = 0; i < f->segment_count; i++) {
        const struct elf_segment *s = &f->segments[i];
        if (s->type == PT_LOAD)
            loads[n++] = (struct elf_load){s->offset, s->address, s->file_size};
    }
    *out = loads;
    *count = n;
    return PROFD_OK;
}
