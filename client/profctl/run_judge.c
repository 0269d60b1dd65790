#include "profctl/run_judge.h"

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <linux/xattr.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "proto/attach.h"

#define DESCRIPTORS_WANTED 2 /* by the collector: its memory and its socket */
#define INTERPRETER_SIZE 256

/* An ELF file that is open; elf is NULL if it is none. */
struct program {
    int fd;
    Elf *elf;
    GElf_Ehdr header;
};

static void program_open(struct program *p, const char *path)
{
    p->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    p->elf = p->fd >= 0 && elf_version(EV_CURRENT) != EV_NONE ? elf_begin(p->fd, ELF_C_READ, NULL) : NULL;
    if (p->elf && (elf_kind(p->elf) != ELF_K_ELF || gelf_getehdr(p->elf, &p->header) == NULL)) {
        (void)elf_end(p->elf);
        p->elf = NULL;
    }
}

static void program_close(struct program *p)
{
    (void)elf_end(p->elf);
    if (p->fd >= 0) {
        close(p->fd);
    }
}

/* The program's interpreter; "" for a static program. A longer path is cut. */
static void read_interpreter(const struct program *p, char path[INTERPRETER_SIZE])
{
    GElf_Phdr header;
    size_t count = 0;
    path[0] = '\0';
    (void)elf_getphdrnum(p->elf, &count);
    for (size_t i = 0; i < count && gelf_getphdr(p->elf, (int)i, &header) != NULL; i++) {
        if (header.p_type == PT_INTERP && header.p_offset <= INT64_MAX) {
            size_t n = header.p_filesz < INTERPRETER_SIZE ? header.p_filesz : INTERPRETER_SIZE - 1;
            path[pread(p->fd, path, n, (off_t)header.p_offset) == (ssize_t)n ? n : 0] = '\0';
            return;
        }
    }
}

static bool has_section(const struct program *p, const char *wanted)
{
    GElf_Shdr header;
    size_t names = 0;
    if (elf_getshdrstrndx(p->elf, &names) != 0) {
        return false;
    }
    for (Elf_Scn *s = NULL; (s = elf_nextscn(p->elf, s)) != NULL;) {
        const char *name = gelf_getshdr(s, &header) ? elf_strptr(p->elf, names, header.sh_name) : NULL;
        if (name && strcmp(name, wanted) == 0) {
            return true;
        }
    }
    return false;
}

/* By what libraries it was linked with: glibc's start-up code has the section .note.ABI-tag, stripped or not. */
static const char *judge_libraries(const struct program *p)
{
    char interpreter[INTERPRETER_SIZE];
    size_t sections = 0;
    read_interpreter(p, interpreter);
    if (strstr(interpreter, "/ld-musl-") != NULL) {
        return "it is linked with musl, but the collector requires glibc; link it with glibc";
    }
    if (interpreter[0] != '\0' ||
        has_section(p, "profd_collect_text")) { /* the collector's code, where it is linked in */
        return NULL;
    }
    if (has_section(p, ".go.buildinfo")) {
        return "it is a static Go program; let it write a profile with runtime/pprof, which profctl upload takes";
    }
    if (elf_getshdrnum(p->elf, &sections) == 0 && sections > 0 && !has_section(p, ".note.ABI-tag")) {
        return "it is static and without glibc (musl?), which the collector requires; link it with glibc";
    }
    return "it is static; link it with libprofd-collect.a";
}

const char *run_judge_program(const char *path)
{
    struct program own, p;
    struct stat st;
    const char *why = NULL;
    program_open(&own, "/proc/self/exe");
    program_open(&p, path);
    if (p.fd < 0 || fstat(p.fd, &st) != 0 || !S_ISREG(st.st_mode) || !own.elf || !p.elf) {
        why = NULL; /* not for us to say: a script, or what cannot be run */
    } else if (p.header.e_machine != own.header.e_machine || gelf_getclass(p.elf) != gelf_getclass(own.elf)) {
        why = "it is for another machine architecture";
    } else if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) || (st.st_mode & S_ISGID && st.st_gid != getegid())) {
        why = "it changes its user or group (set-user-id, set-group-id)";
    } else if (geteuid() != 0 && fgetxattr(p.fd, XATTR_NAME_CAPS, NULL, 0) > 0) {
        why = "it has file capabilities";
    } else {
        why = judge_libraries(&p);
    }
    program_close(&own);
    program_close(&p);
    return why;
}

/* Below limit, as a command will find them: close-on-exec ones are free by then. Counts no further than is of interest.
 */
static int count_free_descriptors(rlim_t limit)
{
    int count = 0;
    for (int fd = 0; (rlim_t)fd < limit && count < DESCRIPTORS_WANTED; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags < 0 || (flags & FD_CLOEXEC) != 0;
    }
    return count;
}

bool run_judge_limits(char *out, size_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < ATTACH_SIZE_MIN) {
        (void)snprintf(out, size, "its files are limited to %" PRIuMAX " bytes (ulimit -f); the collector requires %u",
                       (uintmax_t)limit.rlim_cur, ATTACH_SIZE_MIN);
        return true;
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && count_free_descriptors(limit.rlim_cur) < DESCRIPTORS_WANTED) {
        (void)snprintf(out, size,
                       "it is limited to %" PRIuMAX " descriptors (ulimit -n); the collector requires %d free ones",
                       (uintmax_t)limit.rlim_cur, DESCRIPTORS_WANTED);
        return true;
    }
    return false;
}
