/* System calls without libc: no errno, no vector registers, no cancellation; allowed in signal handlers and inside any
 * function of the program. Answers below 0 are −errno. */
#ifndef PROFD_COLLECT_RAW_H
#define PROFD_COLLECT_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined __x86_64__
/* A call that the program itself makes. */
static inline long raw_call_program(long n, long a, long b, long c, long d, long e, long f)
{
    long answer;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(answer)
                     : "0"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return answer;
}
#elif defined __aarch64__
static inline long raw_call_program(long n, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "the collector knows x86-64 and AArch64"
#endif

/* Not 0: the process is known to have a seccomp filter that it did not have when it began to count. Any call could then
 * end it, so the collector makes none. */
extern uint32_t raw_denied __attribute__((visibility("hidden")));

/* A call of the collector's own. */
static inline long raw_call6(long n, long a, long b, long c, long d, long e, long f)
{
    return __atomic_load_n(&raw_denied, __ATOMIC_RELAXED) ? -1 /* EPERM */ : raw_call_program(n, a, b, c, d, e, f);
}

#define raw_call(n, a, b, c, d) raw_call6((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/* Copies single bytes where the program's registers must be preserved: the compiler must not call memcpy. */
static inline void raw_copy(void *to, const void *from, size_t n)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    while (n--) {
        *t++ = *f++;
        __asm__ volatile("" ::: "memory");
    }
}

static inline void raw_zero(void *to, size_t n)
{
    uint8_t *t = to;
    while (n--) {
        *t++ = 0;
        __asm__ volatile("" ::: "memory");
    }
}

static inline size_t raw_length(const char *text)
{
    size_t n = 0;
    while (text[n]) {
        n++;
        __asm__ volatile("" ::: "memory");
    }
    return n;
}

/* Returns the text after prefix; NULL if text does not begin with it. */
static inline const char *raw_after(const char *text, const char *prefix)
{
    while (*prefix && *text == *prefix) {
        text++;
        prefix++;
    }
    return *prefix ? NULL : text;
}

#endif
