#include "record/record_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "proto/whole.h"

#define NOTES_MAX 65536
#define NAME_MAX_SIZE 64
#define WHOLE_ID "profd kernel time v1" /* 20 bytes, as build-ids have; the same on every host */

/* Code of the kernel: itself, or a module. */
struct part {
    char name[NAME_MAX_SIZE]; /* "" for the kernel itself */
    uint64_t low, high;
    uint32_t build; /* IMAGE_NONE: it has no build-id */
};

struct kernel {
    struct part *parts; /* the first is the kernel itself */
    uint32_t count;
    size_t capacity;
};

struct symbol {
    struct synthetic_symbol at; /* the address is that of the running kernel; size is not known yet */
    char module[NAME_MAX_SIZE];
};

struct kernel_symbols {
    struct arena *arena;
    struct symbol *list;
    uint32_t count, capacity;
    uint64_t text, end; /* _text, _etext */
};

static const struct kernel_files usual = {"/sys/kernel/notes", "/proc/kallsyms", "/proc/modules", "/sys/module"};

/* Finds the build-id among the notes of a file. Returns false if there is none. */
static bool notes_read(const char *path, struct buildid *id)
{
    uint8_t bytes[NOTES_MAX];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    whole_close(fd);
    for (size_t at = 0; n > 0 && at + sizeof(Elf64_Nhdr) <= (size_t)n;) {
        Elf64_Nhdr note;
        memcpy(&note, bytes + at, sizeof note);
        const size_t name = at + sizeof note, value = name + (((size_t)note.n_namesz + 3) & ~(size_t)3);
        at = value + (((size_t)note.n_descsz + 3) & ~(size_t)3);
        if (at > (size_t)n) {
            return false;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(bytes + name, "GNU", 4) == 0) {
            return buildid_from_note(bytes + value, note.n_descsz, id, NULL) == PROFD_OK;
        }
    }
    return false;
}

/* Reads kallsyms: lines "address type name", with "\t[module]" for a module. */
static enum profd_status symbols_read(const char *path, struct kernel_symbols *s, struct profd_error *e)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    FAIL_IF(!f, e, PROFD_NO_INPUT, "cannot read %s: %s", path, strerror(errno));
    while (good && getline(&line, &size, f) > 0) {
        const char *at = line;
        uint64_t address;
        char type[2], name[512], module[NAME_MAX_SIZE + 2] = "";
        if (!scan_number(&at, 16, &address) || !scan_word(&at, type, sizeof type) ||
            !scan_word(&at, name, sizeof name)) {
            continue;
        }
        const bool own = !scan_word(&at, module, sizeof module); /* "[ext4]" of a module */
        if (own && strcmp(name, "_text") == 0) {
            s->text = address;
        } else if (own && strcmp(name, "_etext") == 0) {
            s->end = address;
        }
        if (!strchr("tTwW", type[0])) {
            continue;
        }
        const char *copy = arena_copy(s->arena, name, strlen(name));
        good = copy && ARENA_EXTEND(s->arena, s->list, s->count, s->capacity);
        if (!good) {
            break;
        }
        s->list[s->count].at = (struct synthetic_symbol){.address = address, .name = copy};
        if (!own) {
            module[strcspn(module, "]")] = '\0';
            (void)snprintf(s->list[s->count].module, NAME_MAX_SIZE, "%.*s", NAME_MAX_SIZE - 1, module + 1);
        }
        s->count++;
    }
    free(line);
    (void)fclose(f);
    TRY(good ? PROFD_OK : profd_no_memory(e));
    FAIL_IF(s->text == 0, e, PROFD_FORBIDDEN,
            "%s hides the addresses of the kernel from this user: run it as root, give it the "
            "capability CAP_SYSLOG, or leave out --kernel",
            path);
    return s->text < s->end ? PROFD_OK : profd_error_set(e, PROFD_MALFORMED, "%s has no _text and _etext", path);
}

static int compare_symbols(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    return (x->at.address > y->at.address) - (x->at.address < y->at.address);
}

static bool part_add(struct kernel *k, const char *name, uint64_t low, uint64_t high)
{
    if (!LIST_GROW(k->parts, k->count, k->capacity)) {
        return false;
    }
    struct part *p = &k->parts[k->count++];
    *p = (struct part){.low = low, .high = high, .build = IMAGE_NONE};
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    return true;
}

/* Reads /proc/modules: lines "name size users names state address". */
static bool modules_read(const char *path, struct kernel *k)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    bool good = true;
    while (f && good && getline(&line, &size, f) > 0) {
        char name[NAME_MAX_SIZE], other[NAME_MAX_SIZE * 16];
        const char *at = line;
        uint64_t bytes, address;
        if (scan_word(&at, name, sizeof name) && scan_number(&at, 10, &bytes) && scan_word(&at, other, sizeof other) &&
            scan_word(&at, other, sizeof other) && scan_word(&at, other, sizeof other) &&
            scan_number(&at, 16, &address) && address != 0) {
            good = part_add(k, name, address, address + bytes);
        }
    }
    free(line);
    if (f) {
        (void)fclose(f);
    }
    return good;
}

