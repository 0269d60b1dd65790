#include "elf/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/status.h"

/* The seccomp program of a worker: which system calls it may make. */

#define FILTER_STEPS 180

struct sandbox_filter {
    struct sock_filter code[FILTER_STEPS];
    unsigned short count; /* above FILTER_STEPS: it was too long */
};

/* Our own ELF header, provided by the linker: its machine determines the numbers of system calls. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static void add(struct sandbox_filter *p, uint16_t code, uint32_t value, uint8_t yes, uint8_t no)
{
    if (p->count < FILTER_STEPS) {
        p->code[p->count] = (struct sock_filter){code, yes, no, value};
    }
    p->count++;
}

static void load(struct sandbox_filter *p, size_t offset)
{
    add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* Loads the low half of an argument. The machines of profd are little-endian. */
static void load_argument(struct sandbox_filter *p, size_t number)
{
    load(p, offsetof(struct seccomp_data, args) + 8 * number);
}

static void verdict(struct sandbox_filter *p, uint32_t what)
{
    add(p, BPF_RET | BPF_K, what, 0, 0);
}

/* Gives the same verdict on each call of the list. */
static void decide(struct sandbox_filter *p, const long *calls, size_t count, uint32_t what)
{
    for (size_t i = 0; i < count; i++) {
        add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
        verdict(p, what);
    }
}

/* Allows the call if the argument, an int for the kernel, has one of at most 250 values; with another, the process is
 * ended. */
static void allow_with(struct sandbox_filter *p, long call, unsigned number, const uint32_t *values, uint8_t count)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, (uint8_t)(count + 3));
    load_argument(p, number);
    for (uint8_t i = 0; i < count; i++) {
        add(p, BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(count - i), 0);
    }
    verdict(p, SECCOMP_RET_KILL_PROCESS);
    verdict(p, SECCOMP_RET_ALLOW);
}

/* The kernel's structure as of version 6; older kernels use its beginning. */
struct landlock_rules {
    uint64_t files, network, scoped;
};

static const struct {
    uint64_t files, network, scoped;
    size_t size;
} landlock_versions[] = {
    {0, 0, 0, 0},
    {(UINT64_C(1) << 13) - 1, 0, 0, 8},  /* execute … make_sym */
    {(UINT64_C(1) << 14) - 1, 0, 0, 8},  /* refer */
    {(UINT64_C(1) << 15) - 1, 0, 0, 8},  /* truncate */
    {(UINT64_C(1) << 15) - 1, 3, 0, 16}, /* bind and connect TCP */
    {(UINT64_C(1) << 16) - 1, 3, 0, 16}, /* ioctl_dev */
    {(UINT64_C(1) << 16) - 1, 3, 3, 24}, /* abstract sockets, signals */
};

int sandbox_landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

enum profd_status sandbox_deny_files(struct profd_error *e)
{
    int version = sandbox_landlock_version();
    int known = (int)(sizeof landlock_versions / sizeof *landlock_versions) - 1;
    if (version == 0) {
        return PROFD_OK;
    }
    if (version > known) {
        version = known;
    }
    struct landlock_rules rules = {landlock_versions[version].files, landlock_versions[version].network,
                                   landlock_versions[version].scoped};
    int set = (int)syscall(SYS_landlock_create_ruleset, &rules, landlock_versions[version].size, 0u);
    long done = set < 0 ? -1 : syscall(SYS_landlock_restrict_self, set, 0u);
    int error = errno;
    if (set >= 0) {
        close(set);
    }
    FAIL_IF(done != 0, e, PROFD_INTERNAL, "the kernel refused the sandbox's Landlock rules: %s", strerror(error));
    return PROFD_OK;
}

static int set_limit(int resource, uint64_t soft, uint64_t hard)
{
    struct rlimit limit = {soft, hard};
    return setrlimit((__rlimit_resource_t)resource, &limit);
}

void sandbox_lower(const struct sandbox_limits *limits)
{
    if (!SANDBOX_POSSIBLE) {
        return;
    }
    struct rlimit now;
    if (getrlimit(RLIMIT_AS, &now) == 0 && limits->memory < now.rlim_max) {
        set_limit(RLIMIT_AS, limits->memory, limits->memory);
    }
    if (getrlimit(RLIMIT_CPU, &now) == 0 && limits->cpu_seconds < now.rlim_cur) {
        set_limit(RLIMIT_CPU, limits->cpu_seconds, limits->cpu_seconds + 1);
    }
}

/* Installs the seccomp program permanently for this process; any call that it does not name ends the process.
 * NO_NEW_PRIVS must be set. INTERNAL if the kernel refuses it. */
