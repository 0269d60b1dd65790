#include "client/collect/vdso.h"

#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <time.h>

#include "client/collect/raw.h"

#ifdef __aarch64__
static const char clock_name[] = "__kernel_clock_gettime";
#else
static const char clock_name[] = "__vdso_clock_gettime";
#endif

typedef int clock_function(clockid_t, struct timespec *);
static clock_function *clock_get;

/* The table of names follows that of symbols, in every vDSO: linkers order them so. */
static uintptr_t symbol_find(uintptr_t base, const ElfW(Dyn) * d)
{
    uintptr_t symbols = 0, names = 0;
    for (; d->d_tag != DT_NULL; d++) {
        symbols = d->d_tag == DT_SYMTAB ? base + d->d_un.d_ptr : symbols;
        names = d->d_tag == DT_STRTAB ? base + d->d_un.d_ptr : names;
    }
    for (const ElfW(Sym) *s = (const ElfW(Sym) *)symbols; symbols && (uintptr_t)(s + 1) <= names; s++) {
        const char *end = raw_after((const char *)names + s->st_name, clock_name);
        if (end && !*end && s->st_shndx != SHN_UNDEF) {
            return base + s->st_value;
        }
    }
    return 0;
}

void vdso_prepare(void)
{
    const uintptr_t base = getauxval(AT_SYSINFO_EHDR);
    const ElfW(Ehdr) *h = (const ElfW(Ehdr) *)base;
    const ElfW(Phdr) *p = base ? (const ElfW(Phdr) *)(base + h->e_phoff) : NULL;
    for (unsigned i = 0; p && i < h->e_phnum; i++) {
        if (p[i].p_type == PT_DYNAMIC) {
            union {
                uintptr_t address;
                clock_function *function;
            } found = {.address = symbol_find(base, (const ElfW(Dyn) *)(base + p[i].p_vaddr))};
            clock_get = found.function;
        }
    }
}

bool vdso_now_ms(uint64_t *ms)
{
    struct timespec t;
    if (!clock_get || clock_get(CLOCK_MONOTONIC_COARSE, &t) != 0) {
        return false;
    }
    *ms = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
    return true;
}
