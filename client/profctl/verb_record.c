/* profctl record: processes are sampled from outside. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "record/record.h"

#define CONNECT_MS 2000u

static const struct profctl_option options[] = {
    {"all", 'a', NULL, "sample all processes of this host"},
    {"pid", 'p', "PID", "sample this process, and those that it starts"},
    {"cgroup", 0, "G", "sample the processes of this control group, such as system.slice/redis.service"},
    {"rate", 0, "HZ", "ticks per second of CPU time, 1 to 10000 (default 19)"},
    {"unwind", 0, "fp|table", "how callers are found: by frame pointers (default), or by unwind tables"},
    {"label", 'l', "K=V", "attach a label to everything that is sampled; may be repeated"},
    {"kernel", 0, NULL, "name the functions of the kernel (default: one function)"},
    {"verbose", 'v', NULL, "print at the end what became of the samples"},
};

struct record_session {
    const struct profctl_call *call;
    struct record_config config;
    struct record *record;
    bool verbose;
    uint64_t spooled, failed;
    char why[512]; /* of the first upload that was not stored */
};

static void outcome_note(void *context, const struct profd_outcome *o)
{
    struct record_session *s = context;
    if (o->status == PROFD_OK && !o->spooled && o->sentence[0] != '\0') {
        profctl_complain("%s", o->sentence);
    }
    if (o->executable || o->earlier || (o->status == PROFD_OK && !o->spooled)) {
        return;
    }
    if (!s->spooled && !s->failed) {
        (void)snprintf(s->why, sizeof s->why, "%s", o->sentence);
    }
    s->spooled += o->spooled;
    s->failed += o->status != PROFD_OK;
}

static enum profd_status session_label(void *context, struct profd_upload *u, struct profd_error *e)
{
    const struct record_session *s = context;
    return labels_add(s->call, u, e);
}

static enum profd_status session_open(struct record_session *s, struct profd_error *e)
{
    enum profd_status status = record_open(&s->config, &s->record, e);
    status = status ? status : record_start(s->record, e);
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "record");
}

/* Ends sampling in every case. Says what did not reach the daemon, and, with verbose, what became of the samples. */
static enum profd_status session_finish(struct record_session *s, enum profd_status status, struct profd_error *e)
{
    struct profd_error late = {""};
    enum profd_status last = record_finish(s->record, &late);
    const struct record_counts *n = record_get_counts(s->record);
    if (s->failed) {
        profctl_complain("record: %" PRIu64 " of %" PRIu64 " uploads were not stored: %s", s->failed, n->uploads,
                         s->why);
    } else if (s->spooled) {
        profctl_complain("record: %" PRIu64 " of %" PRIu64 " uploads wait in the spool: %s", s->spooled, n->uploads,
                         s->why);
    }
    if (n->lost || n->records_lost) {
        profctl_complain("record: lost %" PRIu64 " of %" PRIu64 " samples, and %" PRIu64
                         " records of what processes mapped",
                         n->lost, n->samples, n->records_lost);
    }
    if (n->unclaimed) {
        profctl_complain("record: %" PRIu64
                         " uploads of other users are stored as those of this user: the daemon takes "
                         "claims only from root and the user profd-record",
                         n->unclaimed);
    }
    if (n->samples == 0 && n->lost == 0) {
        profctl_complain("record: no sample was taken, so nothing is stored: what was sampled used less CPU time than "
                         "one tick needs at %u a second. --rate takes more",
                         s->config.rate);
    }
    if (!record_sees_kernel(s->record)) {
        profctl_complain("record: time that processes spent in the kernel was not sampled, because "
                         "kernel.perf_event_paranoid hides it from this user");
    }
    if (s->verbose) {
        profctl_complain("record: %" PRIu64 " samples: %" PRIu64 " in functions, %" PRIu64 " in the kernel, %" PRIu64
                         " outside, %" PRIu64 " lost, %" PRIu64 " of processes under the collector; %" PRIu64
                         " whole stacks; uploads: %" PRIu64,
                         n->samples, n->functions, n->kernel, n->outside, n->lost, n->elsewhere, n->complete,
                         n->uploads);
    }

    if (status != PROFD_OK) {
        return profd_error_wrap(e, status, "record");
    }
    return last == PROFD_OK ? PROFD_OK : profd_error_set(e, last, "record: %s", late.sentence);
}

/* A descriptor that is readable when one of the signals is pending. */
static enum profd_status signals_open(const sigset_t *set, int *fd, struct profd_error *e)
{
    *fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *fd >= 0 ? PROFD_OK : profd_error_set(e, PROFD_IO, "record: signalfd: %s", strerror(errno));
}