static enum profd_status install_filter(int output, struct profd_error *e)
{
    static const long free_calls[] = {
        SYS_read,    SYS_pread64, SYS_fstat,         SYS_munmap,           SYS_mremap,         SYS_brk,    SYS_futex,
        SYS_sysinfo, SYS_exit,    SYS_exit_group,    SYS_rt_sigreturn,     SYS_rt_sigprocmask, SYS_gettid, SYS_getpid,
        SYS_madvise, SYS_close,   SYS_clock_gettime, SYS_sched_getaffinity /* malloc, when memory is exhausted */};
    /* libdw makes calls with a path: it asks for the path of a descriptor, and looks for other files of -gsplit-dwarf
     * and dwz. They fail with EPERM. */
    static const long path_calls[] = {
        SYS_openat, SYS_readlinkat, SYS_newfstatat, SYS_statx, SYS_faccessat,
#ifdef __x86_64__
        SYS_open,   SYS_readlink,   SYS_stat,       SYS_lstat, SYS_access,
#endif
    };
    /* Descriptor 2 is closed. A library that writes its last words there gets an error, and ends by its own signal. */
    const uint32_t out[] = {(uint32_t)output, 2}, self[] = {(uint32_t)getpid()}, mine[] = {0};
    const uint32_t asks[] = {F_GETFD, F_GETFL, F_GET_SEALS};
    struct sandbox_filter f = {.count = 0};

    /* Another machine's numbering would give the numbers below another meaning. */
    const uint32_t arch = (uint32_t)__ehdr_start.e_machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE;
    load(&f, offsetof(struct seccomp_data, arch));
    add(&f, BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0);
    verdict(&f, SECCOMP_RET_KILL_PROCESS);
    load(&f, offsetof(struct seccomp_data, nr));
    decide(&f, free_calls, sizeof free_calls / sizeof *free_calls, SECCOMP_RET_ALLOW);
    decide(&f, path_calls, sizeof path_calls / sizeof *path_calls, SECCOMP_RET_ERRNO | EPERM);

    /* mmap: private, anonymous, never executable, no file. */
    add(&f, BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 8);
    load_argument(&f, 2);
    add(&f, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 4, 0);
    load_argument(&f, 3);
    add(&f, BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 2);
    add(&f, BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 1, 0);
    add(&f, BPF_JMP | BPF_JSET | BPF_K, MAP_PRIVATE, 1, 0);
    verdict(&f, SECCOMP_RET_KILL_PROCESS);
    verdict(&f, SECCOMP_RET_ALLOW);

    /* mprotect: the allocator needs it when its first heap is full; never with PROT_EXEC. */
    add(&f, BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4);
    load_argument(&f, 2);
    add(&f, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
    verdict(&f, SECCOMP_RET_KILL_PROCESS);
    verdict(&f, SECCOMP_RET_ALLOW);

    allow_with(&f, SYS_write, 0, out, 2);
    allow_with(&f, SYS_writev, 0, out + 1, 1);
    allow_with(&f, SYS_pwrite64, 0, out, 1);
    allow_with(&f, SYS_fcntl, 1, asks, 3);
    allow_with(&f, SYS_tgkill, 0, self, 1); /* abort() */
    allow_with(&f, SYS_prlimit64, 0, mine, 1);
    verdict(&f, SECCOMP_RET_KILL_PROCESS);
    FAIL_IF(f.count > FILTER_STEPS, e, PROFD_INTERNAL, "the sandbox's program has %u steps, above %d", f.count,
            FILTER_STEPS);
    const struct sock_fprog program = {f.count, f.code};
    FAIL_IF(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0, e, PROFD_INTERNAL,
            "the kernel refused the sandbox's seccomp program: %s", strerror(errno));
    return PROFD_OK;
}

enum profd_status sandbox_enter(const struct sandbox_limits *limits, unsigned descriptors, int output,
                                struct profd_error *e)
{
    FAIL_IF(close_range(descriptors, ~0u, 0) != 0, e, PROFD_INTERNAL, "the sandbox could not close descriptors: %s",
            strerror(errno));
    if (!SANDBOX_POSSIBLE) {
        return PROFD_OK;
    }
    clearenv();
    /* Makes the allocator draw its random key before the sandbox is closed. */
    free(malloc(1));
    FAIL_IF(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0, e, PROFD_INTERNAL,
            "the sandbox could not give up privileges: %s", strerror(errno));
    TRY(sandbox_deny_files(e));
    /* Memory last, because the other calls need some. The signal at the soft CPU limit states the reason, one second
     * before the kill. */
    if (set_limit(RLIMIT_NOFILE, 0, 0) != 0 ||
        set_limit(RLIMIT_CPU, limits->cpu_seconds, limits->cpu_seconds + 1) != 0 ||
        set_limit(RLIMIT_FSIZE, limits->file_bytes, limits->file_bytes) != 0 || set_limit(RLIMIT_CORE, 0, 0) != 0 ||
        set_limit(RLIMIT_NPROC, 0, 0) != 0 || set_limit(RLIMIT_MEMLOCK, 0, 0) != 0 ||
        set_limit(RLIMIT_MSGQUEUE, 0, 0) != 0 || set_limit(RLIMIT_AS, limits->memory, limits->memory) != 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the sandbox's limits could not be set: %s", strerror(errno));
    }
    return install_filter(output, e);
}
