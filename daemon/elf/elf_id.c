#include "elf/elf_id.h"

#include <elf.h>
#include <inttypes.h>

#include "proto/limits.h"

#define NOTES_MAX (UINT64_C(1) << 20)

static uint64_t align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) & ~(align - 1);
}

/* Walks the notes of one section or segment. True if a build-id was found. */
static bool find_in_notes(const struct elf_file *f, const uint8_t *p, uint64_t size, uint64_t align, struct buildid *id)
{
    align = align == 8 ? 8 : 4;
    for (uint64_t at = 0; at + 12 <= size;) {
        uint64_t name = elf_u32(f, p + at), body = elf_u32(f, p + at + 4);
        uint32_t type = elf_u32(f, p + at + 8);
        uint64_t name_at = at + 12, body_at = align_up(name_at + name, align), next = align_up(body_at + body, align);
        if (body_at > size || body > size - body_at)
            return false;
        if (type == NT_GNU_BUILD_ID && name == 4 && memcmp(p + name_at, "GNU", 4) == 0 && body <= BUILDID_BYTES_MAX &&
            buildid_from_note(p + body_at, (size_t)body, id, NULL) == PROFD_OK)
            return true;
        at = next;
    }
    return false;
}

static bool find_at(const struct elf_file *f, struct arena *scratch, uint64_t offset, uint64_t size, uint64_t align,
                    struct buildid *id)
{
    if (size == 0 || size > NOTES_MAX)
        return false;
    uint8_t *p = arena_take(scratch, (size_t)size);
    return p != NULL && elf_file_read(f, offset, p, size, NULL) == PROFD_OK && find_in_notes(f, p, size, align, id);
}

enum profd_status elf_id_from_notes(const struct elf_file *f, struct arena *scratch, struct buildid *id,
                                    struct profd_error *e)
{
    uint64_t budget = 16 * NOTES_MAX; /* tens of thousands of headers may point at the same bytes */
    for (uint32_t i = 0; i < f->section_count && budget != 0; i++) {
        const struct elf_section *s = &f->sections[i];
        if (s->type != SHT_NOTE || s->flags & SHF_COMPRESSED || s->size > budget)
            continue;
        budget -= s->size;
        if (find_at(f, scratch, s->offset, s->size, s->align, id))
            return PROFD_OK;
    }
    for (uint32_t i = 0; i < f->segment_count && budget != 0; i++) {
        const struct elf_segment *s = &f->segments[i];
        if (s->type != PT_NOTE || s->file_size > budget)
            continue;
        budget -= s->file_size;
        if (find_at(f, scratch, s->offset, s->file_size, s->align, id))
            return PROFD_OK;
    }
    return profd_error_set(e, PROFD_NOT_FOUND, "the file has no build-id note");
}

static void hash_u64(struct sha256_ctx *hash, uint64_t value)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    sha256_update(hash, sizeof bytes, bytes);
}

void elf_id_hash_section(struct sha256_ctx *hash, const struct elf_section *s, const uint8_t *bytes)
{
    hash_u64(hash, s->address);
    hash_u64(hash, s->size);
    sha256_update(hash, (size_t)s->size, bytes);
}

enum profd_status elf_id_from_code(const struct sha256_ctx *hash, uint32_t sections, struct buildid *id,
                                   struct profd_error *e)
{
    if (sections == 0)
        return profd_error_set(e, PROFD_MALFORMED, "an executable must have a build-id or code; this file has neither");
    struct sha256_ctx copy = *hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&copy, sizeof digest, digest);
    buildid_from_sha256(digest, id);
    return PROFD_OK;
}

void elf_id_variant(const struct sha256_ctx *code, const struct object *o, const char *names, char variant[65])
{
    static const char hex[] = "0123456789abcdef";
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
    for (size_t i = 0; i < sizeof digest; i++) {
        variant[2 * i] = hex[digest[i] >> 4];
        variant[2 * i + 1] = hex[digest[i] & 15];
    }
    variant[64] = '\0';
}
