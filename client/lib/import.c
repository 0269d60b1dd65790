/* A gmon.out becomes an upload. */
#include <elf.h>
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/bounds.h"
#include "lib/executable.h"
#include "lib/profd_upload.h"
#include "proto/gmon.h"
#include "proto/limits.h"
#include "proto/whole.h"
#include "core/symtab.h"
#include "core/row_table.h"

/* ---- Whether a gmon.out can be of an executable, beyond where its addresses lie (core/bounds.h) ---- */

#define BEFORE 8 /* bytes before a return address that are read */

struct gmon_check {
    const struct profd_executable *executable;
    const struct object *object;
    struct arena *arena;
    struct elf_gmon gmon;
    struct elf_load *loads;
    uint32_t load_count;
    uint64_t *starts; /* of functions, ascending; NULL until they are needed */
    size_t start_count;
    uint64_t counter;          /* an address of mcount or of a slot that leads to it; 0: none was found */
    uint64_t *callees;         /* that were looked at, and can be */
    struct table callee_table; /* of their addresses */
};

/* WRONG_BUILD unless the executable is linked with -pg and, if it is stripped, each histogram spans what glibc's gmon
 * writes for it; both as far as its symbols and sections tell. O(histograms × sections). */
static enum profd_status gmon_check_executable(const struct gmon_check *k, const struct counts *c,
                                               struct profd_error *e)
{
    const struct elf_gmon *g = &k->gmon;
    const char *id = profd_executable_build_id(k->executable), *path = profd_executable_path(k->executable);
    FAIL_IF(g->knows && !g->linked, e, PROFD_WRONG_BUILD,
            "build %s (\"%s\") is not linked with -pg, so it writes no gmon.out: not the executable "
            "that was profiled",
            id, path);
    for (uint32_t i = 0; g->stripped && g->end_count > 0 && i < c->histogram_count; i++) {
        const struct counts_histogram *h = &c->histograms[i];
        bool ends = false;
        for (uint32_t n = 0; n < g->end_count; n++) {
            ends |= h->high == ((g->ends[n] + 3) & ~UINT64_C(3));
        }
        FAIL_IF(!ends || h->low != (g->low & ~UINT64_C(3)), e, PROFD_WRONG_BUILD,
                "the histogram spans 0x%" PRIx64 "-0x%" PRIx64 ", but build %s (\"%s\") begins at 0x%" PRIx64
                " and has code that ends elsewhere: not the executable that was profiled",
                c->histograms[i].low, c->histograms[i].high, id, path, g->low);
    }
    return PROFD_OK;
}

/* True unless the executable says that the code there is something other than a counter. */
static bool may_count(struct gmon_check *k, uint64_t address)
{
    const struct object *o = k->object;
    bool other = false;
    if (address == k->counter) {
        return true;
    }
    for (uint32_t i = 0; i < o->plt_count; i++) {
        if (address - o->plt[i].address < o->plt[i].size) {
            other = !elf_gmon_counts(object_name(o, o->plt[i].import));
            k->counter = other ? k->counter : address;
            return !other;
        }
    }
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        if (s->address == address && symtab_is_function(o, s)) {
            if (elf_gmon_counts(object_name(o, s->name))) {
                k->counter = address;
                return true;
            }
            other = true;
        }
    }
    return !other;
}

static bool is_behind_x86(struct gmon_check *k, uint64_t address, const uint8_t *before)
{
    static const unsigned indirect[] = {2, 3, 6, 7}; /* sizes of call *… */
    if (before[BEFORE - 5] == 0xe8) {
        int32_t distance;
        memcpy(&distance, &before[BEFORE - 4], sizeof distance);
        const uint64_t to = address + (uint64_t)(int64_t)distance;
        if (may_count(k, k->object->bits == 32 ? (uint32_t)to : to)) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof indirect / sizeof *indirect; i++) {
        const uint8_t *at = &before[BEFORE - indirect[i]];
        if (at[0] == 0xff && (at[1] & 0x38) == 0x10) {
            return true;
        }
    }
    return false;
}

static bool is_behind_aarch64(struct gmon_check *k, uint64_t address, const uint8_t *before)
{
    const uint8_t *at = &before[BEFORE - 4];
    const uint32_t code = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    if ((code & 0xfffffc1f) == 0xd63f0000) { /* blr */
        return true;
    }
    const int64_t distance = (int32_t)(code << 6) >> 6; /* of bl, in instructions */
    return code >> 26 == 0x25 && may_count(k, address - 4 + (uint64_t)distance * 4);
}

