#include <inttypes.h>
#include <stdlib.h>

#include "proto/sort.h"
#include "core/names.h"
#include "elf/elf_internal.h"
#include "proto/limits.h"
#include "proto/object_note.h"

enum profd_status elf_symtab_load(const struct elf_file *f, uint32_t index, struct arena *a, struct elf_symtab **out,
                                  struct profd_error *e)
{
    const GElf_Shdr *s = &f->sections[index];
    const uint64_t entry = gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
    FAIL_IF(s->sh_entsize != entry, e, PROFD_MALFORMED,
            "a symbol must have %" PRIu64 " bytes; section %s says %" PRIu64, entry, elf_file_section_name(f, s),
            s->sh_entsize);
    FAIL_IF(s->sh_size / entry > LIMIT_SYMBOLS, e, PROFD_LIMIT,
            "an executable may have at most %u symbols; this one has %" PRIu64, LIMIT_SYMBOLS, s->sh_size / entry);
    FAIL_IF(s->sh_link >= f->section_count || f->sections[s->sh_link].sh_type != SHT_STRTAB, e, PROFD_MALFORMED,
            "the names of section %s must be a string table, not section %" PRIu32, elf_file_section_name(f, s),
            s->sh_link);
    struct elf_symtab *t = ARENA_NEW(a, struct elf_symtab);
    FAIL_IF(t == NULL, e, PROFD_NO_MEMORY, "out of memory for a symbol table");
    *t = (struct elf_symtab){.file = f, .count = (uint32_t)(s->sh_size / entry)};
    TRY(elf_file_data(f, s, &t->symbols, e));

    /* The last name must have an end. Nearly every table of strings ends with a NUL; another one is copied with it. */
    const GElf_Shdr *names = &f->sections[s->sh_link];
    const uint8_t *bytes;
    TRY(elf_file_bytes(f, names, &bytes, e));
    t->strings_size = names->sh_size;
    t->strings = names->sh_size > 0 && bytes[names->sh_size - 1] == '\0'
                     ? (const char *)bytes
                     : arena_copy(a, (const char *)bytes, (size_t)names->sh_size);
    FAIL_IF(t->strings == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu64 " bytes of names", t->strings_size);
    for (uint32_t i = 0; i < f->section_count; i++) {
        if (f->sections[i].sh_type == SHT_SYMTAB_SHNDX && f->sections[i].sh_link == index) {
            TRY(elf_file_data(f, &f->sections[i], &t->wide_sections, e));
            break;
        }
    }
    *out = t;
    return PROFD_OK;
}

void elf_symtab_get(const struct elf_symtab *t, uint32_t i, struct elf_symbol *out)
{
    GElf_Sym s = {0};
    Elf32_Word wide = 0;
    if (gelf_getsymshndx(t->symbols, t->wide_sections, (int)i, &s, &wide) == NULL) {
        gelf_getsym(t->symbols, (int)i, &s); /* the table of wide section numbers is shorter */
    }
    const bool known = s.st_shndx == SHN_XINDEX && wide != SHN_UNDEF;
    *out = (struct elf_symbol){.value = s.st_value,
                               .size = s.st_size,
                               .section = known ? wide : s.st_shndx,
                               .special = !known && (s.st_shndx == SHN_UNDEF || s.st_shndx >= SHN_LORESERVE),
                               .bind = GELF_ST_BIND(s.st_info),
                               .type = GELF_ST_TYPE(s.st_info),
                               .name = s.st_name < t->strings_size ? t->strings + s.st_name : ""};
}

static uint8_t object_bind(uint8_t bind)
{
    switch (bind) {
    case STB_GLOBAL:
        return OBJECT_BIND_GLOBAL;
    case STB_WEAK:
        return OBJECT_BIND_WEAK;
    case STB_GNU_UNIQUE:
        return OBJECT_BIND_UNIQUE;
    default:
        return OBJECT_BIND_LOCAL;
    }
}

static uint8_t object_type(uint8_t type)
{
    switch (type) {
    case STT_NOTYPE:
        return OBJECT_TYPE_NONE;
    case STT_OBJECT:
    case STT_COMMON:
    case STT_TLS:
        return OBJECT_TYPE_DATA;
    case STT_FUNC:
        return OBJECT_TYPE_FUNCTION;
    case STT_GNU_IFUNC:
        return OBJECT_TYPE_IFUNC;
    default:
        return OBJECT_TYPE_OTHER;
    }
}

