#include "client/collect/saved.h"

#if defined __x86_64__
#include <cpuid.h>
#endif

/* The components of XSAVE that fit into the stub's 2,688 bytes: all but AMX and PKRU, which libc's code never uses. 0:
 * the machine has only FXSAVE. */
static uint64_t vector_mask(void)
{
#if defined __x86_64__
    static uint64_t mask;
    static uint32_t known;
    if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
        unsigned a, b, c, d;
        uint32_t low, high;
        if (__get_cpuid(1, &a, &b, &c, &d) && c & 1u << 27) {
            __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
            mask = ((uint64_t)high << 32 | low) & 0x800ffu;
        }
        __atomic_store_n(&known, 1, __ATOMIC_RELEASE);
    }
    return mask;
#else
    return 0;
#endif
}

int saved_call(void (*function)(void), uintptr_t a, uintptr_t b)
{
    return profd_collect_call(function, a, b, vector_mask());
}
