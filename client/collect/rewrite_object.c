#include "client/collect/rewrite_object.h"

#include <sys/mman.h>

#include "client/collect/leave_out.h"
#include "client/collect/module.h"
#include "client/collect/raw.h"
#include "client/collect/stub.h"

#if defined __x86_64__

/* --- the collector's code within 2 GiB of an object: copies of the stub, and thunks --- */

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE 4096u
#define REACH 0x7fff0000u /* range of a signed displacement of 32 bits, with a reserve */
#define STEP_FIRST 0x10000u
#define STEPS 15u /* doubled each time: up to 1 GiB */

/* The first part of the pages: two copies of the stub, and two jumps that thunks call if they do not find their caller.
 */
#define COPY_SIZE 192u
#define JUMP_AT (2 * COPY_SIZE)
#define JUMP_SIZE 16u
#define THUNKS_AT 512u
#define SITE_BYTES (STUB_SITE_SLOTS * (uint32_t)sizeof(struct attach_slot))

static void write32(uint8_t *at, uint32_t value)
{
    __asm__ volatile("movl %1, %0" : "=m"(*(uint8_t(*)[4])at) : "r"(value));
}

static void write64(uint8_t *at, uint64_t value)
{
    raw_copy(at, &value, sizeof value);
}

/* The %fs offset of this thread-local variable. */
static uint32_t thread_offset(const void *word)
{
    uintptr_t begin;
    __asm__("mov %%fs:0, %0" : "=r"(begin));
    return (uint32_t)((uintptr_t)word - begin);
}

/* One thunk. Its instructions, with what differs from site to site:
 *   0 mov 8(%rbp), %r10 [mov (%rsp), %r10]   4 lea 3(%r10, %r10), %r10   9 mov %r10d, %r11d   12 and $0x70, %r11d
 *  16 add %fs:sites, %r11                   25 cmp %r10, place(%r11)    32 jne 46            34 incq place+8(%r11)
 *  41 jmp back                              46 call the jump above      51 jmp back */
static void thunk_write(uint8_t *to, uintptr_t self, uint32_t place, bool fentry, uintptr_t miss)
{
    static const union {
        uint8_t bytes[STUB_THUNK_SIZE];
        uint64_t words[STUB_THUNK_SIZE / 8];
    } code = {{0x4c, 0x8b, 0x55, 0x08, 0x4f, 0x8d, 0x54, 0x12, STUB_SITE_KEY,
               0x45, 0x89, 0xd3, 0x41, 0x83, 0xe3, 0x70, //
               0x64, 0x4c, 0x03, 0x1c, 0x25, 0,    0,    0,    0,
               0x4d, 0x39, 0x93, 0,    0,    0,    0, //
               0x75, 0x0c, 0x49, 0xff, 0x83, 0,    0,    0,    0,
               0xe9, 0,    0,    0,    0,    0xe8, 0, //
               0,    0,    0,    0xe9, 0,    0,    0,    0,    0xcc,
               0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc}};
    static const uint8_t above[4] = {0x4c, 0x8b, 0x14, 0x24};
    uintptr_t at = (uintptr_t)to;
    for (unsigned i = 0; i < STUB_THUNK_SIZE / 8;
         i++) { /* one system call for all sites: there are hundreds, and the program waits */
        __asm__ volatile("mov %1, %0" : "=m"(*((uint64_t *)(void *)to + i)) : "r"(code.words[i]));
    }
    if (fentry) {
        raw_copy(to, above, sizeof above);
    }
    write32(to + 21, thread_offset(&profd_collect_thread.sites));
    write32(to + STUB_THUNK_PLACE, place);
    write32(to + 37, place + 8);
    write32(to + 42, (uint32_t)(self - (at + 46)));
    write32(to + 47, (uint32_t)(miss - (at + 51)));
    write32(to + 52, (uint32_t)(self - (at + 56)));
}

static bool is_near(const struct rewrite_image *image, uintptr_t at, size_t size)
{
    uintptr_t low = at < image->low ? at : image->low, high = at + size > image->high ? at + size : image->high;
    return high - low < REACH;
}

static uintptr_t map_at(uintptr_t at, size_t size)
{
    long got = raw_call6(SYS_mmap, (long)at, (long)size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got < 0 && got > -4096) {
        return 0;
    }
    if ((uintptr_t)got == at) {
        return at;
    }
    raw_call(SYS_munmap, got, size, 0, 0); /* a kernel before 4.17 treats the address as a hint */
    return 0;
}

/* Below the object rather than above it, where the program's heap grows. */
static uintptr_t map_near(const struct rewrite_image *image, size_t size)
{
    uintptr_t low = image->low & ~(uintptr_t)(PAGE - 1), high = (image->high + PAGE - 1) & ~(uintptr_t)(PAGE - 1),
              got = 0;
    uintptr_t step = STEP_FIRST;
    for (unsigned i = 0; i < STEPS && !got; i++, step *= 2) {
        if (low > size + step && is_near(image, low - size - step, size)) {
            got = map_at(low - size - step, size);
        }
    }
    for (unsigned i = 0; i < STEPS && !got; i++) {
        step /= 2;
        if (is_near(image, high + step, size)) {
            got = map_at(high + step, size);
        }
    }
    return got;
}