static bool is_executable(const struct elf_file *f, const struct elf_symbol *s)
{
    return !s->special && s->section < f->section_count && f->sections[s->section].sh_flags & SHF_EXECINSTR;
}

static bool is_bound_name(const struct elf_symbol *s)
{
    return s->bind != STB_LOCAL && (strcmp(s->name, "__executable_start") == 0 || strcmp(s->name, "etext") == 0);
}

/* The rule of object.h for symbols that are left out. */
static bool is_wanted(const struct elf_file *f, const struct elf_symbol *s)
{
    const char *n = s->name;
    if (s->type == STT_SECTION || s->type == STT_FILE || n[0] == '\0') {
        return false;
    }
    if (is_bound_name(s) && !(s->special && s->section == SHN_UNDEF)) {
        return true;
    }
    /* $x, $d, $a, $t: mapping symbols of the assembler, nearly one for each function. */
    const bool mapping = (f->machine == EM_AARCH64 || f->machine == EM_ARM || f->machine == EM_RISCV) &&
                         s->bind == STB_LOCAL && s->type == STT_NOTYPE && n[0] == '$' && n[1] != '\0' &&
                         (n[2] == '\0' || n[2] == '.' || n[1] == 'x');
    if (s->special || mapping) {
        return false;
    }
    return is_executable(f, s) || (s->bind == STB_WEAK && object_type(s->type) != OBJECT_TYPE_DATA);
}

static void add_symbol(struct elf_build *b, const struct elf_file *f, const struct elf_symbol *s, uint8_t flags)
{
    struct object *o = b->object;
    uint64_t address = s->value;
    if (f->machine == EM_ARM && (s->type == STT_FUNC || s->type == STT_GNU_IFUNC)) {
        address &= ~UINT64_C(1); /* the bit says Thumb */
    }
    struct object_symbol *out = &o->symbols[o->symbol_count++];
    *out = (struct object_symbol){.address = address,
                                  .size = s->size,
                                  .bind = object_bind(s->bind),
                                  .type = object_type(s->type),
                                  .flags = flags};
    if (out->size > UINT64_MAX - address) {
        out->size = 0;
    }
    if (is_executable(f, s)) {
        out->flags |= OBJECT_SYMBOL_EXECUTABLE;
        if (out->type == OBJECT_TYPE_FUNCTION || out->type == OBJECT_TYPE_IFUNC) {
            o->has_names = true;
        }
    }
    out->name = elf_build_name(b, s->name, strnlen(s->name, b->name_limit + 1));
    out->demangled = out->name;
    if (!is_bound_name(s)) {
        return;
    }
    if (s->name[0] == 'e') {
        o->has_etext = true;
        o->etext = address;
    } else {
        o->has_executable_start = true;
        o->executable_start = address;
    }
}

/* Adds the wanted symbols of a table to the object, each with these flags. */
static enum profd_status read_table(struct elf_build *b, const struct elf_symtab *t, uint8_t flags,
                                    struct profd_error *e)
{
    struct elf_symbol s;
    uint32_t wanted = 0;
    uint8_t *listed = NULL;
    /* gprof classifies the local names of its table, which is the executable's own .symtab. */
    if ((flags & (OBJECT_SYMBOL_DYNAMIC | OBJECT_SYMBOL_DEBUG)) == 0) {
        listed = ARENA_ARRAY(b->scratch, LOCAL_NAMES_BYTES((size_t)t->strings_size), uint8_t);
        FAIL_IF(listed == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu64 " bytes of names", t->strings_size);
        local_names_judge(t->strings, (size_t)t->strings_size, listed);
    }
    for (uint32_t i = 1; i < t->count; i++) {
        elf_symtab_get(t, i, &s);
        wanted += is_wanted(t->file, &s);
    }
    b->object->symbols = ARENA_ARRAY(b->out, (size_t)wanted + 1, struct object_symbol);
    FAIL_IF(b->object->symbols == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " symbols", wanted);
    for (uint32_t i = 1; i < t->count; i++) {
        elf_symtab_get(t, i, &s);
        if (is_wanted(t->file, &s)) {
            const bool unlisted = listed != NULL && object_bind(s.bind) == OBJECT_BIND_LOCAL &&
                                  !local_names_listed(t->strings, (size_t)(s.name - t->strings), listed);
            add_symbol(b, t->file, &s, (uint8_t)(flags | (unlisted ? OBJECT_SYMBOL_UNLISTED : 0)));
        }
        /* Stops at once, because millions of symbols may share one long name. */
        if (b->names.failed) {
            return elf_build_names_full(b, e);
        }
    }
    return PROFD_OK;
}