/* Adds the build of a part, with its symbols. Addresses are relative to the part; a symbol extends to the next one. */
static enum profd_status part_add_build(struct images *images, struct part *p, const struct buildid *id,
                                        const struct kernel_symbols *s, struct profd_error *e)
{
    struct synthetic_symbol *own = calloc((size_t)s->count + 1, sizeof *own);
    uint32_t n = 0;
    char name[NAME_MAX_SIZE + 2];
    int fd;
    TRY(own ? PROFD_OK : profd_no_memory(e));
    for (uint32_t i = 0; i < s->count; i++) {
        const struct symbol *symbol = &s->list[i];
        if (symbol->at.address < p->low || symbol->at.address >= p->high || strcmp(symbol->module, p->name) != 0) {
            continue;
        }
        own[n] = symbol->at;
        own[n++].address -= p->low;
    }
    uint64_t end = p->high - p->low;
    for (uint32_t i = n; i-- > 0;) { /* symbols of one address have the same size */
        own[i].size = i + 1 < n && own[i + 1].address == own[i].address ? own[i + 1].size : end - own[i].address;
        end = own[i].address;
    }
    (void)snprintf(name, sizeof name, "[%s]", p->name[0] ? p->name : "kernel");
    enum profd_status status = synthetic_make(name, id, p->high - p->low, own, n, &fd, e);
    if (status == PROFD_OK) {
        p->build = images_add_build(images, id, name, fd, 0, p->high - p->low);
    }
    free(own);
    return status;
}

enum profd_status kernel_open(const struct kernel_files *files, struct images *images, struct kernel **out,
                              struct profd_error *e)
{
    struct kernel *k = calloc(1, sizeof *k);
    struct kernel_symbols s = {.arena = arena_new(0)};
    struct buildid id;
    enum profd_status status = k && s.arena ? PROFD_OK : profd_no_memory(e);
    files = files ? files : &usual;
    status = status ? status : symbols_read(files->symbols, &s, e);
    if (status == PROFD_OK && (!part_add(k, "", s.text, s.end) || !modules_read(files->modules, k))) {
        status = profd_no_memory(e);
    }
    if (status == PROFD_OK) {
        qsort(s.list, s.count, sizeof *s.list, compare_symbols);
        status = notes_read(files->notes, &id)
                     ? part_add_build(images, &k->parts[0], &id, &s, e)
                     : profd_error_set(e, PROFD_NO_INPUT, "the kernel has no build-id in %s", files->notes);
    }
    for (uint32_t i = 1; status == PROFD_OK && i < k->count; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s/notes/.note.gnu.build-id", files->sections, k->parts[i].name);
        if (notes_read(path, &id)) {
            status = part_add_build(images, &k->parts[i], &id, &s, e);
        }
    }
    arena_free(s.arena);
    if (status != PROFD_OK) {
        kernel_close(k);
        return status;
    }
    *out = k;
    return PROFD_OK;
}

enum profd_status kernel_make_whole(struct images *images, struct kernel **out, struct profd_error *e)
{
    static const char name[] = "[kernel]";
    const struct synthetic_symbol all = {.address = 0, .size = 1, .name = name};
    struct kernel *k = calloc(1, sizeof *k);
    struct buildid id;
    int fd;
    if (!k || !part_add(k, "", 0, 1)) {
        kernel_close(k);
        return profd_no_memory(e);
    }
    enum profd_status status = buildid_from_note((const uint8_t *)WHOLE_ID, strlen(WHOLE_ID), &id, e);
    status = status ? status : synthetic_make(name, &id, 1, &all, 1, &fd, e);
    if (status == PROFD_OK) {
        k->parts[0].build = images_add_build(images, &id, name, fd, 0, 1);
        status = k->parts[0].build == IMAGE_NONE ? profd_no_memory(e) : PROFD_OK;
    }
    if (status != PROFD_OK) {
        kernel_close(k);
        return status;
    }
    *out = k;
    return PROFD_OK;
}

void kernel_close(struct kernel *k)
{
    if (k) {
        free(k->parts);
        free(k);
    }
}

uint32_t kernel_get_build(const struct kernel *k)
{
    return k->parts[0].build;
}

bool kernel_has_build(const struct kernel *k, uint32_t build)
{
    for (uint32_t i = 0; i < k->count; i++) {
        if (k->parts[i].build == build) {
            return true;
        }
    }
    return false;
}

void kernel_find_frame(const struct kernel *k, uint64_t address, struct counts_frame *out)
{
    *out = (struct counts_frame){.build = COUNTS_NOWHERE, .address = COUNTS_FRAME_OUTSIDE};
    for (uint32_t i = 0; i < k->count; i++) {
        const struct part *p = &k->parts[i];
        if (address >= p->low && address < p->high && p->build != IMAGE_NONE) {
            out->build = p->build;
            out->address = address - p->low;
            return;
        }
    }
}
