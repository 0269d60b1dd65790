#include "elf/elf_id.h"
#include "elf/elf_read.h"

static enum profd_status hash_code(const struct elf_file *f, struct arena *scratch, struct buildid *id,
                                   struct profd_error *e)
{
    uint32_t *code, count;
    enum profd_status status = elf_file_code(f, scratch, &code, &count, e);
    struct sha256_ctx hash;
    sha256_init(&hash);
    for (uint32_t i = 0; status == PROFD_OK && i < count; i++) {
        const uint8_t *bytes;
        status = elf_file_bytes(f, &f->sections[code[i]], &bytes, e);
        if (status == PROFD_OK) {
            elf_id_hash_section(&hash, &f->sections[code[i]], bytes);
        }
    }
    return status == PROFD_OK ? elf_id_from_code(&hash, count, id, e) : status;
}

enum profd_status elf_read_id(int executable, struct buildid *id, struct profd_error *e)
{
    struct arena *scratch = arena_new(0);
    if (scratch == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for an ELF file's headers");
    }
    struct elf_file *f = NULL;
    enum profd_status status = elf_file_open(executable, scratch, &f, e);
    if (status == PROFD_OK && elf_id_from_notes(f, id, NULL) != PROFD_OK) {
        status = hash_code(f, scratch, id, e);
    }
    elf_file_close(f);
    arena_free(scratch);
    return status;
}
