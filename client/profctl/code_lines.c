#include "profctl/profctl.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_dwarf.h"
#include "proto/whole.h"

#define DW_AT_GNU_discriminator 0x2136u /* LLVM's, of inlined calls; elfutils has no name for it */

/* A range of a function's code. */
struct code_range {
    Dwarf_Addr low, high;
    Dwarf_Die function, unit;
};

struct code_lines {
    Dwarf *dwarf;
    int fd;
    struct code_range *ranges; /* ascending */
    size_t count, capacity;
    Dwarf_Die unit; /* the one that is being read */
    bool failed;    /* no memory */
    void *paths;    /* tree of struct code_path */
};

/* A path as libdw gives it, which is the one on the compiler's command line, and the whole path. */
struct code_path {
    const char *given; /* libdw's, which is one pointer for each file of a line table */
    char whole[];
};

static int compare_ranges(const void *left, const void *right)
{
    const struct code_range *a = left, *b = right;
    return (a->low > b->low) - (a->low < b->low);
}

static int add_function(Dwarf_Die *function, void *context)
{
    struct code_lines *l = context;
    Dwarf_Addr base, low, high;
    ptrdiff_t next = 0;
    while ((next = dwarf_ranges(function, next, &base, &low, &high)) > 0) {
        if (!LIST_GROW(l->ranges, l->count, l->capacity)) {
            l->failed = true;
            return DWARF_CB_ABORT;
        }
        l->ranges[l->count++] = (struct code_range){low, high, *function, l->unit};
    }
    return DWARF_CB_OK;
}

/* Reads the functions with code of a file; dwarf stays NULL if there are none. */
static void read_file(struct code_lines *l, const char *path)
{
    l->fd = open(path, O_RDONLY | O_CLOEXEC);
    l->dwarf = l->fd >= 0 ? dwarf_begin(l->fd, DWARF_C_READ) : NULL;
    if (l->dwarf) {
        Dwarf_CU *unit = NULL;
        while (!l->failed && dwarf_get_units(l->dwarf, unit, &unit, NULL, NULL, &l->unit, NULL) == 0) {
            (void)dwarf_getfuncs(&l->unit, add_function, l, 0);
        }
        if (l->count > 0) {
            qsort(l->ranges, l->count, sizeof *l->ranges, compare_ranges);
        }
    }
    if (l->count == 0) {
        (void)dwarf_end(l->dwarf);
        l->dwarf = NULL;
        whole_close(l->fd);
        l->fd = -1;
    }
}

enum profd_status code_lines_open(const char *path, const char *build_id, struct code_lines **out,
                                  struct profd_error *e)
{
    struct code_lines *l = calloc(1, sizeof *l);
    TRY(l ? PROFD_OK : profd_no_memory(e));
    read_file(l, path);
    if (!l->dwarf && !l->failed && strlen(build_id) > 2) {
        char debug[256];
        (void)snprintf(debug, sizeof debug, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
        read_file(l, debug);
    }
    const bool failed = l->failed;
    if (!l->dwarf || failed) {
        code_lines_close(l);
        l = NULL;
    }
    *out = l;
    return failed ? profd_no_memory(e) : PROFD_OK;
}

void code_lines_close(struct code_lines *l)
{
    if (l) {
        (void)dwarf_end(l->dwarf);
        whole_close(l->fd);
        free(l->ranges);
        tdestroy(l->paths, free);
        free(l);
    }
}

static const struct code_range *find_range(const struct code_lines *l, uint64_t address)
{
    uint32_t behind;
    SORT_SEARCH(behind, 0, (uint32_t)l->count, l->ranges[behind].low <= address);
    return behind > 0 && address < l->ranges[behind - 1].high ? &l->ranges[behind - 1] : NULL;
}

bool code_lines_range(const struct code_lines *l, uint64_t address, uint64_t *low, uint64_t *high, uint64_t *entry)
{
    const struct code_range *r = find_range(l, address);
    if (r) {
        Dwarf_Die function = r->function;
        Dwarf_Addr at = 0;
        *low = r->low;
        *high = r->high;
        *entry = dwarf_entrypc(&function, &at) == 0 ? at : 0;
    }
    return r != NULL;
}

static unsigned read_number(Dwarf_Die *die, unsigned attribute)
{
    Dwarf_Attribute a;
    Dwarf_Word value;
    return dwarf_attr_integrate(die, attribute, &a) && dwarf_formudata(&a, &value) == 0 && value <= UINT32_MAX
               ? (unsigned)value
               : 0;
}

static int compare_paths(const void *left, const void *right)
{
    const struct code_path *a = left, *b = right;
    return (a->given > b->given) - (a->given < b->given);
}

/* The path of a file: a relative one is below the compilation directory of its unit. It is not made shorter, because
 * debuginfod servers know files by this name. "" if unknown, and the given path without memory. O(log files). */
static const char *find_path(struct code_lines *l, Dwarf_Die *unit, const char *given)
{
    Dwarf_Attribute a;
    const char *folder = given && given[0] != '/' && dwarf_attr(unit, DW_AT_comp_dir, &a) ? elf_dwarf_text(&a) : NULL;
    if (!folder) {
        return given ? given : "";
    }
    const struct code_path wanted = {.given = given};
    struct code_path **found = tfind(&wanted, &l->paths, compare_paths);
    if (found) {
        return (*found)->whole;
    }
    const size_t size = strlen(folder) + strlen(given) + 2;
    struct code_path *path = malloc(sizeof *path + size);
    if (path) {
        path->given = given;
        (void)snprintf(path->whole, size, "%s/%s", folder, given);
    }
    if (!path || !tsearch(path, &l->paths, compare_paths)) {
        free(path);
        return given;
    }
    return path->whole;
}

/* The child of a block that holds the address: an inlined copy, or a block that may hold some. */
static bool find_inner(Dwarf_Die *block, uint64_t address, Dwarf_Die *out)
{
    for (int more = dwarf_child(block, out); more == 0; more = dwarf_siblingof(out, out)) {
        const int tag = dwarf_tag(out);
        if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
             tag == DW_TAG_catch_block) &&
            dwarf_haspc(out, address) == 1) {
            return true;
        }
    }
    return false;
}

