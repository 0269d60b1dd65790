#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "elf/elf_internal.h"
#include "elf/elf_read.h"
#include "proto/hex.h"
#include "proto/limits.h"

#define NOTES_MAX (UINT64_C(1) << 20)
#define PIECE 65536u

/* Searches notes. True if a build-id was found. */
static bool find_in_notes(Elf_Data *notes, struct buildid *id)
{
    GElf_Nhdr note;
    size_t name, body;
    for (size_t at = 0; notes != NULL && (at = gelf_getnote(notes, at, &note, &name, &body)) > 0;) {
        const uint8_t *p = notes->d_buf;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(p + name, "GNU", 4) == 0 &&
            note.n_descsz <= BUILDID_BYTES_MAX && buildid_from_note(p + body, note.n_descsz, id, NULL) == PROFD_OK) {
            return true;
        }
    }
    return false;
}

/* True if size bytes of notes at the offset may be read; they are then subtracted from the budget, because tens of
 * thousands of headers may refer to the same bytes. */
static bool may_look(const struct elf_file *f, uint64_t offset, uint64_t size, uint64_t *budget)
{
    if (size > *budget) {
        return false;
    }
    *budget -= size;
    return size > 0 && size <= NOTES_MAX && elf_file_holds(f, offset, size);
}

enum profd_status elf_id_from_notes(const struct elf_file *f, struct buildid *id, struct profd_error *e)
{
    uint64_t budget = 16 * NOTES_MAX;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if (s->sh_type == SHT_NOTE && !(s->sh_flags & SHF_COMPRESSED) &&
            may_look(f, s->sh_offset, s->sh_size, &budget) &&
            find_in_notes(elf_getdata(elf_getscn(f->elf, i), NULL), id)) {
            return PROFD_OK;
        }
    }
    for (uint32_t i = 0; i < f->segment_count; i++) {
        const GElf_Phdr *s = &f->segments[i];
        if (s->p_type == PT_NOTE && may_look(f, s->p_offset, s->p_filesz, &budget) &&
            find_in_notes(elf_getdata_rawchunk(f->elf, (int64_t)s->p_offset, (size_t)s->p_filesz,
                                               s->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
                          id)) {
            return PROFD_OK;
        }
    }
    return profd_error_set(e, PROFD_NOT_FOUND, "the file has no build-id note");
}

static void hash_u64(struct sha256_ctx *hash, uint64_t value)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    sha256_update(hash, sizeof bytes, bytes);
}

void elf_id_hash_section(struct sha256_ctx *hash, const GElf_Shdr *s, const uint8_t *bytes)
{
    hash_u64(hash, s->sh_addr);
    hash_u64(hash, s->sh_size);
    sha256_update(hash, (size_t)s->sh_size, bytes);
}

/* The same, of a section inside the file, in pieces: in constant memory. MALFORMED or IO as elf_file_read. */
static enum profd_status elf_id_hash_file(struct sha256_ctx *hash, const struct elf_file *f, const GElf_Shdr *s,
                                          struct profd_error *e)
{
    uint8_t piece[PIECE];
    enum profd_status status = PROFD_OK;
    hash_u64(hash, s->sh_addr);
    hash_u64(hash, s->sh_size);
    for (uint64_t at = 0, n; at < s->sh_size && status == PROFD_OK; at += n) {
        n = s->sh_size - at < PIECE ? s->sh_size - at : PIECE;
        status = elf_file_read(f, s->sh_offset + at, piece, n, e);
        if (status == PROFD_OK) {
            sha256_update(hash, (size_t)n, piece);
        }
    }
    return status;
}

enum profd_status elf_id_from_code(const struct sha256_ctx *hash, uint32_t sections, struct buildid *id,
                                   struct profd_error *e)
{
    FAIL_IF(sections == 0, e, PROFD_MALFORMED, "an executable must have a build-id or code; this file has neither");
    struct sha256_ctx copy = *hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&copy, sizeof digest, digest);
    buildid_from_sha256(digest, id);
    return PROFD_OK;
}

void elf_id_variant(const struct sha256_ctx *code, const struct object *o, const char *names, char variant[65])
{
    struct sha256_ctx hash = *code;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        const uint8_t kind[2] = {s->bind, s->type};
        hash_u64(&hash, s->address);
        hash_u64(&hash, s->size);
        sha256_update(&hash, sizeof kind, kind);
        sha256_update(&hash, strlen(names + s->name) + 1, (const uint8_t *)(names + s->name));
    }
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&hash, sizeof digest, digest);
    hex_put(variant, digest, sizeof digest);
}

static enum profd_status hash_code(const struct elf_file *f, uint64_t most, struct arena *scratch, struct buildid *id,
                                   struct profd_error *e)
{
    uint32_t *code, count;
    uint64_t bytes = 0;
    enum profd_status status = elf_file_code(f, scratch, &code, &count, e);
    struct sha256_ctx hash;
    sha256_init(&hash);
    for (uint32_t i = 0; status == PROFD_OK && i < count; i++) {
        bytes += f->sections[code[i]].sh_size;
        status =
            bytes <= most
                ? elf_id_hash_file(&hash, f, &f->sections[code[i]], e)
                : profd_error_set(e, PROFD_LIMIT,
                                  "a file without a build-id may have at most %" PRIu64 " bytes of code here", most);
    }
    return status == PROFD_OK ? elf_id_from_code(&hash, count, id, e) : status;
}

enum profd_status elf_read_id(int executable, uint64_t most, struct buildid *id, struct profd_error *e)
{
    struct arena *scratch = arena_new(0);
    FAIL_IF(scratch == NULL, e, PROFD_NO_MEMORY, "out of memory for an ELF file's headers");
    struct elf_file *f = NULL;
    enum profd_status status = elf_file_open(executable, scratch, &f, e);
    if (status == PROFD_OK && elf_id_from_notes(f, id, NULL) != PROFD_OK) {
        status = hash_code(f, most, scratch, id, e);
    }
    elf_file_close(f);
    arena_free(scratch);
    return status;
}

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
    FAIL_IF(names == NULL || note == NULL, e, PROFD_NO_MEMORY, "out of memory for %zu bytes of names", b->names.size);
    b->object->names = names;
    b->object->name_bytes = (uint32_t)b->names.size;
    b->object->note = note;
    return PROFD_OK;
}