/* Number of the first section of that type with at least one symbol, 0 if none. */
static uint32_t find_table(const struct elf_file *f, uint32_t type)
{
    const uint64_t entry = gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
    for (uint32_t i = 1; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if (s->sh_type == type && !(s->sh_flags & SHF_COMPRESSED) && s->sh_size > entry) {
            return i;
        }
    }
    return 0;
}

enum profd_status elf_symbols_read(struct elf_build *b, const struct elf_file *f, const struct elf_file *debug,
                                   struct profd_error *e)
{
    const struct elf_file *from = f;
    uint8_t flags = 0;
    uint32_t index = find_table(f, SHT_SYMTAB);
    if (index == 0 && debug != NULL && (index = find_table(debug, SHT_SYMTAB)) != 0) {
        from = debug;
        flags = OBJECT_SYMBOL_DEBUG;
    }
    if (index == 0 && (index = find_table(f, SHT_DYNSYM)) != 0) {
        b->object->only_dynamic = true;
        flags = OBJECT_SYMBOL_DYNAMIC;
    }
    if (index == 0) {
        elf_build_note(b, "It has no symbol table, so that functions have no names.");
        return PROFD_OK;
    }
    struct elf_symtab *t;
    TRY(elf_symtab_load(from, index, b->scratch, &t, e));
    TRY(read_table(b, t, flags, e));
    if (b->object->only_dynamic) {
        elf_build_note(b, OBJECT_NOTE_EXPORTED ", because it is stripped; a debug file would name the others.");
    }
    return PROFD_OK;
}

static bool is_function(const struct object_symbol *s, const char *name)
{
    /* Linker scripts mark the ends of code with untyped symbols. */
    static const char *const markers[] = {"etext", "_etext", "__etext", "__executable_start", "__bss_start", "_edata",
                                          "edata", "_end",   "end"};
    if (!(s->flags & OBJECT_SYMBOL_EXECUTABLE)) {
        return false;
    }
    if (s->type == OBJECT_TYPE_FUNCTION || s->type == OBJECT_TYPE_IFUNC) {
        return true;
    }
    bool function = s->type == OBJECT_TYPE_NONE && s->bind != OBJECT_BIND_LOCAL;
    for (size_t i = 0; i < sizeof markers / sizeof *markers && function; i++) {
        function = strcmp(name, markers[i]) != 0;
    }
    return function;
}

static int compare_functions(const void *x, const void *y)
{
    const struct elf_function *a = x, *b = y;
    return compare_pairs(a->address, b->address, a->first, b->first);
}

enum profd_status elf_functions_make(struct elf_build *b, struct elf_functions *out, struct profd_error *e)
{
    const struct object *o = b->object;
    const char *names = b->names.data; /* not yet moved into the object */
    uint32_t n = 0, kept = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        n += is_function(&o->symbols[i], names + o->symbols[i].name);
    }
    struct elf_function *list = ARENA_ARRAY(b->scratch, (size_t)n + 1, struct elf_function);
    uint32_t *symbols = ARENA_ARRAY(b->scratch, (size_t)n + 1, uint32_t);
    FAIL_IF(list == NULL || symbols == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " functions", n);
    n = 0;
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        const char *name = names + s->name;
        if (is_function(s, name)) {
            /* foo.cold, foo.cold.3: parts that gcc and clang expect to run rarely. */
            const char *p = strstr(name, ".cold");
            const bool cold = p != NULL && p != name && (p[5] == '\0' || p[5] == '.');
            list[n++] = (struct elf_function){s->address, s->address + s->size, i, 1, cold};
        }
    }
    qsort(list, n, sizeof *list, compare_functions);

    /* One entry remains for each address, with the longest extent. An entry that is also the name of a complete
     * function is not cold. */
    for (uint32_t i = 0; i < n; i++) {
        symbols[i] = list[i].first;
        list[i].first = i;
        if (kept == 0 || list[kept - 1].address != list[i].address) {
            list[kept++] = list[i];
            continue;
        }
        struct elf_function *f = &list[kept - 1];
        f->aliases++;
        if (list[i].end > f->end) {
            f->end = list[i].end;
        }
        f->cold = f->cold && list[i].cold;
    }
    for (uint32_t i = 0; i < kept; i++) {
        if (list[i].end == list[i].address) {
            list[i].end = i + 1 < kept ? list[i + 1].address : UINT64_MAX;
        }
    }
    *out = (struct elf_functions){list, symbols, kept};
    return PROFD_OK;
}

