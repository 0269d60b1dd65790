/* Finds the words of an object that contain the address of mcount or __fentry__, by its relocations. */
#include <elf.h>
#include <stddef.h>

#include "client/collect/rewrite_find.h"

#if defined __x86_64__

#define NAMES_MAX 4u

/* Entries of the dynamic section that are used; addresses, 0 for none. */
struct dynamic {
    uintptr_t symbols, names, hash, gnu_hash, rela, plt;
    uint64_t names_size, rela_size, plt_size;
    bool text_relocated, plt_is_rela;
};

/* glibc has added the bias to pointers in the section itself, other loaders leave them as they are. */
static uintptr_t address_of(const struct rewrite_image *image, uint64_t value)
{
    if (value - image->low < image->high - image->low) {
        return value;
    }
    value += image->bias;
    return value - image->low < image->high - image->low ? value : 0;
}

static bool dynamic_read(const struct rewrite_image *image, struct dynamic *out)
{
    const ElfW(Dyn) *d = NULL;
    *out = (struct dynamic){0};
    for (unsigned i = 0; i < image->count; i++) {
        if (image->headers[i].p_type == PT_DYNAMIC) {
            d = (const void *)(image->headers[i].p_vaddr + image->bias);
        }
    }
    for (; d && d->d_tag != DT_NULL; d++) {
        uint64_t value = d->d_un.d_val;
        switch (d->d_tag) {
        case DT_SYMTAB:
            out->symbols = address_of(image, value);
            break;
        case DT_STRTAB:
            out->names = address_of(image, value);
            break;
        case DT_STRSZ:
            out->names_size = value;
            break;
        case DT_HASH:
            out->hash = address_of(image, value);
            break;
        case DT_GNU_HASH:
            out->gnu_hash = address_of(image, value);
            break;
        case DT_RELA:
            out->rela = address_of(image, value);
            break;
        case DT_RELASZ:
            out->rela_size = value;
            break;
        case DT_JMPREL:
            out->plt = address_of(image, value);
            break;
        case DT_PLTRELSZ:
            out->plt_size = value;
            break;
        case DT_PLTREL:
            out->plt_is_rela = value == DT_RELA;
            break;
        case DT_TEXTREL:
            out->text_relocated = true;
            break;
        case DT_FLAGS:
            out->text_relocated = out->text_relocated || value & DF_TEXTREL;
            break;
        default:
            break;
        }
    }
    return out->symbols && out->names && (out->hash || out->gnu_hash);
}

/* One more than the largest symbol in the relocations of a table. */
static uint32_t symbol_bound(const struct rewrite_image *image, uintptr_t table, uint64_t size)
{
    const ElfW(Rela) *r = (const void *)table;
    uint32_t bound = 0;
    for (uint64_t n = table && size <= image->high - table ? size / sizeof *r : 0; n; n--, r++) {
        if (ELF64_R_SYM(r->r_info) >= bound) {
            bound = (uint32_t)ELF64_R_SYM(r->r_info) + 1;
        }
    }
    return bound;
}

/* The old hash table states the number of symbols. The new one omits the imports, which precede its first symbol,
 * unless it is empty. */
static uint32_t import_count(const struct rewrite_image *image, const struct dynamic *d)
{
    if (d->hash) {
        return ((const uint32_t *)d->hash)[1];
    }
    const uint32_t *h =
        (const uint32_t *)d->gnu_hash; /* buckets, first symbol, words of 8 bytes, shift; words; buckets */
    if (h[0] != 1 || h[4 + 2 * (uint64_t)h[2]] != 0) {
        return h[1];
    }
    uint32_t bound = symbol_bound(image, d->plt, d->plt_is_rela ? d->plt_size : 0),
             other = symbol_bound(image, d->rela, d->rela_size);
    return bound > other ? bound : other;
}

static bool is_name(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* Returns the form of a symbol of the collector; -1 for others. */
static int form_of(const struct dynamic *d, const ElfW(Sym) * symbol)
{
    if (symbol->st_shndx != SHN_UNDEF || symbol->st_name >= d->names_size) {
        return -1;
    }
    const char *name = (const char *)d->names + symbol->st_name;
    if (is_name(name, "mcount") || is_name(name, "_mcount")) {
        return 0;
    }
    return is_name(name, "__fentry__") ? REWRITE_FENTRY : -1;
}

struct imports {
    uint32_t symbol[NAMES_MAX], form[NAMES_MAX];
    unsigned count;
};

static void slots_add(const struct rewrite_image *image, const struct imports *imports, const ElfW(Rela) * r,
                      bool trust_lazy, struct rewrite_slots *out)
{
    uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info), symbol = (uint32_t)ELF64_R_SYM(r->r_info);
    if (type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT) {
        return;
    }
    for (unsigned i = 0; i < imports->count; i++) {
        uintptr_t slot = address_of(image, r->r_offset);
        if (imports->symbol[i] != symbol || !slot || slot % sizeof slot || out->count == REWRITE_SLOTS_MAX) {
            continue;
        }
        uintptr_t holds = *(const uintptr_t *)slot;
        bool lazy = type == R_X86_64_JUMP_SLOT && trust_lazy && holds >= image->low && holds < image->high;
        if (holds != out->entry[imports->form[i]] && !lazy) {
            continue;
        }
        out->at[out->count] = slot;
        out->form[out->count++] = imports->form[i];
    }
}

static void slots_walk(const struct rewrite_image *image, const struct imports *imports, uintptr_t table, uint64_t size,
                       bool trust_lazy, struct rewrite_slots *out)
{
    const ElfW(Rela) *r = (const void *)table;
    if (!table || size > image->high - table) {
        return;
    }
    for (uint64_t n = size / sizeof *r; n; n--, r++) {
        slots_add(image, imports, r, trust_lazy, out);
    }
}

bool rewrite_find_slots(const struct rewrite_image *image, const struct stub_code stub[2], bool trust_lazy,
                        struct rewrite_slots *out)
{
    struct dynamic d;
    struct imports imports = {.count = 0};
    out->count = 0;
    out->entry[0] = (uintptr_t)stub[0].entry;
    out->entry[REWRITE_FENTRY] = (uintptr_t)stub[REWRITE_FENTRY].entry;
    out->own = out->entry[0] >= image->low && out->entry[0] < image->high;
    if (!dynamic_read(image, &d)) {
        return out->own;
    }
    if (d.text_relocated) {
        return false;
    }
    const ElfW(Sym) *symbols = (const void *)d.symbols;
    uint32_t n = import_count(image, &d);
    if (n > (image->high - d.symbols) / sizeof *symbols) {
        return out->own;
    }
    for (uint32_t i = 1; i < n && imports.count < NAMES_MAX; i++) {
        int form = form_of(&d, &symbols[i]);
        if (form < 0) {
            continue;
        }
        imports.symbol[imports.count] = i;
        imports.form[imports.count++] = (uint32_t)form;
    }
    if (imports.count) {
        slots_walk(image, &imports, d.rela, d.rela_size, trust_lazy, out);
        slots_walk(image, &imports, d.plt, d.plt_is_rela ? d.plt_size : 0, trust_lazy, out);
    }
    return out->own || out->count;
}

#endif
