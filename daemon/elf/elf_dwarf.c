#include "elf/elf_dwarf.h"

#include <dwarf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/sort.h"
#include "elf/elf_internal.h"
#include "proto/limits.h"

static void (*at_no_memory)(void);

static __attribute__((noreturn)) void no_memory(void)
{
    at_no_memory();
    abort();
}

void elf_dwarf_set_no_memory(void (*act)(void))
{
    at_no_memory = act;
}

/* .zdebug_line is the older name of a compressed .debug_line. */
static bool is_called(const char *section, const char *name)
{
    return section[0] == '.' && strcmp(section + (section[1] == 'z' ? 2 : 1), name + 1) == 0;
}

static bool has_section(const struct elf_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->section_count; i++) {
        if (f->sections[i].sh_type == SHT_PROGBITS && is_called(elf_file_section_name(f, &f->sections[i]), name)) {
            return true;
        }
    }
    return false;
}

static bool has_dwarf(const struct elf_file *f)
{
    return has_section(f, ".debug_line") || has_section(f, ".debug_info");
}

static Elf_Data *find_section(Elf *elf, const char *name)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0) {
        return NULL;
    }
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        const char *found = gelf_getshdr(section, &header) == NULL ? NULL : elf_strptr(elf, names, header.sh_name);
        if (found != NULL && is_called(found, name)) {
            return elf_rawdata(section, NULL);
        }
    }
    return NULL;
}

/* Adds up the sections of DWARF. Returns what is wrong with them, or NULL. libdw ignores compressed sections that
 * cannot be decompressed, so they are found here. */
static const char *measure(struct elf_dwarf *d)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(d->elf, section)) != NULL;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL || header.sh_type != SHT_PROGBITS || header.sh_flags & SHF_ALLOC) {
            continue;
        }
        const Elf_Data *data = elf_rawdata(section, NULL);
        if (header.sh_flags & SHF_COMPRESSED ||
            (data != NULL && data->d_size > 4 && memcmp(data->d_buf, "ZLIB", 4) == 0)) {
            return "a compressed section is damaged, or too large for the memory";
        }
        d->bytes += header.sh_size;
    }
    static const char *const texts[] = {".debug_str", ".debug_line_str"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const Elf_Data *data = find_section(d->elf, texts[i]);
        if (data != NULL && data->d_size > 0 && ((const char *)data->d_buf)[data->d_size - 1] != '\0') {
            return "its last text has no end";
        }
    }
    return NULL;
}

void elf_dwarf_open(struct elf_dwarf *d, struct elf_build *b, const struct elf_file *f, const struct elf_file *debug)
{
    const struct elf_file *from = has_dwarf(f) ? f : debug;
    *d = (struct elf_dwarf){.elf = NULL};
    if (from == NULL || !has_dwarf(from)) {
        return;
    }
    /* A handle of its own: its sections, which are large, are freed with it. */
    errno = 0;
    d->elf = elf_begin(from->fd, ELF_C_READ, NULL);
    d->dwarf = d->elf == NULL ? NULL : dwarf_begin_elf(d->elf, DWARF_C_READ, NULL);
    const char *wrong = d->dwarf != NULL ? measure(d) : errno == ENOMEM ? "out of memory" : dwarf_errmsg(-1);
    if (wrong != NULL) {
        elf_build_note(
            b, "Source lines and inlined functions are not known: the debug information cannot be read (%s).", wrong);
        elf_dwarf_close(d);
        *d = (struct elf_dwarf){.elf = NULL};
    } else if (at_no_memory != NULL) {
        dwarf_new_oom_handler(d->dwarf, no_memory);
    }
}

void elf_dwarf_close(struct elf_dwarf *d)
{
    dwarf_end(d->dwarf);
    elf_end(d->elf);
}

Elf_Data *elf_dwarf_section(const struct elf_dwarf *d, const char *name)
{
    return find_section(d->elf, name);
}

const char *elf_dwarf_text(Dwarf_Attribute *a)
{
    const char *text = dwarf_formstring(a);
    const unsigned form = dwarf_whatform(a);
    const bool inside = form == DW_FORM_string, elsewhere = form == DW_FORM_GNU_strp_alt || form == DW_FORM_strp_sup;
    if (text == NULL || (!inside && !elsewhere)) {
        return text;
    }
    /* libdw does not test that texts end. Those in sections of texts were tested when the file was opened. */
    static const char *const names[] = {".debug_info", ".debug_types", ".debug_str"};
    Dwarf *dwarf = dwarf_cu_getdwarf(a->cu);
    Elf *elf = dwarf_getelf(elsewhere ? dwarf_getalt(dwarf) : dwarf);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const Elf_Data *data = find_section(elf, names[i]);
        const char *start = data == NULL ? NULL : data->d_buf;
        if (start != NULL && text >= start && text < start + data->d_size) {
            return memchr(text, '\0', (size_t)(start + data->d_size - text)) == NULL ? NULL : text;
        }
    }
    return NULL;
}