uint32_t elf_functions_from(const struct elf_functions *f, uint64_t address)
{
    return compare_find_first(f->list, f->count, sizeof *f->list, address);
}

const struct elf_function *elf_functions_at(const struct elf_functions *f, uint64_t address)
{
    uint32_t i = elf_functions_from(f, address);
    return i < f->count && f->list[i].address == address ? &f->list[i] : NULL;
}

const struct elf_function *elf_functions_holding(const struct elf_functions *f, uint64_t address)
{
    uint32_t i = elf_functions_from(f, address);
    if (i < f->count && f->list[i].address == address) {
        return &f->list[i];
    }
    /* Entries inside a function are rare and few: the outer one is at most eight entries before. */
    for (uint32_t back = 0; back < 8 && i > 0; back++) {
        if (f->list[--i].end > address) {
            return &f->list[i];
        }
    }
    return NULL;
}

bool elf_ranges_is_plt(const struct elf_file *f, const GElf_Shdr *s)
{
    const char *name = elf_file_section_name(f, s);
    return strcmp(name, ".plt") == 0 || strcmp(name, ".plt.got") == 0 || strcmp(name, ".plt.sec") == 0 ||
           strcmp(name, ".iplt") == 0;
}

static int compare_ranges(const void *x, const void *y)
{
    const struct object_range *a = x, *b = y;
    int order = compare_pairs(a->kind, b->kind, a->low, b->low);
    return order != 0 ? order : compare_u64(a->high, b->high);
}

/* Adds nothing if the range is empty or passes the end of the address space. */
static void add_range(struct object *o, uint64_t low, uint64_t size, enum object_range_kind kind)
{
    uint64_t high;
    if (size != 0 && !__builtin_add_overflow(low, size, &high)) {
        o->ranges[o->range_count++] = (struct object_range){low, high, (uint8_t)kind};
    }
}

enum profd_status elf_ranges_read(struct elf_build *b, const struct elf_file *f, struct profd_error *e)
{
    struct object *o = b->object;
    o->ranges = ARENA_ARRAY(b->out, (size_t)f->section_count + f->segment_count + 2, struct object_range);
    FAIL_IF(o->ranges == NULL, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " sections", f->section_count);
    const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
    for (uint32_t i = 0; i < f->section_count; i++) {
        const GElf_Shdr *s = &f->sections[i];
        if ((s->sh_flags & code) != code || s->sh_type == SHT_NULL) {
            continue;
        }
        bool text = strcmp(elf_file_section_name(f, s), ".text") == 0;
        add_range(o, s->sh_addr, s->sh_size,
                  text                      ? OBJECT_RANGE_TEXT
                  : elf_ranges_is_plt(f, s) ? OBJECT_RANGE_PLT
                                            : OBJECT_RANGE_EXECUTABLE);
    }
    /* Without symbols, functions are found by the calls to them. No call goes to the entry point, so without a range of
     * its own it would be a part of the function before it. */
    for (uint32_t i = 0; !o->has_names && i < o->range_count; i++) {
        const struct object_range *r = &o->ranges[i];
        if (r->kind == OBJECT_RANGE_TEXT && f->entry > r->low && f->entry < r->high) {
            add_range(o, f->entry, r->high - f->entry, OBJECT_RANGE_EXECUTABLE);
            break;
        }
    }
    for (uint32_t i = 0; i < f->segment_count; i++) {
        if (f->segments[i].p_type == PT_LOAD && f->segments[i].p_flags & PF_X) {
            add_range(o, f->segments[i].p_vaddr, f->segments[i].p_memsz, OBJECT_RANGE_SEGMENT);
        }
    }
    FAIL_IF(o->range_count > LIMIT_SECTIONS, e, PROFD_LIMIT,
            "an executable may have at most %u executable sections and segments; this one has %" PRIu32, LIMIT_SECTIONS,
            o->range_count);
    qsort(o->ranges, o->range_count, sizeof *o->ranges, compare_ranges);
    return PROFD_OK;
}