/* True if the instruction before the address may call a counter. */
static bool is_behind_call(struct gmon_check *k, uint64_t address)
{
    uint8_t before[BEFORE] = {0};
    for (uint32_t i = 0; i < k->load_count; i++) {
        const struct elf_load *l = &k->loads[i];
        if (address >= l->address + BEFORE && address - l->address <= l->size) {
            const uint64_t at = l->offset + (address - l->address) - BEFORE;
            if (at > INT64_MAX || pread(k->executable->fd, before, BEFORE, (off_t)at) != BEFORE) {
                return false;
            }
            return k->object->machine == EM_AARCH64 ? is_behind_aarch64(k, address, before)
                                                    : is_behind_x86(k, address, before);
        }
    }
    return false;
}

static int compare_addresses(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static enum profd_status check_callee(struct gmon_check *k, uint64_t address, struct profd_error *e)
{
    const uint32_t before = k->callee_table.used;
    uint32_t at;
    FAIL_IF(!TABLE_TAKE_NUMBER(&k->callee_table, k->arena, k->callees, address, &at), e, PROFD_NO_MEMORY,
            "no memory for the callees of a gmon.out");
    if (at < before) {
        return PROFD_OK;
    }
    if (!is_behind_call(k, address)) {
        const struct object *o = k->object;
        if (k->starts == NULL) {
            k->starts = ARENA_ARRAY(k->arena, (size_t)o->symbol_count + 1, uint64_t);
            FAIL_IF(k->starts == NULL, e, PROFD_NO_MEMORY, "no memory for %u addresses of functions", o->symbol_count);
            for (uint32_t i = 0; i < o->symbol_count; i++) {
                if (symtab_is_function(o, &o->symbols[i])) {
                    k->starts[k->start_count++] = o->symbols[i].address;
                }
            }
            qsort(k->starts, k->start_count, sizeof *k->starts, compare_addresses);
        }
        FAIL_IF(bsearch(&address, k->starts, k->start_count, sizeof *k->starts, compare_addresses) == NULL, e,
                PROFD_WRONG_BUILD,
                "the callee of an arc at 0x%" PRIx64
                " is neither the start of a function nor behind a call of mcount in build %s (\"%s\"): not "
                "the executable that was profiled",
                address, profd_executable_build_id(k->executable), profd_executable_path(k->executable));
    }
    return PROFD_OK;
}

/* WRONG_BUILD unless each callee that is code of the executable is the start of a function or the address behind a call
 * of mcount or __fentry__, which is what glibc records. Only on x86 and AArch64, and only if the functions are known.
 * Two builds for which all of that is the same cannot be told apart. An address is looked at once, with whichever file
 * has it first: O(arcs), and O(symbols) for each new address that is not behind a call of the usual counter. */
static enum profd_status gmon_check_callees(struct gmon_check *k, const struct counts *c, struct profd_error *e)
{
    const uint16_t machine = k->object->machine;
    enum profd_status status = PROFD_OK;
    if (!k->object->has_names || k->object->only_dynamic ||
        (machine != EM_X86_64 && machine != EM_386 && machine != EM_AARCH64)) {
        return PROFD_OK;
    }
    for (uint32_t i = 0; status == PROFD_OK && i < c->arc_count; i++) {
        if (c->to_build[i] != COUNTS_NOWHERE && object_holds(k->object, c->to[i])) {
            status = check_callee(k, c->to[i], e);
        }
    }
    return status;
}

/* The facts about an executable that checks of its gmon.out files need: made with the first file, and kept with x for
 * the next ones. The caller does not free them. O(symbols + sections). */
static enum profd_status gmon_check_get(const struct profd_executable *x, struct gmon_check **out,
                                        struct profd_error *e)
{
    if (*x->gmon_check == NULL) {
        struct gmon_check *k = ARENA_NEW(x->arena, struct gmon_check);
        TRY(k != NULL ? executable_read_gmon(x, x->arena, &k->gmon, e) : profd_no_memory(e));
        TRY(executable_read_loads(x, x->arena, &k->loads, &k->load_count, e));
        k->executable = x;
        k->object = x->object;
        k->arena = x->arena;
        /* The first function or slot of a counter, which nearly every call of one leads to. */
        const struct object *o = k->object;
        for (uint32_t i = 0; i < o->plt_count && k->counter == 0; i++) {
            k->counter = elf_gmon_counts(object_name(o, o->plt[i].import)) ? o->plt[i].address : 0;
        }
        for (uint32_t i = 0; i < o->symbol_count && k->counter == 0; i++) {
            k->counter = elf_gmon_counts(object_name(o, o->symbols[i].name)) ? o->symbols[i].address : 0;
        }
        *x->gmon_check = k;
    }
    *out = *x->gmon_check;
    return PROFD_OK;
}

/* ---- The upload ---- */

/* A callee outside of the executable, in a file that is proven to be of it, is a function of a shared library built
 * with -pg. glibc has subtracted the wrong load address, so the address means nothing: the callee is nowhere. */
static enum profd_status counts_check(const struct profd_executable *x, struct counts *c, struct profd_error *e)
{
    struct bounds bounds = {.count = 0};
    struct bounds_build build = {
        .bounds = &bounds, .id = profd_executable_build_id(x), .name = profd_executable_path(x)};
    const uint8_t *bytes = NULL;
    size_t size = 0;
    struct gmon_check *k = NULL;
    struct arena *a = arena_new(0);
    enum profd_status status = a ? bounds_encode(x->object, a, &bytes, &size, e)
                                 : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the ranges of an executable");
    status = status ? status : gmon_check_get(x, &k, e);
    status = status ? status : gmon_check_executable(k, c, e);
    if (status == PROFD_OK) {
        (void)bounds_open(bytes, size, &bounds); /* they were encoded here */
        status = bounds_check_counts(&build, 0, true, c, e);
    }
    status = status ? status : gmon_check_callees(k, c, e);
    for (uint32_t i = 0; status == PROFD_OK && i < c->arc_count; i++) {
        if (!bounds_touch(&bounds, c->to[i], c->to[i] + 1)) {
            c->to_build[i] = COUNTS_NOWHERE;
            c->to[i] = 0;
        }
    }
    arena_free(a);
    return status;
}

/* Reads the whole file into a new block. *end becomes the file's modification time. */
static enum profd_status gmon_read(const char *path, uint8_t **out, size_t *size, uint64_t *end, struct profd_error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0) {
        int why = errno;
        whole_close(fd);
        return profd_error_set(e, PROFD_NO_INPUT, "cannot open: %s", strerror(why));
    }
    enum profd_status status = PROFD_OK;
    uint8_t *bytes = NULL;
    size_t total = 0;
    ssize_t got = 0;
    if (!S_ISREG(s.st_mode)) {
        status = profd_error_set(e, PROFD_REFUSED, "not a regular file");
    } else if ((unsigned long long)s.st_size > LIMIT_COUNTS_RAW) {
        status = profd_error_set(e, PROFD_TOO_LARGE, "%lld bytes; the limit for a gmon.out is %u", (long long)s.st_size,
                                 LIMIT_COUNTS_RAW);
    } else {
        total = (size_t)s.st_size;
        bytes = malloc(total + 1);
        if (!bytes) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu bytes", total);
        }
    }
    if (status == PROFD_OK && (got = whole_read(fd, bytes, total, 0)) < 0) { /* if it shrank, the parser says where */
        status = profd_error_set(e, PROFD_IO, "cannot read: %s", strerror(errno));
    }
    close(fd);
    if (status != PROFD_OK) {
        free(bytes);
        return status;
    }
    *out = bytes;
    *size = (size_t)got;
    *end = s.st_mtim.tv_sec > 0 ? (uint64_t)s.st_mtim.tv_sec * 1000000000u + (uint64_t)s.st_mtim.tv_nsec : 0;
    return PROFD_OK;
}

