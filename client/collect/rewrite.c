#include "client/collect/rewrite.h"

#include "client/collect/collect.h"

#if defined __x86_64__

#include <link.h>
#include <sched.h>

#include "client/collect/leave_out.h"
#include "client/collect/module.h"
#include "client/collect/option.h"
#include "client/collect/raw.h"
#include "client/collect/rewrite_object.h"
#include "client/collect/count_table.h"

#define OBJECTS_MAX 256u
#define PAGE 4096u
#define SITES_LEAST 64u /* capacity in tables of sites for objects loaded later */

/* flag of libc: no other thread was ever created */
extern char __libc_single_threaded __attribute__((weak));
static struct rewrite_object objects[OBJECTS_MAX];
static uint32_t object_count;
static uint32_t site_count;                   /* numbers given to sites with thunks */
static uint32_t wanted;                       /* rewriting at all */
static uint32_t target = 1;                   /* requested state of the sites: on or off */
static uint32_t busy;                         /* a thread is changing code */
static uint32_t closing;                      /* dlclose()s under way */
static const struct stub_code *stub;          /* of mcount and of __fentry__ */
static uint32_t left_out;                     /* functions that are not counted */
static bool stub_is_bound;                    /* to these names: slots that are not bound yet will be */
static uint8_t tried[ATTACH_MODULES_MAX + 1]; /* modules that were examined */

static bool is_alone(void)
{
    return &__libc_single_threaded && __libc_single_threaded;
}

static uint32_t object_total(void)
{
    return __atomic_load_n(&object_count, __ATOMIC_ACQUIRE);
}

/* Switches every object to the requested state, unless another thread is doing so; that thread checks again. */
static void settle(void)
{
    uint32_t on;
    do {
        if (__atomic_load_n(&closing, __ATOMIC_ACQUIRE) || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQ_REL)) {
            return;
        }
        on = __atomic_load_n(&target, __ATOMIC_ACQUIRE);
        for (uint32_t i = 0; i < object_total(); i++) {
            rewrite_object_switch(&objects[i], on != 0);
        }
        __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    } while (on != __atomic_load_n(&target, __ATOMIC_ACQUIRE));
}

void rewrite_switch(bool on)
{
    __atomic_store_n(&target, on, __ATOMIC_RELEASE);
    if (wanted) {
        settle();
    }
}

/* Assigns numbers to its sites, if there are enough; an object that is loaded again gets the same ones. Then rewrites
 * its code. */
static void object_patch(struct rewrite_object *o)
{
    if (o->capacity < o->count) {
        bool fits = site_count + o->count <= count_table_sites();
        o->first = fits ? site_count : REWRITE_NO_THUNKS;
        o->capacity = fits ? o->count : 0;
        site_count += o->capacity;
    }
    uint32_t left = rewrite_object_leave_out(o);
    if (!rewrite_object_patch(o, stub)) {
        o->count = 0;
        return;
    }
    left_out += left;
    collect_tell_left_out(left);
}

/* The loader's name of the object at an address, to recognize it later; NULL if objects are never unloaded. */
static const void *loaded_at(uintptr_t address)
{
    struct dl_find_object found;
    return module_image_find(address, &found) ? found.dlfo_link_map : NULL;
}

static int object_meet(struct dl_phdr_info *info, size_t size, void *context)
{
    uintptr_t code = 0;
    struct rewrite_object *o = &objects[object_count];
    (void)size;
    (void)context;
    if (object_count == OBJECTS_MAX ||
        !rewrite_image_fill(info->dlpi_phdr, info->dlpi_phnum, (uintptr_t)info->dlpi_addr, &o->image)) {
        return 0;
    }
    for (unsigned i = 0; i < info->dlpi_phnum && !code; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            code = (uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        }
    }
    o->module = module_find(code).module;
    if (o->module == ATTACH_MODULE_NONE) {
        return 0;
    }
    tried[o->module] = 1;
    if (!rewrite_object_find(o, stub, stub_is_bound)) {
        return 0;
    }
    o->loaded = loaded_at(code);
    __atomic_store_n(&object_count, object_count + 1, __ATOMIC_RELEASE);
    return 0;
}

void rewrite_begin(const struct stub_code given[2], bool bound)
{
    uint32_t sites = 0, capacity = SITES_LEAST;
    stub = given;
    stub_is_bound = bound;
    if (!option.rewrite || !is_alone()) {
        return;
    }
    leave_out_read(option.leave_out);
    dl_iterate_phdr(object_meet, NULL);
    for (uint32_t i = 0; i < object_count; i++) {
        sites += sites + objects[i].count <= STUB_SITES_MAX ? objects[i].count : 0;
    }
    while (capacity < sites * 2 && capacity < STUB_SITES_MAX) {
        capacity *= 2;
    }
    count_table_set_sites(capacity);
    for (uint32_t i = 0; i < object_count; i++) {
        object_patch(&objects[i]);
    }
    __atomic_store_n(&wanted, 1, __ATOMIC_RELEASE);
}