/* Moves to the next unit with entries. Type units have no code. */
static bool next_unit(struct elf_entries *w)
{
    Dwarf_Half version;
    uint8_t type;
    int found;
    while ((found = dwarf_get_units(w->dwarf, w->unit, &w->unit, &version, &type, &w->entry, NULL)) == 0) {
        Dwarf_Off own = dwarf_dieoffset(&w->entry), start = own - dwarf_cuoffset(&w->entry), next = 0;
        size_t head;
        if (type == DW_UT_type) {
            continue;
        }
        /* libdw accepts a last unit that states more bytes than there are. */
        const Elf_Data *info = find_section(dwarf_getelf(w->dwarf), ".debug_info");
        if (dwarf_next_unit(w->dwarf, start, &next, &head, NULL, NULL, NULL, NULL, NULL, NULL) != 0 || next <= own ||
            info == NULL || next > info->d_size) {
            w->damaged = true;
            continue;
        }
        w->end = (const uint8_t *)w->entry.addr + (next - own);
        w->depth = 0;
        w->split += type == DW_UT_skeleton || dwarf_hasattr(&w->entry, DW_AT_GNU_dwo_name);
        return true;
    }
    w->damaged |= found < 0;
    return false;
}

/* Moves to the next entry of the unit. False at its end. Entries are visited in the order of their addresses, so that
 * damaged references between siblings cannot lead back. */
static bool next_entry(struct elf_entries *w)
{
    Dwarf_Die next = {.addr = NULL};
    /* The children of these have no code, and the attribute tells where they end. */
    const bool pass = (w->tag == DW_TAG_enumeration_type || w->tag == DW_TAG_subroutine_type ||
                       w->tag == DW_TAG_array_type || w->tag == DW_TAG_call_site || w->tag == DW_TAG_GNU_call_site) &&
                      dwarf_hasattr(&w->entry, DW_AT_sibling);
    int found = pass ? 1 : dwarf_child(&w->entry, &next);
    if (found == 0) {
        w->depth++;
    } else if (w->depth == 0) {
        return false;
    } else {
        found = found < 0 ? found : dwarf_siblingof(&w->entry, &next);
    }
    const uint8_t *at = next.addr;
    /* After the last sibling, libdw leaves the address of the mark that ends the list. */
    bool ended = found == 1;
    if (found < 0 || at <= (const uint8_t *)w->entry.addr || at > w->end) {
        w->damaged = true;
        return false;
    }
    for (; ended && at < w->end && *at == 0 && w->depth > 0; at++) {
        w->depth--;
    }
    if (at >= w->end || w->depth == 0) {
        return false;
    }
    if (ended) {
        next = (Dwarf_Die){.addr = (void *)(uintptr_t)at, .cu = w->entry.cu};
    }
    w->entry = next;
    return true;
}

bool elf_entries_next(struct elf_entries *w)
{
    if ((w->unit == NULL || !next_entry(w)) && !next_unit(w)) {
        return false;
    }
    w->tag = dwarf_tag(&w->entry);
    return true;
}

const char *elf_dwarf_name(Dwarf_Die *entry, bool *certain)
{
    Dwarf_Attribute a;
    *certain = true;
    if (dwarf_attr_integrate(entry, DW_AT_linkage_name, &a) != NULL ||
        dwarf_attr_integrate(entry, DW_AT_MIPS_linkage_name, &a) != NULL) {
        return elf_dwarf_text(&a);
    }
    if (dwarf_attr_integrate(entry, DW_AT_name, &a) == NULL) {
        return NULL;
    }
    /* In these languages functions have the same names in DWARF and in the symbol table. In others they may differ. */
    Dwarf_Die unit;
    *certain = false;
    if (dwarf_cu_info(a.cu, NULL, NULL, &unit, NULL, NULL, NULL, NULL) == 0) {
        switch (dwarf_srclang(&unit)) {
        case DW_LANG_C89:
        case DW_LANG_C:
        case DW_LANG_Cobol74:
        case DW_LANG_Cobol85:
        case DW_LANG_Fortran77:
        case DW_LANG_Pascal83:
        case DW_LANG_C99:
        case DW_LANG_PLI:
        case DW_LANG_UPC:
        case DW_LANG_C11:
        case DW_LANG_Mips_Assembler:
            *certain = true;
            break;
        default:
            break;
        }
    }
    return elf_dwarf_text(&a);
}

bool elf_entries_origin(struct elf_entries *w, Dwarf_Die *out)
{
    Dwarf_Attribute a;
    if (dwarf_attr(&w->entry, DW_AT_abstract_origin, &a) == NULL &&
        dwarf_attr(&w->entry, DW_AT_specification, &a) == NULL) {
        return false;
    }
    const bool found = dwarf_formref_die(&a, out) != NULL;
    const unsigned form = dwarf_whatform(&a);
    w->missing += !found && (form == DW_FORM_GNU_ref_alt || form == DW_FORM_ref_sup4 || form == DW_FORM_ref_sup8);
    return found;
}

