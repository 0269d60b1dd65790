#include <elf.h>
#include <inttypes.h>

#include "elf/elf_internal.h"
#include "proto/limits.h"

/* Addresses behind calls, ascending, in the object's arena. */
struct elf_addresses {
    uint64_t *list;
    uint32_t count, capacity;
};

struct elf_arcs {
    struct elf_build *build;
    const struct elf_file *file;
    const struct elf_functions *functions;
    struct elf_plt *plt;
    struct disassembler disassembler;
    struct object_arc *arcs; /* in the object's arena */
    uint32_t count, capacity;
    struct elf_addresses returns, signal_returns; /* see struct object */
    uint64_t end;                                 /* end of the last section: the next one must not begin before it */
    bool full, no_memory;
    uint32_t overlapping; /* sections that were skipped */
};

/* A branch instruction, decoded from its bytes. */
struct elf_branch {
    uint64_t from, to; /* to: the target, or the GOT word when through_word */
    uint32_t length;   /* of the instruction */
    bool call, through_word;
};

static void add_address(struct elf_arcs *a, struct elf_addresses *to, uint64_t address)
{
    if (to->count == LIMIT_RETURNS) {
        a->full = true;
        return;
    }
    if (!ARENA_EXTEND(a->build->out, to->list, to->count, to->capacity)) {
        a->full = a->no_memory = true;
        return;
    }
    to->list[to->count++] = address;
}

/* Returns whether a jump is a tail call. It is none if it stays in its function, or returns there from the cold part:
 * the part's name before ".cold" is then one of the function's names. */
static bool leaves_function(const struct elf_arcs *a, const struct elf_branch *b, const struct elf_function *entry)
{
    const struct elf_function *own = elf_functions_holding(a->functions, b->from);
    if (own == NULL) {
        return true;
    }
    if (own == entry || (entry->address >= own->address && entry->address < own->end)) {
        return false;
    }
    const struct object *o = a->build->object;
    const uint32_t *symbols = a->functions->symbols;
    const char *names = a->build->names.data, *name = names + o->symbols[symbols[own->first]].name;
    const char *cut = own->cold ? strstr(name, ".cold") : NULL;
    const size_t n = cut == NULL ? 0 : (size_t)(cut - name);
    for (uint32_t i = 0; n != 0 && i < entry->aliases; i++) {
        const char *whole = names + o->symbols[symbols[entry->first + i]].name;
        if (strncmp(name, whole, n) == 0 && whole[n] == '\0') {
            return false;
        }
    }
    return true;
}

/* Adds an arc if the branch goes to another function's entry or out of the object, and capstone reads the same
 * instruction. Returns whether it does. */
static bool add_branch(struct elf_arcs *a, const struct elf_branch *branch, const uint8_t *bytes)
{
    struct object_arc arc = {.from = branch->from, .kind = branch->call ? OBJECT_ARC_CALL : OBJECT_ARC_TAIL};
    struct elf_import *import =
        branch->through_word ? elf_imports_at(&a->plt->imports, branch->to) : elf_plt_slot_at(a->plt, branch->to);
    if (import != NULL) {
        arc.import = elf_imports_name(a->build, import);
        if (arc.import == 0) {
            if (elf_functions_at(a->functions, import->target) == NULL) {
                return false;
            }
            arc.to = import->target;
        }
    } else {
        const struct elf_function *entry = branch->through_word ? NULL : elf_functions_at(a->functions, branch->to);
        if (entry == NULL || entry->cold || (!branch->call && !leaves_function(a, branch, entry))) {
            return false;
        }
        arc.to = branch->to;
    }

    size_t size = branch->length;
    uint64_t address = branch->from;
    if (!disassembler_next(&a->disassembler, &bytes, &size, &address) || size != 0) {
        return false;
    }
    const unsigned id = a->disassembler.instruction->id;
    const bool call = id == (a->file->machine == EM_AARCH64 ? (unsigned)ARM64_INS_BL : (unsigned)X86_INS_CALL);
    const bool jump = a->file->machine == EM_AARCH64
                          ? id == ARM64_INS_B || id == ARM64_INS_CBZ || id == ARM64_INS_CBNZ || id == ARM64_INS_TBZ ||
                                id == ARM64_INS_TBNZ
                          : id >= X86_INS_JAE && id <= X86_INS_JS;
    if (branch->call ? !call : !jump) {
        return false;
    }

    if (a->count == LIMIT_STATIC_ARCS) {
        a->full = true;
        return true;
    }
    if (!ARENA_EXTEND(a->build->out, a->arcs, a->count, a->capacity)) {
        a->full = a->no_memory = true;
        return true;
    }
    a->arcs[a->count++] = arc;
    return true;
}