enum profd_status profd_executable_import(const struct profd_executable *x, const char *gmon_path,
                                          struct profd_upload **out, struct profd_error *e)
{
    const struct object *o = x->object;
    const struct gmon_format format = {.big_endian = o->big_endian, .pointer_size = o->bits / 8u};
    uint8_t *bytes = NULL;
    size_t size = 0;
    uint64_t end = 0;
    struct counts c = {0};
    enum profd_status status = gmon_read(gmon_path, &bytes, &size, &end, e);
    status = status ? status : gmon_parse(bytes, size, &format, &c, e);
    status = status ? status : counts_check(x, &c, e);
    struct profd_upload *u = NULL;
    status = status ? status : profd_upload_new(&u, e);
    status =
        status ? status : profd_upload_add_build(u, profd_executable_build_id(x), profd_executable_path(x), NULL, e);
    status = status ? status : upload_add_counts(u, &c, e);
    if (status == PROFD_OK) {
        profd_upload_set_inexact(u, PROFD_INEXACT_THREADS_UNKNOWN | PROFD_INEXACT_CALLER_BUCKET |
                                        PROFD_INEXACT_BINS_16_BIT);
        profd_upload_set_window(u, 0, end);
        *out = u;
    } else {
        profd_upload_free(u);
    }
    counts_done(&c);
    free(bytes);
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "%s", gmon_path);
}
