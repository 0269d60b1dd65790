#include "elf/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "elf/sandbox_filter.h"

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
    if (done != 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the kernel refused the sandbox's Landlock rules: %s",
                               strerror(error));
    }
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

/* The system calls of a worker. */
static enum profd_status install_filter(int output, struct profd_error *e)
{
    static const long free_calls[] = {
        SYS_read,    SYS_pread64, SYS_fstat,         SYS_munmap,           SYS_mremap,         SYS_brk,    SYS_futex,
        SYS_sysinfo, SYS_exit,    SYS_exit_group,    SYS_rt_sigreturn,     SYS_rt_sigprocmask, SYS_gettid, SYS_getpid,
        SYS_madvise, SYS_close,   SYS_clock_gettime, SYS_sched_getaffinity /* malloc, when memory is exhausted */};
    /* Calls with a path, which libdw makes: it asks for the path of a descriptor, and looks for other files of
     * -gsplit-dwarf and dwz. */
    static const long path_calls[] = {
        SYS_openat, SYS_readlinkat, SYS_newfstatat, SYS_statx, SYS_faccessat,
#ifdef __x86_64__
        SYS_open,   SYS_readlink,   SYS_stat,       SYS_lstat, SYS_access,
#endif
    };
    /* Descriptor 2 is closed. A library that writes its last words there gets an error, and ends by its own signal. */
    const uint32_t out[] = {(uint32_t)output, 2}, self[] = {(uint32_t)getpid()}, mine[] = {0};
    const uint32_t asks[] = {F_GETFD, F_GETFL, F_GET_SEALS};
    struct sandbox_filter f;
    sandbox_filter_begin(&f);
    for (size_t i = 0; i < sizeof free_calls / sizeof *free_calls; i++) {
        sandbox_filter_allow(&f, free_calls[i]);
    }
    for (size_t i = 0; i < sizeof path_calls / sizeof *path_calls; i++) {
        sandbox_filter_refuse(&f, path_calls[i]);
    }
    sandbox_filter_allow_memory(&f);
    sandbox_filter_allow_with(&f, SYS_write, 0, out, 2);
    sandbox_filter_allow_with(&f, SYS_writev, 0, out + 1, 1);
    sandbox_filter_allow_with(&f, SYS_pwrite64, 0, out, 1);
    sandbox_filter_allow_with(&f, SYS_fcntl, 1, asks, 3);
    sandbox_filter_allow_with(&f, SYS_tgkill, 0, self, 1); /* abort() */
    sandbox_filter_allow_with(&f, SYS_prlimit64, 0, mine, 1);
    return sandbox_filter_install(&f, SECCOMP_RET_KILL_PROCESS, e);
}

enum profd_status sandbox_enter(const struct sandbox_limits *limits, unsigned descriptors, int output,
                                struct profd_error *e)
{
    if (close_range(descriptors, ~0u, 0) != 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the sandbox could not close descriptors: %s", strerror(errno));
    }
    if (!SANDBOX_POSSIBLE) {
        return PROFD_OK;
    }
    clearenv();
    /* Makes the allocator draw its random key before the sandbox is closed. */
    free(malloc(1));
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return profd_error_set(e, PROFD_INTERNAL, "the sandbox could not give up privileges: %s", strerror(errno));
    }
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