/* Samples a command until it ends. The exit status is that of the command. */
static enum profd_status command_record(struct record_session *s, const struct profctl_call *call,
                                        struct profd_error *e)
{
    struct run_command c;
    int signals = -1;
    if (!run_command_start(&c, "record", call->arguments)) {
        return PROFD_INTERNAL;
    }
    s->config.pid = (uint32_t)c.child;
    enum profd_status status = signals_open(&c.watched, &signals, e);
    status = status ? status : session_open(s, e);
    if (status != PROFD_OK) {
        run_command_abandon(&c);
    } else {
        const bool ran = run_command_release(&c);
        while (!run_command_step(&c, status != PROFD_OK, call->exit_status)) { /* it goes on if sampling fails */
            status = status ? status : record_step(s->record, &signals, 1, e);
        }
        status = ran ? session_finish(s, status, e) : PROFD_OK;
        *call->exit_status = run_command_end(&c, *call->exit_status);
    }
    close(signals);
    return status;
}

/* Samples until Ctrl-C, SIGTERM, SIGHUP, or the end of the process. */
static enum profd_status host_record(struct record_session *s, struct profd_error *e)
{
    sigset_t set;
    int fds[2] = {-1, -1}, number = 0;
    siginfo_t info;
    const struct timespec now = {0, 0};
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    enum profd_status status = signals_open(&set, &fds[0], e);
    if (status == PROFD_OK && s->config.pid != 0) {
        fds[1] = (int)syscall(SYS_pidfd_open, s->config.pid, 0);
        status = fds[1] >= 0 ? PROFD_OK
                             : profd_error_set(e, PROFD_NO_INPUT, "record: process %" PRIu32 ": %s", s->config.pid,
                                               strerror(errno));
    }
    status = status ? status : session_open(s, e);
    const bool open = status == PROFD_OK;
    while (status == PROFD_OK && number <= 0) {
        struct pollfd ended = {.fd = fds[1], .events = POLLIN};
        status = record_step(s->record, fds, fds[1] >= 0 ? 2 : 1, e);
        number = fds[1] >= 0 && poll(&ended, 1, 0) > 0 ? 1 : sigtimedwait(&set, &info, &now);
    }
    return open ? session_finish(s, status, e) : status;
}

static enum profd_status record_run(const struct profctl_call *call, struct profd_error *e)
{
    const bool all = profctl_value(call, "all") != NULL, command = call->argument_count > 0;
    const char *unwind = profctl_value(call, "unwind");
    unsigned long rate = RECORD_RATE_DEFAULT, pid = 0;
    struct record_session s = {.call = call, .verbose = profctl_value(call, "verbose") != NULL};
    s.config = (struct record_config){.daemon = profctl_options(call, 0),
                                      .on_exec = command,
                                      .cgroup = profctl_value(call, "cgroup"),
                                      .kernel = profctl_value(call, "kernel") != NULL,
                                      .tables = unwind && strcmp(unwind, "table") == 0,
                                      .label = session_label,
                                      .sink = outcome_note,
                                      .context = &s};
    s.config.daemon.connect_ms = CONNECT_MS;
    TRY(labels_check(call, e) ? PROFD_USAGE : PROFD_OK);
    TRY(profctl_number(call, "rate", "a number", 1, RECORD_RATE_MAX, &rate, e));
    TRY(profctl_number(call, "pid", "a number", 1, INT32_MAX, &pid, e));
    s.config.rate = (uint32_t)rate;
    s.config.pid = (uint32_t)pid;
    FAIL_IF(unwind && !s.config.tables && strcmp(unwind, "fp") != 0, e, PROFD_USAGE,
            "record: --unwind \"%s\" is neither fp nor table", unwind);
    FAIL_IF(all + command + (s.config.pid != 0) + (s.config.cgroup != NULL) != 1, e, PROFD_USAGE,
            "record: exactly one of -a, -p PID, --cgroup G or a command must say what to sample");
    enum profd_status status = command ? command_record(&s, call, e) : host_record(&s, e);
    record_close(s.record);
    return status;
}

const struct profctl_verb verb_record = {
    .name = "record",
    .arguments = "-a | -p PID | --cgroup G | [--] COMMAND [ARGUMENT...]",
    .summary = "Sample processes from outside",
    .details =
        "Programs need not be compiled for it. Samples until Ctrl-C, or until the process or the command ends.\n",
    OPTIONS(options),
    .arguments_most = (size_t)-1,
    .has_command = true,
    .run = record_run,
};
