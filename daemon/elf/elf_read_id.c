#include <inttypes.h>

#include "elf/elf_id.h"
#include "elf/elf_read.h"

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
    if (scratch == NULL) {
        return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for an ELF file's headers");
    }
    struct elf_file *f = NULL;
    enum profd_status status = elf_file_open(executable, scratch, &f, e);
    if (status == PROFD_OK && elf_id_from_notes(f, id, NULL) != PROFD_OK) {
        status = hash_code(f, most, scratch, id, e);
    }
    elf_file_close(f);
    arena_free(scratch);
    return status;
}