bool elf_entries_note(const struct elf_entries *w, struct elf_build *b)
{
    if (w->split != 0) {
        elf_build_note(b,
                       "Functions that were inlined in %u units are not known: their debug information is in .dwo "
                       "files (-gsplit-dwarf), which are not read.",
                       w->split);
    }
    if (w->missing != 0) {
        elf_build_note(
            b, "Some inlined functions are not known: their names are in a debug file of dwz, which was not read.");
    }
    return w->split != 0 || w->missing != 0;
}

struct inlined_list {
    const char **names;
    uint32_t count;
    size_t capacity;
    uint64_t *origins; /* of inlined copies: a compiler that decides at link time marks no function as inlined */
    size_t origin_count, origin_capacity;
    bool no_memory;
};

static void name_add(struct inlined_list *l, Dwarf_Die *function)
{
    bool certain;
    const char *name = elf_dwarf_name(function, &certain);
    if (name == NULL) {
        return;
    }
    if (l->count == LIMIT_SYMBOLS || !LIST_GROW(l->names, l->count, l->capacity)) {
        l->no_memory = true;
        return;
    }
    l->names[l->count++] = name;
}

static int compare_origins(const void *x, const void *y)
{
    return compare_u64(*(const uint64_t *)x, *(const uint64_t *)y);
}

/* Sorts the origins, and leaves each once. */
static void origins_join(struct inlined_list *l)
{
    size_t n = 0;
    if (l->origin_count > 0) {
        qsort(l->origins, l->origin_count, sizeof *l->origins, compare_origins);
    }
    for (size_t i = 0; i < l->origin_count; i++) {
        if (i == 0 || l->origins[i] != l->origins[n - 1]) {
            l->origins[n++] = l->origins[i];
        }
    }
    l->origin_count = n;
}

static void origin_add(struct inlined_list *l, uint64_t origin)
{
    if (l->origin_count == l->origin_capacity) {
        origins_join(l);
    }
    if (l->origin_count > l->origin_capacity / 2 || l->origin_capacity == 0) {
        const size_t capacity = l->origin_capacity * 2 + 256;
        uint64_t *more = realloc(l->origins, capacity * sizeof *more);
        l->no_memory |= more == NULL;
        if (more == NULL) {
            return;
        }
        l->origins = more;
        l->origin_capacity = capacity;
    }
    l->origins[l->origin_count++] = origin;
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

enum profd_status elf_inlined_read(struct elf_build *b, const struct elf_dwarf *d, struct profd_error *e)
{
    const Elf_Data *info = elf_dwarf_section(d, ".debug_info"), *strings = elf_dwarf_section(d, ".debug_str");
    if (info == NULL) {
        return PROFD_OK;
    }
    if (info->d_size > LIMIT_INLINED_BYTES || (strings != NULL && strings->d_size > LIMIT_INLINED_BYTES)) {
        elf_build_note(b, "Inlined functions are not known: the debug information is larger than %u MiB.",
                       (unsigned)(LIMIT_INLINED_BYTES >> 20));
        return PROFD_OK;
    }

    struct inlined_list l = {0};
    struct elf_entries w = {.dwarf = d->dwarf};
    bool any = false;
    while (!l.no_memory && elf_entries_next(&w)) {
        Dwarf_Attribute inlined;
        Dwarf_Word how;
        Dwarf_Die origin;
        any = true;
        if (w.tag == DW_TAG_subprogram && dwarf_attr(&w.entry, DW_AT_inline, &inlined) != NULL &&
            dwarf_formudata(&inlined, &how) == 0 && (how == DW_INL_inlined || how == DW_INL_declared_inlined)) {
            name_add(&l, &w.entry);
        } else if (w.tag == DW_TAG_inlined_subroutine && elf_entries_origin(&w, &origin)) {
            if (dwarf_cu_getdwarf(origin.cu) == d->dwarf) {
                origin_add(&l, dwarf_dieoffset(&origin));
            } else {
                name_add(&l, &origin);
            }
        }
    }
    origins_join(&l);
    for (size_t i = 0; i < l.origin_count && !l.no_memory; i++) {
        Dwarf_Die origin;
        if (dwarf_offdie(d->dwarf, l.origins[i], &origin) != NULL) {
            name_add(&l, &origin);
        }
    }
    const bool complete = !elf_entries_note(&w, b) && any && !w.damaged;

    struct object *o = b->object;
    enum profd_status status = PROFD_OK;
    o->inlined = complete ? ARENA_ARRAY(b->out, (size_t)l.count + 1, uint32_t) : NULL;
    if (l.no_memory || (complete && o->inlined == NULL)) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " inlined functions", l.count);
    } else if (complete) {
        if (l.count > 0) {
            qsort(l.names, l.count, sizeof *l.names, compare_names);
        }
        for (uint32_t i = 0; i < l.count; i++) {
            if (i == 0 || strcmp(l.names[i], l.names[i - 1]) != 0) {
                o->inlined[o->inlined_count++] = elf_build_name(b, l.names[i], strlen(l.names[i]));
            }
        }
        o->knows_inlined = true;
    }
    free(l.names);
    free(l.origins);
    return status;
}