static void object_learn(uint16_t module, uintptr_t self)
{
    struct dl_find_object found;
    struct rewrite_image image;
    if (!module_image_find(self, &found)) {
        return;
    }
    const ElfW(Ehdr) *h = found.dlfo_map_start;
    if (h->e_phentsize != sizeof(ElfW(Phdr)) || h->e_phoff + h->e_phnum * sizeof(ElfW(Phdr)) > PAGE ||
        !rewrite_image_fill((const void *)((uintptr_t)h + h->e_phoff), h->e_phnum, found.dlfo_link_map->l_addr,
                            &image)) {
        return;
    }
    /* An object that was loaded at the same address before has site numbers. */
    uint32_t n = object_total(), i = 0;
    while (i < n && (objects[i].image.low != image.low || objects[i].image.high != image.high)) {
        i++;
    }
    if (i == OBJECTS_MAX || (i < n && objects[i].count)) {
        return;
    }
    struct rewrite_object *o = &objects[i];
    o->image = image;
    if (!rewrite_object_find(o, stub, stub_is_bound)) {
        return;
    }
    o->module = module;
    o->loaded = found.dlfo_link_map;
    object_patch(o);
    if (o == &objects[object_count]) {
        __atomic_store_n(&object_count, object_count + 1, __ATOMIC_RELEASE);
    }
}

void rewrite_learn(uint16_t module, uintptr_t self)
{
    if (!__atomic_load_n(&wanted, __ATOMIC_ACQUIRE) || module == 0 || module > ATTACH_MODULES_MAX || tried[module] ||
        !is_alone() || __atomic_load_n(&closing, __ATOMIC_ACQUIRE) || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    tried[module] = 1;
    object_learn(module, self);
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    settle();
}

uint32_t rewrite_left_out(void)
{
    return left_out;
}

uint32_t rewrite_site(uintptr_t self)
{
    for (uint32_t i = object_total(); i > 0; i--) {
        const struct rewrite_object *o = &objects[i - 1];
        if (o->count && o->capacity && self - o->image.low < o->image.high - o->image.low) {
            uint32_t found = rewrite_object_search(o, self);
            return found ? o->first + found : 0;
        }
    }
    return 0;
}

bool rewrite_contains(uintptr_t pc)
{
    uint32_t n = object_total();
    for (uint32_t i = 0; i < n; i++) {
        if (pc - objects[i].near.at < objects[i].near.size && objects[i].near.at) {
            return true;
        }
    }
    return false;
}

void rewrite_close_begin(void)
{
    __atomic_fetch_add(&closing, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&busy, __ATOMIC_ACQUIRE)) {
        raw_call(SYS_sched_yield, 0, 0, 0, 0);
    }
}

void rewrite_close_end(void)
{
    uint32_t n = object_total();
    for (uint32_t i = 0; i < n; i++) {
        struct rewrite_object *o = &objects[i];
        if (!o->count || !o->loaded || loaded_at(o->image.low + o->sites[0].at) == o->loaded) {
            continue;
        }
        tried[o->module] = 0;
        rewrite_object_reset(o);
    }
    if (__atomic_sub_fetch(&closing, 1, __ATOMIC_ACQ_REL) == 0 && wanted) {
        settle();
    }
}

void rewrite_begin_child(void)
{
    uint32_t n = object_total();
    if (!wanted) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        objects[i].module = 0;
        if (busy) {
            objects[i].state = REWRITE_MIXED;
        }
    }
    for (uint32_t i = 0; i <= ATTACH_MODULES_MAX; i++) {
        tried[i] = 0;
    }
    closing = profd_collect_thread.closing;
    busy = 0;
    settle();
}

#else

void rewrite_learn(uint16_t module, uintptr_t self)
{
    (void)module;
    (void)self;
}

uint32_t rewrite_left_out(void)
{
    return 0;
}

uint32_t rewrite_site(uintptr_t self)
{
    (void)self;
    return 0;
}

bool rewrite_contains(uintptr_t pc)
{
    (void)pc;
    return false;
}

void rewrite_switch(bool on)
{
    (void)on;
}

void rewrite_close_begin(void)
{
}

void rewrite_close_end(void)
{
}

void rewrite_begin_child(void)
{
}

#endif
