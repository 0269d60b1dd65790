#include "record/record_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined __aarch64__
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static const char NAMES[] = "\0.text\0.note.gnu.build-id\0.symtab\0.strtab\0.shstrtab";
enum { AT_TEXT = 1, AT_NOTE = 7, AT_SYMTAB = 26, AT_STRTAB = 34, AT_SHSTRTAB = 42 };
enum { TEXT = 1, NOTE, SYMTAB, STRTAB, SHSTRTAB, SECTIONS };

struct note {
    Elf64_Nhdr header;
    char name[4];
    uint8_t id[BUILDID_BYTES_MAX];
};

/* All but symbols and their names, in the order of the file. */
struct head {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    Elf64_Shdr sections[SECTIONS];
    struct note note;
    char names[sizeof NAMES];
};

static uint8_t digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static uint32_t note_fill(struct note *n, const struct buildid *id)
{
    const uint32_t size = (uint32_t)strlen(id->text) / 2;
    n->header = (Elf64_Nhdr){4, size, NT_GNU_BUILD_ID};
    memcpy(n->name, "GNU", 4);
    for (uint32_t i = 0; i < size; i++) {
        n->id[i] = (uint8_t)(digit(id->text[2 * i]) << 4 | digit(id->text[2 * i + 1]));
    }
    return (uint32_t)(offsetof(struct note, id) + ((size + 3) & ~3u));
}

static void head_fill(struct head *h, const struct buildid *id, uint64_t size, uint64_t symtab, uint64_t strtab)
{
    *h = (struct head){.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                                  .e_type = ET_DYN,
                                  .e_machine = MACHINE,
                                  .e_version = EV_CURRENT,
                                  .e_phoff = offsetof(struct head, segment),
                                  .e_shoff = offsetof(struct head, sections),
                                  .e_ehsize = sizeof(Elf64_Ehdr),
                                  .e_phentsize = sizeof(Elf64_Phdr),
                                  .e_phnum = 1,
                                  .e_shentsize = sizeof(Elf64_Shdr),
                                  .e_shnum = SECTIONS,
                                  .e_shstrndx = SHSTRTAB},
                       .segment = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_memsz = size, .p_align = 1}};
    h->sections[TEXT] = (Elf64_Shdr){.sh_name = AT_TEXT,
                                     .sh_type = SHT_NOBITS,
                                     .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                     .sh_size = size,
                                     .sh_addralign = 1};
    h->sections[NOTE] = (Elf64_Shdr){.sh_name = AT_NOTE,
                                     .sh_type = SHT_NOTE,
                                     .sh_offset = offsetof(struct head, note),
                                     .sh_size = note_fill(&h->note, id),
                                     .sh_addralign = 4};
    h->sections[SYMTAB] = (Elf64_Shdr){.sh_name = AT_SYMTAB,
                                       .sh_type = SHT_SYMTAB,
                                       .sh_offset = sizeof *h,
                                       .sh_size = symtab,
                                       .sh_link = STRTAB,
                                       .sh_info = 1,
                                       .sh_addralign = 8,
                                       .sh_entsize = sizeof(Elf64_Sym)};
    h->sections[STRTAB] = (Elf64_Shdr){.sh_name = AT_STRTAB,
                                       .sh_type = SHT_STRTAB,
                                       .sh_offset = sizeof *h + symtab,
                                       .sh_size = strtab,
                                       .sh_addralign = 1};
    h->sections[SHSTRTAB] = (Elf64_Shdr){.sh_name = AT_SHSTRTAB,
                                         .sh_type = SHT_STRTAB,
                                         .sh_offset = offsetof(struct head, names),
                                         .sh_size = sizeof NAMES,
                                         .sh_addralign = 1};
    memcpy(h->names, NAMES, sizeof NAMES);
}

/* The symbols, then their names; the first of both is empty. */
static void symbols_fill(const struct synthetic_symbol *symbols, uint32_t n, Elf64_Sym *out, char *names)
{
    size_t at = 1;
    for (uint32_t i = 0; i < n; i++) {
        const size_t size = strlen(symbols[i].name) + 1;
        out[i + 1] = (Elf64_Sym){.st_name = (Elf64_Word)at,
                                 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                 .st_shndx = TEXT,
                                 .st_value = symbols[i].address,
                                 .st_size = symbols[i].size};
        memcpy(names + at, symbols[i].name, size);
        at += size;
    }
}

static bool file_write(int fd, const uint8_t *bytes, size_t n)
{
    for (ssize_t got; n > 0; bytes += got, n -= (size_t)got) {
        got = write(fd, bytes, n);
        if (got <= 0) {
            return false;
        }
    }
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0;
}

enum profd_status synthetic_make(const char *name, const struct buildid *id, uint64_t size,
                                 const struct synthetic_symbol *symbols, uint32_t n, int *fd, struct profd_error *e)
{
    size_t names = 1;
    for (uint32_t i = 0; i < n; i++) {
        names += strlen(symbols[i].name) + 1;
    }
    const size_t symtab = ((size_t)n + 1) * sizeof(Elf64_Sym), whole = sizeof(struct head) + symtab + names;
    uint8_t *bytes = calloc(1, whole);
    if (!bytes) {
        return profd_no_memory(e);
    }
    head_fill((void *)bytes, id, size, symtab, names);
    symbols_fill(symbols, n, (void *)(bytes + sizeof(struct head)), (char *)bytes + sizeof(struct head) + symtab);
    const int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    enum profd_status status = PROFD_OK;
    if (file < 0 || !file_write(file, bytes, whole)) {
        status = profd_error_set(e, PROFD_IO, "cannot make a file of the symbols of %s: %s", name, strerror(errno));
        if (file >= 0) {
            close(file);
        }
    } else {
        *fd = file;
    }
    free(bytes);
    return status;
}
