#include "client/collect/rewrite_object.h"

#include <sys/mman.h>

#include "client/collect/raw.h"
#include "client/collect/stub.h"

#if defined __x86_64__

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

static void copy_write(uint8_t *to, const struct stub_code *stub)
{
    size_t size = (size_t)(stub->near_end - stub->near);
    raw_copy(to, stub->near, size);
    write32(to + (stub->near_offset - stub->near) - 4, thread_offset(&profd_collect_thread.direct));
    write64(to + size - 8, (uintptr_t)stub->none);
}

static void jump_write(uint8_t *to, void (*target)(void))
{
    static const uint8_t jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc}; /* jmp *2(%rip) */
    raw_copy(to, jump, sizeof jump);
    write64(to + sizeof jump, (uintptr_t)target);
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

uintptr_t rewrite_near_target(const struct rewrite_near *near, const struct rewrite_site *site, uint32_t i)
{
    if (near->first != REWRITE_NO_THUNKS) {
        return near->at + THUNKS_AT + (uintptr_t)i * STUB_THUNK_SIZE;
    }
    return near->at + (site->form & REWRITE_FENTRY ? COPY_SIZE : 0);
}

bool rewrite_near_make(const struct rewrite_image *image, const struct rewrite_site *sites, uint32_t n, uint32_t first,
                       const struct stub_code stub[2], struct rewrite_near *out)
{
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
        copy_write((uint8_t *)near.at + i * COPY_SIZE, &stub[i]);
        jump_write((uint8_t *)near.at + JUMP_AT + i * JUMP_SIZE, stub[i].site);
    }
    for (uint32_t i = 0; i < n && first != REWRITE_NO_THUNKS; i++) {
        bool fentry = (sites[i].form & REWRITE_FENTRY) != 0;
        thunk_write((uint8_t *)rewrite_near_target(&near, &sites[i], i), image->low + sites[i].at + 5,
                    (first + i) * SITE_BYTES, fentry, near.at + JUMP_AT + (fentry ? JUMP_SIZE : 0));
    }
    if (raw_call(SYS_mprotect, near.at, near.size, PROT_READ | PROT_EXEC, 0) < 0) {
        rewrite_near_free(&near);
        return false;
    }
    *out = near;
    return true;
}

void rewrite_near_free(struct rewrite_near *near)
{
    if (near->at) {
        raw_call(SYS_munmap, near->at, near->size, 0, 0);
    }
    near->at = 0;
}

#endif
