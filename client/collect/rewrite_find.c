#include "client/collect/rewrite_find.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>

#include "client/collect/frame_entry.h"
#include "client/collect/raw.h"

#if defined __x86_64__

/* --- the words of an object that contain the address of mcount or __fentry__, by its relocations --- */

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

static void slots_walk(const struct rewrite_image *image, const struct imports *imports, uintptr_t table, uint64_t size,
                       bool trust_lazy, struct rewrite_slots *out)
{
    const ElfW(Rela) *r = (const void *)table;
    if (!table || size > image->high - table) {
        return;
    }
    for (uint64_t n = size / sizeof *r; n; n--, r++) {
        const uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info), symbol = (uint32_t)ELF64_R_SYM(r->r_info);
        for (unsigned i = 0; i < imports->count && (type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT); i++) {
            uintptr_t slot = address_of(image, r->r_offset);
            if (imports->symbol[i] != symbol || !slot || slot % sizeof slot || out->count == REWRITE_SLOTS_MAX) {
                continue;
            }
            uintptr_t holds = *(const uintptr_t *)slot;
            bool lazy = type == R_X86_64_JUMP_SLOT && trust_lazy && holds >= image->low && holds < image->high;
            if (holds == out->entry[imports->form[i]] || lazy) {
                out->at[out->count] = slot;
                out->form[out->count++] = imports->form[i];
            }
        }
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

/* --- its functions, by the unwind information --- */

#define FRAME_LEAST 16u /* bytes of one */

bool rewrite_image_fill(const ElfW(Phdr) * headers, unsigned count, uintptr_t bias, struct rewrite_image *out)
{
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (unsigned i = 0; i < count; i++) {
        if (headers[i].p_type != PT_LOAD) {
            continue;
        }
        uintptr_t from = headers[i].p_vaddr + bias, to = from + headers[i].p_memsz;
        low = from < low ? from : low;
        high = to > high ? to : high;
    }
    if (high <= low || high - low > UINT32_MAX) {
        return false;
    }
    *out = (struct rewrite_image){headers, count, bias, low, high};
    return true;
}

bool rewrite_image_has_code(const struct rewrite_image *image, uintptr_t at, uint64_t size)
{
    for (unsigned i = 0; i < image->count; i++) {
        const ElfW(Phdr) *p = &image->headers[i];
        uintptr_t low = p->p_vaddr + image->bias;
        if (p->p_type == PT_LOAD && p->p_flags & PF_X && at >= low && at - low < p->p_filesz &&
            size <= p->p_filesz - (at - low)) {
            return true;
        }
    }
    return false;
}

/* Reads the function of a frame. False: unknown, or not code. */
static bool frame_read(struct rewrite_frames *f, uintptr_t frame, uintptr_t *begin, uint32_t *size)
{
    struct frame_bytes in = {f->image->low, f->image->high};
    struct frame_entry entry;
    struct frame_common common;
    if (!frame_entry_read(in, frame, &entry)) {
        return false;
    }
    if (entry.common != f->common) {
        f->common = entry.common;
        f->known = frame_common_read(in, entry.common, &common);
    }
    if (!f->known || !rewrite_image_has_code(f->image, entry.begin, entry.size)) {
        return false;
    }
    *begin = entry.begin;
    *size = entry.size;
    return true;
}

/* Reads the next function: [*begin, *begin + *size) is code. False: there are no more. */
static bool frames_next(struct rewrite_frames *f, uintptr_t *begin, uint32_t *size)
{
    while (f->table && f->next < f->count) {
        const struct frame_table *t = (const void *)f->table;
        const struct frame_row *row = &t->rows[f->next++];
        uintptr_t function = f->table + (uintptr_t)(intptr_t)row->function;
        if (frame_read(f, f->table + (uintptr_t)(intptr_t)row->frame, begin, size) && *begin == function) {
            return true;
        }
    }
    while (!f->table && f->end - f->frames >= 4) {
        uintptr_t frame = f->frames;
        uint32_t length;
        raw_copy(&length, (const void *)frame, sizeof length);
        if (length == 0 || length > f->end - frame - 4) {
            break; /* the end, or the form for more than 4 GiB */
        }
        f->frames += 4 + length;
        if (frame_read(f, frame, begin, size)) {
            return true;
        }
    }
    return false;
}

static bool file_read(long fd, uint64_t at, void *to, size_t n)
{
    return raw_call(SYS_pread64, fd, to, n, at) == (long)n;
}

/* Finds .eh_frame among the sections of the program's file. */
static bool section_find(long fd, ElfW(Shdr) * out)
{
    static const char wanted[] = ".eh_frame";
    ElfW(Ehdr) h;
    ElfW(Shdr) names;
    char name[sizeof wanted];
    if (!file_read(fd, 0, &h, sizeof h) || h.e_shentsize != sizeof *out ||
        !file_read(fd, h.e_shoff + (uint64_t)h.e_shstrndx * sizeof names, &names, sizeof names)) {
        return false;
    }
    for (unsigned i = 1; i < h.e_shnum; i++) {
        if (!file_read(fd, h.e_shoff + (uint64_t)i * sizeof *out, out, sizeof *out)) {
            return false;
        }
        if (out->sh_flags & SHF_ALLOC && file_read(fd, names.sh_offset + out->sh_name, name, sizeof name) &&
            name[sizeof name - 1] == '\0' && raw_after(name, wanted)) {
            return true;
        }
    }
    return false;
}

bool rewrite_frames_find(const struct rewrite_image *image, bool program, struct rewrite_frames *out)
{
    static const char exe[] = "/proc/self/exe";
    ElfW(Shdr) section;
    for (unsigned i = 0; i < image->count; i++) {
        uintptr_t header = image->headers[i].p_vaddr + image->bias;
        const struct frame_table *t = image->headers[i].p_type == PT_GNU_EH_FRAME
                                          ? frame_table_at((struct frame_bytes){image->low, image->high}, header)
                                          : NULL;
        if (t) {
            *out = (struct rewrite_frames){.image = image, .table = header, .count = t->count};
            return true;
        }
    }
    long fd = program ? raw_call(SYS_openat, AT_FDCWD, exe, O_RDONLY | O_CLOEXEC, 0) : -1;
    if (fd < 0) {
        return false;
    }
    bool found = section_find(fd, &section);
    raw_call(SYS_close, fd, 0, 0, 0);
    uintptr_t at = found ? section.sh_addr + image->bias : 0;
    if (!found || at < image->low || at >= image->high || section.sh_size > image->high - at) {
        return false;
    }
    *out = (struct rewrite_frames){
        .image = image, .frames = at, .end = at + section.sh_size, .count = (uint32_t)(section.sh_size / FRAME_LEAST)};
    return true;
}

/* --- the one call of the collector in each function --- */

#define LINE_MAX 1024u /* bytes of a function that are decoded, with the probes of a large frame */

extern const char __start_profd_collect_text[]
    __attribute__((visibility("hidden"))); /* defined by the linker: the collector's code has no sites */
extern const char __stop_profd_collect_text[] __attribute__((visibility("hidden")));

struct site_search {
    const struct rewrite_image *image;
    const struct rewrite_slots *slots;
};

static uintptr_t relative32(uintptr_t at)
{
    const uint8_t *b = (const uint8_t *)at;
    uint32_t value = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return at + (uintptr_t)(intptr_t)(int32_t)value;
}

/* The form of a call to `target`, or -1 if it is not a function of the collector. */
static int arrival(const struct site_search *w, uintptr_t target)
{
    if (target == w->slots->entry[0] || target == w->slots->entry[REWRITE_FENTRY]) {
        return target == w->slots->entry[0] ? 0 : REWRITE_FENTRY;
    }
    if (!rewrite_image_has_code(w->image, target, 16)) {
        return -1;
    }
    /* An entry of a PLT: [endbr64] [bnd] jmp *slot(%rip) */
    const uint8_t *b = (const uint8_t *)target;
    if (b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e && b[3] == 0xfa) {
        b += 4;
    }
    if (b[0] == 0xf2) {
        b++;
    }
    if (b[0] != 0xff || b[1] != 0x25) {
        return -1;
    }
    uintptr_t slot = relative32((uintptr_t)b + 2) + 4;
    for (unsigned i = 0; i < w->slots->count; i++) {
        if (w->slots->at[i] == slot) {
            return (int)w->slots->form[i];
        }
    }
    return -1;
}

/* True if there is a call of the collector at `at`; end is at least 6 bytes further. */
static bool site_read(const struct site_search *w, uintptr_t at, struct rewrite_site *out)
{
    const uint8_t *b = (const uint8_t *)at;
    int form = -1;
    uint32_t extra = 0;
    if (b[0] == 0xff && b[1] == 0x15) {
        uintptr_t slot = relative32(at + 2) + 4;
        for (unsigned i = 0; i < w->slots->count; i++) {
            if (w->slots->at[i] == slot) {
                form = (int)w->slots->form[i];
            }
        }
        extra = REWRITE_LONG;
    } else if (b[0] == 0xe8) {
        form = arrival(w, relative32(at + 1) + 4);
    } else if (b[0] == 0x67 && b[1] == 0xe8) {
        form = arrival(w, relative32(at + 2) + 4);
        extra = REWRITE_LONG;
    }
    if (form < 0) {
        return false;
    }
    out->at = (uint32_t)(at - w->image->low) + (extra ? 1 : 0);
    out->form = (uint32_t)form | extra;
    return true;
}

static bool function_search(const struct site_search *w, uintptr_t begin, uint32_t size, struct rewrite_site *out)
{
    uintptr_t end = begin + (size < LINE_MAX ? size : LINE_MAX);
    if (begin >= (uintptr_t)__start_profd_collect_text && begin < (uintptr_t)__stop_profd_collect_text) {
        return false;
    }
    for (uintptr_t at = begin; end - at >= 6;) {
        if (site_read(w, at, out)) {
            return true;
        }
        unsigned n = rewrite_decode_length((const uint8_t *)at, (const uint8_t *)end);
        if (n == 0) {
            return false;
        }
        at += n;
    }
    return false;
}

/* Heap sort: sinks sites[at] among the first n. */
static void site_sink(struct rewrite_site *sites, uint32_t at, uint32_t n)
{
    struct rewrite_site held = sites[at];
    for (uint32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && sites[child + 1].at > sites[child].at) {
            child++;
        }
        if (sites[child].at <= held.at) {
            break;
        }
        sites[at] = sites[child];
        at = child;
    }
    sites[at] = held;
}

uint32_t rewrite_find_sites(const struct rewrite_image *image, const struct rewrite_frames *frames,
                            const struct rewrite_slots *slots, struct rewrite_site *out, uint32_t most)
{
    struct rewrite_frames f = *frames;
    struct site_search w = {image, slots};
    uintptr_t function;
    uint32_t n = 0, kept = 0, size;
    bool ordered = true;
    while (n < most && frames_next(&f, &function, &size)) {
        if (!function_search(&w, function, size, &out[n])) {
            continue;
        }
        ordered = ordered && (n == 0 || out[n].at > out[n - 1].at);
        n++;
    }
    if (!ordered) {
        for (uint32_t i = n / 2; i > 0; i--) {
            site_sink(out, i - 1, n);
        }
        for (uint32_t i = n; i > 1; i--) {
            struct rewrite_site largest = out[0];
            out[0] = out[i - 1];
            out[i - 1] = largest;
            site_sink(out, 0, i - 1);
        }
    }
    for (uint32_t i = 0; i < n; i++) { /* two frames may describe one function */
        if (i == 0 || out[i].at != out[kept - 1].at) {
            out[kept++] = out[i];
        }
    }
    return kept;
}

#endif