/* The address to which site number i of the object jumps, or which it calls. */
static uintptr_t near_target(const struct rewrite_near *near, const struct rewrite_site *site, uint32_t i)
{
    if (near->first != REWRITE_NO_THUNKS) {
        return near->at + THUNKS_AT + (uintptr_t)i * STUB_THUNK_SIZE;
    }
    return near->at + (site->form & REWRITE_FENTRY ? COPY_SIZE : 0);
}

static void near_free(struct rewrite_near *near)
{
    if (near->at) {
        raw_call(SYS_munmap, near->at, near->size, 0, 0);
    }
    near->at = 0;
}

/* Creates executable code for n sites of the object. first: as in struct rewrite_near. False: no memory is near enough,
 * or the process may not create code; nothing is left. */
static bool near_make(const struct rewrite_image *image, const struct rewrite_site *sites, uint32_t n, uint32_t first,
                      const struct stub_code stub[2], struct rewrite_near *out)
{
    static const uint8_t jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc}; /* jmp *2(%rip) */
    struct rewrite_near near = {0, THUNKS_AT + (first != REWRITE_NO_THUNKS ? (size_t)n * STUB_THUNK_SIZE : 0), first};
    near.size = (near.size + PAGE - 1) / PAGE * PAGE;
    if (stub[0].near_end - stub[0].near > COPY_SIZE || stub[1].near_end - stub[1].near > COPY_SIZE) {
        return false;
    }
    near.at = map_near(image, near.size);
    if (!near.at) {
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *copy = (uint8_t *)near.at + i * COPY_SIZE, *above = (uint8_t *)near.at + JUMP_AT + i * JUMP_SIZE;
        size_t size = (size_t)(stub[i].near_end - stub[i].near);
        raw_copy(copy, stub[i].near, size);
        write32(copy + (stub[i].near_offset - stub[i].near) - 4, thread_offset(&profd_collect_thread.direct));
        write64(copy + size - 8, (uintptr_t)stub[i].none);
        raw_copy(above, jump, sizeof jump);
        write64(above + sizeof jump, (uintptr_t)stub[i].site);
    }
    for (uint32_t i = 0; i < n && first != REWRITE_NO_THUNKS; i++) {
        bool fentry = (sites[i].form & REWRITE_FENTRY) != 0;
        thunk_write((uint8_t *)near_target(&near, &sites[i], i), image->low + sites[i].at + 5, (first + i) * SITE_BYTES,
                    fentry, near.at + JUMP_AT + (fentry ? JUMP_SIZE : 0));
    }
    if (raw_call(SYS_mprotect, near.at, near.size, PROT_READ | PROT_EXEC, 0) < 0) {
        near_free(&near);
        return false;
    }
    *out = near;
    return true;
}

/* --- an object --- */

#define OPCODE_CALL 0xe8
#define OPCODE_JUMP 0xe9
#define OPCODE_OFF 0xa9 /* test $…, %eax */
#define PAGES_MAX 4096u /* above this, rewriting costs more memory and time than calls do */
#define PREFIX 0x67     /* prefix that linkers write before a former indirect call; it has no effect */

