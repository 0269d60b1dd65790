#include "client/collect/rewrite_object.h"

#if defined __x86_64__

#include <sys/mman.h>

#include "client/collect/leave_out.h"
#include "client/collect/module.h"
#include "client/collect/raw.h"

#define PAGE 4096u
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
    return (uint32_t)(rewrite_near_target(&o->near, &o->sites[i], i) - (o->image.low + o->sites[i].at + 5));
}

static void site_patch(const struct rewrite_object *o, uint32_t i)
{
    uint8_t *code = (uint8_t *)(o->image.low + o->sites[i].at);
    uint32_t value = displacement(o, i);
    if (o->sites[i].form & REWRITE_LONG) {
        *(volatile uint8_t *)(code - 1) = PREFIX;
    }
    *(volatile uint8_t *)code = o->sites[i].form & REWRITE_LEFT ? OPCODE_OFF : opcode_on(o);
    raw_copy(code + 1, &value, sizeof value);
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
    if (!rewrite_near_make(&o->image, o->sites, o->count, o->capacity ? o->first : REWRITE_NO_THUNKS, stub, &o->near)) {
        return false;
    }
    raw_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &before, sizeof all);
    bool open = image_open(&o->image);
    for (uint32_t i = 0; i < o->count && open; i++) {
        site_patch(o, i);
    }
    if (open) {
        image_close(&o->image, o->image.count);
    }
    raw_call(SYS_rt_sigprocmask, 2, &before, 0, sizeof before);
    if (!open) {
        rewrite_near_free(&o->near);
    }
    o->state = REWRITE_ON;
    return open;
}

/* A breakpoint of a debugger, or code that has changed, is not modified. */
static void site_switch(const struct rewrite_object *o, uint32_t i, bool on)
{
    uint8_t *code = (uint8_t *)(o->image.low + o->sites[i].at), from = on ? OPCODE_OFF : opcode_on(o);
    uint32_t value = displacement(o, i), has;
    raw_copy(&has, code + 1, sizeof has);
    if (has == value && __atomic_load_n(code, __ATOMIC_RELAXED) == from) {
        __atomic_store_n(code, on ? opcode_on(o) : OPCODE_OFF, __ATOMIC_RELAXED);
    }
}

void rewrite_object_switch(struct rewrite_object *o, bool on)
{
    uint32_t state = on ? REWRITE_ON : REWRITE_OFF;
    if (!o->count || o->state == state || !image_open(&o->image)) {
        return;
    }
    for (uint32_t i = 0; i < o->count; i++) {
        if (!(o->sites[i].form & REWRITE_LEFT)) {
            site_switch(o, i, on);
        }
    }
    image_close(&o->image, o->image.count);
    o->state = state;
}

void rewrite_object_reset(struct rewrite_object *o)
{
    __atomic_store_n(&o->count, 0, __ATOMIC_RELEASE);
    rewrite_near_free(&o->near);
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
