#include "gate/cage.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "elf/sandbox.h"
#include "elf/sandbox_filter.h"

enum profd_status cage_drop_privileges(struct profd_error *e)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    const struct passwd *user = geteuid() ? NULL : getpwnam("profd-gate");

    if (user && (setgroups(0, NULL) || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
                 setresuid(user->pw_uid, user->pw_uid, user->pw_uid))) {
        return profd_error_set(e, PROFD_INTERNAL, "cannot become the user profd-gate: %s", strerror(errno));
    }
    if (syscall(SYS_capset, &header, none)) {
        return profd_error_set(e, PROFD_INTERNAL, "cannot drop capabilities: %s", strerror(errno));
    }
    return PROFD_OK;
}

enum profd_status cage_enter(struct profd_error *e)
{
    static const long calls[] = {
        SYS_read,         SYS_write,          SYS_writev,       SYS_pread64,         SYS_recvfrom,   SYS_recvmsg,
        SYS_sendto,       SYS_sendmsg,        SYS_accept4,      SYS_connect,         SYS_getsockopt, SYS_setsockopt,
        SYS_getsockname,  SYS_getpeername,    SYS_shutdown,     SYS_close,           SYS_fcntl,      SYS_fstat,
        SYS_epoll_ctl,    SYS_epoll_pwait,    SYS_munmap,       SYS_mremap,          SYS_brk,        SYS_madvise,
        SYS_futex,        SYS_clock_gettime,  SYS_getrandom,    SYS_getpid,          SYS_gettid,     SYS_sysinfo,
        SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_restart_syscall, SYS_exit,       SYS_exit_group,
#ifdef SYS_epoll_wait
        SYS_epoll_wait,   SYS_time,
#endif
        SYS_epoll_pwait2, SYS_gettimeofday};
    static const uint32_t families[] = {AF_UNIX};
    struct sandbox_filter f;
    enum profd_status status;

    if (!SANDBOX_POSSIBLE) {
        return PROFD_OK;
    }
    clearenv();
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        return profd_error_set(e, PROFD_INTERNAL, "cannot give up new privileges: %s", strerror(errno));
    }
    status = sandbox_deny_files(e);
    if (status) {
        return status;
    }
    sandbox_filter_begin(&f);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        sandbox_filter_allow(&f, calls[i]);
    }
    sandbox_filter_allow_memory(&f);
    sandbox_filter_allow_with(&f, SYS_socket, 0, families, 1);
    return sandbox_filter_install(&f, SECCOMP_RET_ERRNO | EPERM, e);
}