bool rewrite_object_find(struct rewrite_object *o, const struct stub_code stub[2], bool trust_lazy)
{
    struct rewrite_slots slots;
    struct rewrite_frames frames;
    o->count = 0;
    if (!rewrite_find_slots(&o->image, stub, trust_lazy, &slots) ||
        !rewrite_frames_find(&o->image, slots.own, &frames)) {
        return false;
    }
    uint32_t most = frames.count;
    if (most == 0) {
        return false;
    }
    if (most > o->sites_capacity) {
        long got = raw_call6(SYS_mmap, 0, (long)(most * sizeof *o->sites), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (got < 0 && got > -4096) {
            return false;
        }
        o->sites = (struct rewrite_site *)got;
        o->sites_capacity = most;
    }
    uint32_t n = rewrite_find_sites(&o->image, &frames, &slots, o->sites, most);
    __atomic_store_n(&o->count, n, __ATOMIC_RELEASE);
    return n > 0;
}

struct leaving {
    struct rewrite_object *object;
    uint32_t count;
};

/* A function has one site. */
static void function_leave(void *context, uint64_t at, uint64_t size)
{
    struct leaving *l = context;
    const struct rewrite_object *o = l->object;
    const uint64_t begin = at + o->image.bias - o->image.low;
    uint32_t low = 0, high = o->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (o->sites[middle].at < begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (begin < o->image.high - o->image.low && low < o->count && o->sites[low].at - begin < size &&
        !(o->sites[low].form & REWRITE_LEFT)) {
        o->sites[low].form |= REWRITE_LEFT;
        l->count++;
    }
}

uint32_t rewrite_object_leave_out(struct rewrite_object *o)
{
    struct leaving l = {o, 0};
    uint8_t id[BUILDID_BYTES_MAX];
    unsigned id_size = module_get_id(o->module, id);
    if (id_size) {
        leave_out_each(id, id_size, function_leave, &l);
    }
    return l.count;
}

static bool segment_protect(const struct rewrite_image *image, const ElfW(Phdr) * p, bool writable)
{
    uintptr_t low = (p->p_vaddr + image->bias) & ~(uintptr_t)(PAGE - 1);
    uintptr_t high = (p->p_vaddr + image->bias + p->p_filesz + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    long protection =
        PROT_EXEC | (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W || writable ? PROT_WRITE : 0);
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) {
        return true;
    }
    return raw_call(SYS_mprotect, low, high - low, protection, 0) >= 0;
}

static void image_close(const struct rewrite_image *image, unsigned segments)
{
    for (unsigned i = 0; i < segments; i++) {
        segment_protect(image, &image->headers[i], false);
    }
}

/* Makes the code writable. False: this is not allowed, and nothing has changed. */
static bool image_open(const struct rewrite_image *image)
{
    for (unsigned i = 0; i < image->count; i++) {
        if (!segment_protect(image, &image->headers[i], true)) {
            image_close(image, i);
            return false;
        }
    }
    return true;
}

static uint8_t opcode_on(const struct rewrite_object *o)
{
    return o->near.first != REWRITE_NO_THUNKS ? OPCODE_JUMP : OPCODE_CALL;
}

/* The bytes after the opcode of site number i. */
static uint32_t displacement(const struct rewrite_object *o, uint32_t i)
{
    return (uint32_t)(near_target(&o->near, &o->sites[i], i) - (o->image.low + o->sites[i].at + 5));
}

bool rewrite_object_patch(struct rewrite_object *o, const struct stub_code stub[2])
{
    /* Number of pages with sites: each becomes a private copy. */
    uintptr_t last = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        uintptr_t page = (o->image.low + o->sites[i].at) / PAGE;
        n += page != last;
        last = page;
    }
    if (n > PAGES_MAX) {
        return false;
    }
    uint64_t all = ~0ull, before = 0;
    if (!near_make(&o->image, o->sites, o->count, o->capacity ? o->first : REWRITE_NO_THUNKS, stub, &o->near)) {
        return false;
    }
    raw_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &before, sizeof all);
    bool open = image_open(&o->image);
    for (uint32_t i = 0; i < o->count && open; i++) {
        uint8_t *code = (uint8_t *)(o->image.low + o->sites[i].at);
        uint32_t value = displacement(o, i);
        if (o->sites[i].form & REWRITE_LONG) {
            *(volatile uint8_t *)(code - 1) = PREFIX;
        }
        *(volatile uint8_t *)code = o->sites[i].form & REWRITE_LEFT ? OPCODE_OFF : opcode_on(o);
        raw_copy(code + 1, &value, sizeof value);
    }
    if (open) {
        image_close(&o->image, o->image.count);
    }
    raw_call(SYS_rt_sigprocmask, 2, &before, 0, sizeof before);
    if (!open) {
        near_free(&o->near);
    }
    o->state = REWRITE_ON;
    return open;
}

void rewrite_object_switch(struct rewrite_object *o, bool on)
{
    uint32_t state = on ? REWRITE_ON : REWRITE_OFF;
    if (!o->count || o->state == state || !image_open(&o->image)) {
        return;
    }
    for (uint32_t i = 0; i < o->count; i++) {
        uint8_t *code = (uint8_t *)(o->image.low + o->sites[i].at), from = on ? OPCODE_OFF : opcode_on(o);
        uint32_t value = displacement(o, i), has;
        if (o->sites[i].form & REWRITE_LEFT) {
            continue;
        }
        raw_copy(&has, code + 1, sizeof has);
        /* A breakpoint of a debugger, or code that has changed, is not modified. */
        if (has == value && __atomic_load_n(code, __ATOMIC_RELAXED) == from) {
            __atomic_store_n(code, on ? opcode_on(o) : OPCODE_OFF, __ATOMIC_RELAXED);
        }
    }
    image_close(&o->image, o->image.count);
    o->state = state;
}

void rewrite_object_reset(struct rewrite_object *o)
{
    __atomic_store_n(&o->count, 0, __ATOMIC_RELEASE);
    near_free(&o->near);
}

uint32_t rewrite_object_search(const struct rewrite_object *o, uintptr_t self)
{
    uint32_t low = 0, high = o->count, at = (uint32_t)(self - o->image.low - 5);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (o->sites[middle].at == at) {
            return middle + 1;
        }
        if (o->sites[middle].at < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

#endif