size_t code_lines_find(struct code_lines *l, uint64_t address, struct code_frame frames[CODE_LINES_DEPTH])
{
    const struct code_range *r = find_range(l, address);
    Dwarf_Die chain[CODE_LINES_DEPTH], block, unit;
    size_t n = 0;
    if (!r) {
        return 0;
    }
    unit = r->unit;
    chain[n++] = block = r->function;
    for (Dwarf_Die inner; n < CODE_LINES_DEPTH && find_inner(&block, address, &inner); block = inner) {
        if (dwarf_tag(&inner) == DW_TAG_inlined_subroutine) {
            chain[n++] = inner;
        }
    }
    for (size_t i = 0; i < n; i++) {
        bool certain;
        const char *name = elf_dwarf_name(&chain[n - 1 - i], &certain);
        frames[i].function = name ? name : "";
        frames[i].first_line = read_number(&chain[n - 1 - i], DW_AT_decl_line);
        if (i == 0) {
            Dwarf_Line *line = dwarf_getsrc_die(&unit, address);
            const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
            int number = 0;
            unsigned discriminator = 0;
            frames[i].file = find_path(l, &unit, file);
            frames[i].line = line && dwarf_lineno(line, &number) == 0 && number > 0 ? (unsigned)number : 0;
            frames[i].discriminator = line && dwarf_linediscriminator(line, &discriminator) == 0 ? discriminator : 0;
        } else {
            /* Where the call stood that the inlined copy replaced. */
            Dwarf_Die *copy = &chain[n - i];
            Dwarf_Files *files = NULL;
            const unsigned number = read_number(copy, DW_AT_call_file);
            frames[i].file = find_path(
                l, &unit,
                dwarf_getsrcfiles(&unit, &files, NULL) == 0 ? dwarf_filesrc(files, number, NULL, NULL) : NULL);
            frames[i].line = read_number(copy, DW_AT_call_line);
            frames[i].discriminator = read_number(copy, DW_AT_GNU_discriminator);
        }
    }
    return n;
}

uint64_t code_lines_next(struct code_lines *l, uint64_t address, uint64_t high)
{
    const struct code_range *r = find_range(l, address);
    Dwarf_Die unit;
    Dwarf_Lines *lines = NULL;
    Dwarf_Addr at = high;
    size_t count = 0;
    uint32_t first;
    if (!r) {
        return high;
    }
    unit = r->unit;
    if (dwarf_getsrclines(&unit, &lines, &count) != 0) {
        return high;
    }
    SORT_SEARCH(first, 0, (uint32_t)count, dwarf_lineaddr(dwarf_onesrcline(lines, first), &at) == 0 && at < address);
    return first < count && dwarf_lineaddr(dwarf_onesrcline(lines, first), &at) == 0 && at < high ? at : high;
}