static uint64_t offset32(const struct elf_file *f, const uint8_t *p)
{
    return (uint64_t)(int64_t)(int32_t)elf_u32(f, p);
}

/* Returns whether the instruction is a direct branch or, in 64-bit mode, one through a word at a fixed distance
 * (-fno-plt). */
static bool read_branch(const struct elf_file *f, const uint8_t *p, const struct elf_x86 *x, struct elf_branch *b)
{
    uint64_t next = b->from + x->length;
    const uint8_t *operand = p + x->at + 1;
    unsigned left = x->length - x->at - 1u;
    b->through_word = false;
    b->call = x->opcode == 0xe8;
    if ((x->opcode == 0xe8 || x->opcode == 0xe9) && left == 4) {
        b->to = next + offset32(f, operand);
    } else if (x->opcode == 0xeb || (x->opcode & 0xf0) == 0x70) {
        b->to = next + (uint64_t)(int64_t)(int8_t)*operand;
    } else if (x->opcode == 0x0f && (x->second & 0xf0) == 0x80 && left == 5) {
        b->to = next + offset32(f, operand + 1);
    } else if (x->opcode == 0xff && f->bits == 64 && (x->second == 0x15 || x->second == 0x25)) {
        b->call = x->second == 0x15;
        b->through_word = true;
        b->to = next + offset32(f, operand + 1);
    } else {
        return false;
    }
    if (f->machine == EM_386) {
        b->to &= UINT32_MAX;
    }
    return true;
}

/* Decodes [at, end) of the section, which begins with an instruction. */
static void scan_piece(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes, uint64_t at, uint64_t end)
{
    /* Signal handlers return to mov $SYS_rt_sigreturn, %eax and the system call, as C libraries and kernels have it. */
    static const uint8_t return64[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t return32[] = {0xb8, 0xad, 0, 0, 0, 0xcd, 0x80};
    static const uint8_t return_old[] = {0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80};
    bool wide = a->file->machine == EM_X86_64;
    while (at < end && !a->full) {
        const uint8_t *p = bytes + at;
        const uint64_t left = s->sh_size - at;
        struct elf_x86 x;
        struct elf_branch b = {.from = s->sh_addr + at};
        if (!elf_x86_decode(p, left < 15 ? (size_t)left : 15, wide, &x)) {
            at++; /* data, or an instruction that is never executed */
            continue;
        }
        b.length = x.length;
        bool arc = x.plain && read_branch(a->file, p, &x, &b) && add_branch(a, &b, p);
        bool call = x.plain && (x.opcode == 0xe8 || (x.opcode == 0xff && (x.second >> 3 & 7) == 2));
        if (call && !(arc && x.length == 5)) {
            add_address(a, &a->returns, b.from + x.length);
        } else if (wide ? left >= sizeof return64 && memcmp(p, return64, sizeof return64) == 0
                        : (left >= sizeof return32 && memcmp(p, return32, sizeof return32) == 0) ||
                              (left >= sizeof return_old && memcmp(p, return_old, sizeof return_old) == 0)) {
            add_address(a, &a->signal_returns, b.from);
        }
        at += x.length;
    }
}

static void scan_x86(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes)
{
    /* Decoding starts again at each function and at each end of one, so padding and data between them cannot shift what
     * follows. */
    const struct elf_functions *f = a->functions;
    uint64_t at = 0;
    for (uint32_t i = elf_functions_from(f, s->sh_addr); i <= f->count && at < s->sh_size; i++) {
        uint64_t start =
            i < f->count && f->list[i].address - s->sh_addr < s->sh_size ? f->list[i].address - s->sh_addr : s->sh_size;
        uint64_t before = i > 0 && f->list[i - 1].end > s->sh_addr ? f->list[i - 1].end - s->sh_addr : 0;
        if (before > at && before < start) {
            scan_piece(a, s, bytes, at, before);
            at = before;
        }
        scan_piece(a, s, bytes, at, start);
        at = start;
    }
}

/* Sign-extends the low bits of value, times 4. */
static uint64_t words(uint32_t value, unsigned bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);
    uint64_t low = value & ((UINT64_C(1) << bits) - 1);
    return ((low ^ sign) - sign) << 2;
}

