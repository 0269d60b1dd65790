#include "client/run_judge.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADERS_MAX 64u /* program headers looked at */
#define SECTIONS_MAX 4096u
#define OWN_SECTION "profd_collect_text" /* the collector's code, where it is linked in */

static bool bytes_read(int fd, void *to, size_t n, uint64_t at)
{
    return at <= INT64_MAX && pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

/* True if the loader is asked for: a program without it is static. */
static bool has_interpreter(int fd, const Elf64_Ehdr *h)
{
    Elf64_Phdr p;
    for (uint32_t i = 0; i < h->e_phnum && i < HEADERS_MAX; i++) {
        if (bytes_read(fd, &p, sizeof p, h->e_phoff + (uint64_t)i * sizeof p) && p.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

static bool has_collector(int fd, const Elf64_Ehdr *h)
{
    Elf64_Shdr names, s;
    char name[sizeof OWN_SECTION];
    if (h->e_shentsize != sizeof s ||
        !bytes_read(fd, &names, sizeof names, h->e_shoff + (uint64_t)h->e_shstrndx * sizeof s)) {
        return false;
    }
    for (uint32_t i = 0; i < h->e_shnum && i < SECTIONS_MAX; i++) {
        if (bytes_read(fd, &s, sizeof s, h->e_shoff + (uint64_t)i * sizeof s) &&
            bytes_read(fd, name, sizeof name, names.sh_offset + s.sh_name) &&
            memcmp(name, OWN_SECTION, sizeof name) == 0) {
            return true;
        }
    }
    return false;
}

const char *run_judge_program(const char *path)
{
    Elf64_Ehdr own, h;
    struct stat st;
    const char *why = NULL;
    int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool whole = self >= 0 && fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                 bytes_read(self, &own, sizeof own, 0) && bytes_read(fd, &h, sizeof h, 0) &&
                 memcmp(h.e_ident, ELFMAG, SELFMAG) == 0;
    if (whole && (h.e_machine != own.e_machine || h.e_ident[EI_CLASS] != own.e_ident[EI_CLASS])) {
        why = "it is a program for another kind of machine";
    } else if (whole &&
               ((st.st_mode & S_ISUID && st.st_uid != geteuid()) || (st.st_mode & S_ISGID && st.st_gid != getegid()))) {
        why = "it changes its user or group (set-user-id, set-group-id)";
    } else if (whole && !has_interpreter(fd, &h) && !has_collector(fd, &h)) {
        why = "it is static; link it with libprofd-collect.a";
    }
    if (self >= 0) {
        close(self);
    }
    if (fd >= 0) {
        close(fd);
    }
    return why;
}
