#include "profctl/annotate_fetch.h"

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profctl/code_lines.h"
#include "profctl/profctl_debuginfod.h"
#include "profctl/profctl_find.h"
#include "profctl/profctl_pipe.h"

#define INFLATED_MOST (4 * (uint64_t)DEBUGINFOD_SIZE_MAX) /* bytes of compressed sections when they are read */
#define ZDEBUG_HEADER 12                                  /* "ZLIB" and the size, the highest byte first */

/* Bytes of a section with the flag SHF_COMPRESSED; 0 of others. */
static uint64_t section_inflated(Elf_Scn *section, const GElf_Shdr *header)
{
    GElf_Chdr compressed;
    return header->sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &compressed) ? compressed.ch_size : 0;
}

/* Bytes of a section in GNU's older form, known by its name; 0 of others. */
static uint64_t section_inflated_older(Elf *elf, size_t names, Elf_Scn *section, const GElf_Shdr *header)
{
    const char *name = elf_strptr(elf, names, header->sh_name);
    const Elf_Data *data = name && strncmp(name, ".zdebug", 7) == 0 ? elf_rawdata(section, NULL) : NULL;
    const uint8_t *bytes = data && data->d_size >= ZDEBUG_HEADER ? data->d_buf : NULL;
    uint64_t size = 0;
    for (size_t i = 4; bytes && memcmp(bytes, "ZLIB", 4) == 0 && i < ZDEBUG_HEADER; i++) {
        size = size << 8 | bytes[i];
    }
    return size;
}

/* Bytes of all compressed sections, of which any is read into memory by the tools that read lines. Names are read only
 * if the sections are small, because theirs may be compressed, too. */
static uint64_t file_inflated(const char *path)
{
    uint64_t sum = 0;
    size_t names;
    GElf_Shdr header;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)elf_version(EV_CURRENT);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    for (Elf_Scn *s = NULL; elf && sum <= INFLATED_MOST && (s = elf_nextscn(elf, s)) != NULL;) {
        const uint64_t size = gelf_getshdr(s, &header) ? section_inflated(s, &header) : 0;
        sum += size < INFLATED_MOST ? size : INFLATED_MOST + 1;
    }
    const bool named = elf && elf_getshdrstrndx(elf, &names) == 0;
    for (Elf_Scn *s = NULL; named && sum <= INFLATED_MOST && (s = elf_nextscn(elf, s)) != NULL;) {
        const uint64_t size = gelf_getshdr(s, &header) ? section_inflated_older(elf, names, s, &header) : 0;
        sum += size < INFLATED_MOST ? size : INFLATED_MOST + 1;
    }
    (void)elf_end(elf);
    if (fd >= 0) {
        close(fd);
    }
    return sum;
}

/* Is a downloaded ELF file what was asked for, and can it be read? */
static enum profd_status check_file(const struct annotate_fetch *f, const char *path, struct profd_error *e)
{
    if (!build_is_file(path, f->build_id)) {
        return profd_error_set(e, PROFD_WRONG_BUILD, "a debuginfod server sent another file than one of build %.12s",
                               f->build_id);
    }
    return file_inflated(path) <= INFLATED_MOST
               ? PROFD_OK
               : profd_error_set(e, PROFD_TOO_LARGE,
                                 "a debuginfod server sent a file of build %.12s of which the compressed sections have "
                                 "more than %" PRIu64 " MiB",
                                 f->build_id, INFLATED_MOST >> 20);
}

static enum profd_status fetch(const struct annotate_fetch *f, enum debuginfod_kind kind, const char *source,
                               char **path, struct profd_error *e)
{
    const struct debuginfod_file what = {
        .url = f->url, .build_id = f->build_id, .kind = kind, .source = source, .seconds = f->seconds};
    enum profd_status status = debuginfod_fetch(&what, path, e);
    if (status != PROFD_OK || kind == DEBUGINFOD_SOURCE) {
        return status;
    }
    status = check_file(f, *path, e);
    if (status != PROFD_OK) {
        (void)unlink(*path); /* or the cache would give it again */
        free(*path);
        *path = NULL;
    }
    return status;
}

enum profd_status annotate_fetch_executable(const struct annotate_fetch *f, char **path, struct profd_error *e)
{
    return fetch(f, DEBUGINFOD_EXECUTABLE, NULL, path, e);
}

static bool ignore(void *context, char *line)
{
    (void)context;
    (void)line;
    return true;
}

static enum profd_status join(const char *executable, const char *debug, char **path, struct profd_error *e)
{
    const char *folder = getenv("TMPDIR");
    char name[1024];
    (void)snprintf(name, sizeof name, "%.900s/profctl-XXXXXX", folder && folder[0] ? folder : "/tmp");
    const int fd = mkstemp(name);
    if (fd < 0) {
        return profd_error_set(e, PROFD_CANT_CREATE, "%s cannot be created", name);
    }
    close(fd);
    const char *words[] = {"eu-unstrip", "-o", name, executable, debug, NULL};
    enum profd_status status = pipe_read_lines(words, "elfutils", ignore, NULL, e);
    *path = status == PROFD_OK ? strdup(name) : NULL;
    if (!*path) {
        (void)unlink(name);
    }
    return status == PROFD_OK && !*path ? profd_no_memory(e) : status;
}

enum profd_status annotate_fetch_lines(const struct annotate_fetch *f, const char *executable, char **path,
                                       struct profd_error *e)
{
    struct code_lines *lines = NULL;
    struct profd_error why = {""};
    char *debug = NULL;
    *path = NULL;
    enum profd_status status = code_lines_open(executable, f->build_id, &lines, e);
    const bool has = lines != NULL;
    code_lines_close(lines);
    if (status != PROFD_OK || has) {
        return status;
    }
    status = fetch(f, DEBUGINFOD_DEBUG, NULL, &debug, &why);
    if (status == PROFD_NOT_FOUND) {
        profctl_complain("%s", why.sentence);
        return PROFD_OK;
    }
    status = status == PROFD_OK ? join(executable, debug, path, e) : profd_error_set(e, status, "%s", why.sentence);
    free(debug);
    return status;
}

static time_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

char *annotate_fetch_source(void *context, const char *name)
{
    struct annotate_fetch *f = context;
    char *path = NULL;
    struct profd_error why = {""};
    if (name[0] != '/' || f->silent) {
        return NULL;
    }
    f->sources_end = f->sources_end ? f->sources_end : now() + (time_t)f->seconds;
    struct annotate_fetch rest = *f;
    rest.seconds = f->sources_end > now() ? (unsigned)(f->sources_end - now()) : 0;
    enum profd_status status = rest.seconds > 0
                                   ? fetch(&rest, DEBUGINFOD_SOURCE, name, &path, &why)
                                   : profd_error_set(&why, PROFD_TIMEOUT,
                                                     "the sources of build %.12s did not arrive within %u s; --timeout "
                                                     "allows more",
                                                     f->build_id, f->seconds);
    f->silent = status != PROFD_OK && status != PROFD_NOT_FOUND;
    if (f->silent) {
        profctl_complain("%s", why.sentence);
    }
    return status == PROFD_OK ? path : NULL;
}