static void scan_arm64(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes)
{
    static const uint8_t signal_return[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}; /* mov x8, #139; svc #0 */
    uint64_t skew = s->sh_addr & 3 ? 4 - (s->sh_addr & 3) : 0;
    for (uint64_t at = skew; at < s->sh_size && s->sh_size - at >= 4 && !a->full; at += 4) {
        uint32_t w;
        memcpy(&w, bytes + at, 4);
        w = le32toh(w); /* instructions are little-endian whatever the data is */
        struct elf_branch b = {.from = s->sh_addr + at, .length = 4};
        if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
            b.call = (w & 0x80000000) != 0;
            b.to = b.from + words(w, 26);
        } else if ((w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000) { /* b.cond, cbz, cbnz */
            b.to = b.from + words(w >> 5, 19);
        } else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
            b.to = b.from + words(w >> 5, 14);
        } else if ((w & 0xfefff000) == 0xd63f0000) { /* blr and its forms with authentication */
            add_address(a, &a->returns, b.from + 4);
            continue;
        } else {
            if (s->sh_size - at >= sizeof signal_return &&
                memcmp(bytes + at, signal_return, sizeof signal_return) == 0) {
                add_address(a, &a->signal_returns, b.from);
            }
            continue;
        }
        if (!add_branch(a, &b, bytes + at) && b.call) {
            add_address(a, &a->returns, b.from + 4);
        }
    }
}

enum profd_status elf_arcs_new(struct elf_build *b, const struct elf_file *f, const struct elf_functions *functions,
                               struct elf_plt *plt, struct elf_arcs **out, struct profd_error *e)
{
    if (!disassembler_knows(f->machine)) {
        elf_build_note(b, "Static arcs are known for x86 and AArch64 only; the machine is number %u.", f->machine);
        *out = NULL;
        return PROFD_OK;
    }
    struct elf_arcs *a = ARENA_NEW(b->scratch, struct elf_arcs);
    TRY(a ? disassembler_open(&a->disassembler, f->machine, false, e) : profd_no_memory(e));
    a->build = b;
    a->file = f;
    a->functions = functions;
    a->plt = plt;
    *out = a;
    return PROFD_OK;
}

void elf_arcs_free(struct elf_arcs *a)
{
    if (a != NULL) {
        disassembler_close(&a->disassembler);
    }
}

enum profd_status elf_arcs_scan(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes, struct profd_error *e)
{
    if (elf_ranges_is_plt(a->file, s) || a->full) {
        return PROFD_OK;
    }
    if (s->sh_addr < a->end || s->sh_size > UINT64_MAX - s->sh_addr) {
        a->overlapping++;
        return PROFD_OK;
    }
    a->end = s->sh_addr + s->sh_size;
    if (a->file->machine == EM_AARCH64) {
        scan_arm64(a, s, bytes);
    } else {
        scan_x86(a, s, bytes);
    }
    FAIL_IF(a->no_memory, e, PROFD_NO_MEMORY, "out of memory for %" PRIu32 " static arcs", a->capacity);
    return PROFD_OK;
}

void elf_arcs_finish(struct elf_arcs *a)
{
    /* A debug file, and what was made from a list of symbols, have no code to find returns in. */
    const uint64_t code = SHF_ALLOC | SHF_EXECINSTR;
    bool any = false, missing = false;
    for (uint32_t i = 0; i < a->file->section_count; i++) {
        const GElf_Shdr *s = &a->file->sections[i];
        const bool readable = s->sh_type == SHT_PROGBITS && (s->sh_flags & SHF_COMPRESSED) == 0;
        if ((s->sh_flags & code) == code && s->sh_size != 0) {
            any |= readable;
            missing |= !readable;
        }
    }

    struct object *o = a->build->object;
    o->arcs = a->arcs;
    o->arc_count = a->count;
    o->knows_returns = !a->full && a->overlapping == 0 && any && !missing;
    o->returns = a->returns.list;
    o->return_count = a->returns.count;
    o->signal_returns = a->signal_returns.list;
    o->signal_return_count = a->signal_returns.count;
    if (a->full) {
        elf_build_note(a->build, "Static arcs above %u were left out.", LIMIT_STATIC_ARCS);
    }
    if (a->overlapping != 0) {
        elf_build_note(a->build, "Static arcs of %" PRIu32 " overlapping sections were left out.", a->overlapping);
    }
}
