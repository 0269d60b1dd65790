#include "elf/sandbox_filter.h"

#include <errno.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Our own ELF header, provided by the linker: its machine determines the numbers of system calls. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static void add(struct sandbox_filter *p, uint16_t code, uint32_t value, uint8_t yes, uint8_t no)
{
    if (p->count < SANDBOX_FILTER_STEPS) {
        p->code[p->count] = (struct sock_filter){code, yes, no, value};
    }
    p->count++;
}

static void load(struct sandbox_filter *p, size_t offset)
{
    add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void verdict(struct sandbox_filter *p, uint32_t what)
{
    add(p, BPF_RET | BPF_K, what, 0, 0);
}

/* Offset of the low or high half of an argument (the machines of profd are little-endian). */
static size_t argument(size_t number, size_t half)
{
    return offsetof(struct seccomp_data, args) + 8 * number + 4 * half;
}

void sandbox_filter_allow(struct sandbox_filter *p, long call)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
    verdict(p, SECCOMP_RET_ALLOW);
}

void sandbox_filter_refuse(struct sandbox_filter *p, long call)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
    verdict(p, SECCOMP_RET_ERRNO | EPERM);
}

/* Loads the number of the call again. */
void sandbox_filter_allow_with(struct sandbox_filter *p, long call, unsigned number, const uint32_t *values,
                               uint8_t count)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, (uint8_t)(count + 3));
    load(p, argument(number, 0));
    for (uint8_t i = 0; i < count; i++) {
        add(p, BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(count - i), 0);
    }
    verdict(p, SECCOMP_RET_KILL_PROCESS);
    verdict(p, SECCOMP_RET_ALLOW);
}

void sandbox_filter_allow_memory(struct sandbox_filter *p)
{
    /* mmap: private, anonymous, never executable, no file. */
    add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 8);
    load(p, argument(2, 0));
    add(p, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 4, 0);
    load(p, argument(3, 0));
    add(p, BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 2);
    add(p, BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 1, 0);
    add(p, BPF_JMP | BPF_JSET | BPF_K, MAP_PRIVATE, 1, 0);
    verdict(p, SECCOMP_RET_KILL_PROCESS);
    verdict(p, SECCOMP_RET_ALLOW);
    /* mprotect: the allocator needs it when its first heap is full; never with PROT_EXEC. */
    add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4);
    load(p, argument(2, 0));
    add(p, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
    verdict(p, SECCOMP_RET_KILL_PROCESS);
    verdict(p, SECCOMP_RET_ALLOW);
}

void sandbox_filter_begin(struct sandbox_filter *p)
{
    uint32_t arch = (uint32_t)__ehdr_start.e_machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE;
    p->count = 0;
    load(p, offsetof(struct seccomp_data, arch));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0);
    verdict(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, nr));
}

enum profd_status sandbox_filter_install(struct sandbox_filter *p, uint32_t otherwise, struct profd_error *e)
{
    verdict(p, otherwise);
    if (p->count > SANDBOX_FILTER_STEPS) {
        return profd_error_set(e, PROFD_INTERNAL, "the sandbox's program has %u steps, above %d", p->count,
                               SANDBOX_FILTER_STEPS);
    }
    struct sock_fprog program = {p->count, p->code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the kernel refused the sandbox's seccomp program: %s",
                               strerror(errno));
    }
    return PROFD_OK;
}
