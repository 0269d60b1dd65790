#include "client/collect/saved.h"

#if defined __x86_64__
#include <cpuid.h>
#endif

int saved_call(void (*function)(void), uintptr_t a, uintptr_t b)
{
    /* The components of XSAVE that fit into the stub's 2,688 bytes: all but AMX and PKRU, which libc's code never uses.
     * 0: the machine has only FXSAVE, or is no x86-64. */
    static uint64_t mask;
#if defined __x86_64__
    static uint32_t known;
    if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
        unsigned eax, ebx, ecx, edx;
        uint32_t low, high;
        if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & 1u << 27) {
            __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
            mask = ((uint64_t)high << 32 | low) & 0x800ffu;
        }
        __atomic_store_n(&known, 1, __ATOMIC_RELEASE);
    }
#endif
    return profd_collect_call(function, a, b, mask);
}
