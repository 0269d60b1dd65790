#include "record/record_internal.h"
#include "proto/whole.h"

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

struct synthetic_note {
    Elf64_Nhdr header;
    char name[4];
    uint8_t id[BUILDID_BYTES_MAX];
};

/* All but symbols and their names, in the order of the file. */
struct synthetic_head {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    Elf64_Shdr sections[SECTIONS];
    struct synthetic_note note;
    char names[sizeof NAMES];
};

static uint8_t digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void head_fill(struct synthetic_head *h, const struct buildid *id, uint64_t size, uint64_t symtab,
                      uint64_t strtab)
{
    const uint32_t id_size = (uint32_t)strlen(id->text) / 2;
    *h = (struct synthetic_head){.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                                            .e_type = ET_DYN,
                                            .e_machine = MACHINE,
                                            .e_version = EV_CURRENT,
                                            .e_phoff = offsetof(struct synthetic_head, segment),
                                            .e_shoff = offsetof(struct synthetic_head, sections),
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
                                     .sh_offset = offsetof(struct synthetic_head, note),
                                     .sh_size = offsetof(struct synthetic_note, id) + ((id_size + 3) & ~3u),
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
                                         .sh_offset = offsetof(struct synthetic_head, names),
                                         .sh_size = sizeof NAMES,
                                         .sh_addralign = 1};
    h->note.header = (Elf64_Nhdr){4, id_size, NT_GNU_BUILD_ID};
    memcpy(h->note.name, "GNU", 4);
    for (uint32_t i = 0; i < id_size; i++) {
        h->note.id[i] = (uint8_t)(digit(id->text[2 * i]) << 4 | digit(id->text[2 * i + 1]));
    }
    memcpy(h->names, NAMES, sizeof NAMES);
}

enum profd_status synthetic_make(const char *name, const struct buildid *id, uint64_t size,
                                 const struct synthetic_symbol *symbols, uint32_t n, int *fd, struct profd_error *e)
{
    size_t names = 1, at = 1;
    for (uint32_t i = 0; i < n; i++) {
        names += strlen(symbols[i].name) + 1;
    }
    const size_t symtab = ((size_t)n + 1) * sizeof(Elf64_Sym), whole = sizeof(struct synthetic_head) + symtab + names;
    uint8_t *bytes = calloc(1, whole);
    TRY(bytes ? PROFD_OK : profd_no_memory(e));
    head_fill((void *)bytes, id, size, symtab, names);
    /* The symbols, then their names. The first of both is empty. */
    Elf64_Sym *out = (void *)(bytes + sizeof(struct synthetic_head));
    for (uint32_t i = 0; i < n; i++) {
        const size_t length = strlen(symbols[i].name) + 1;
        out[i + 1] = (Elf64_Sym){.st_name = (Elf64_Word)at,
                                 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                 .st_shndx = TEXT,
                                 .st_value = symbols[i].address,
                                 .st_size = symbols[i].size};
        memcpy(bytes + sizeof(struct synthetic_head) + symtab + at, symbols[i].name, length);
        at += length;
    }
    const int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const bool written = file >= 0 && whole_write(file, bytes, whole);
    free(bytes);
    if (!written || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
        profd_error_set(e, PROFD_IO, "cannot make a file of the symbols of %s: %s", name, strerror(errno));
        whole_close(file);
        return PROFD_IO;
    }
    *fd = file;
    return PROFD_OK;
}
