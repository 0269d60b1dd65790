/* profctl run: a command under the collector. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "profctl/profctl_find.h"
#include "profctl/profctl_examples.h"
#include "profctl/profctl_parse.h"
#include "profctl/run_command.h"
#include "profctl/run_delivery.h"
#include "profctl/run_judge.h"
#include "profctl/run_place.h"
#include "profctl/run_uncounted.h"
#include "proto/attach.h"

static const struct profctl_option options[] = {
    {"label", 'l', "K=V", "attach a label to everything the command counts; may be repeated"},
    {"rate", 0, "HZ", "ticks per second of CPU time, 0 to 10000 (default 99)"},
    {"clock", 0, "cpu|off", "clock of the ticks; off: no ticks (default cpu)"},
    {"memory", 0, "MIB", "memory for the counts of one process, 1 to 1024 MiB (default 64); a power of two"},
    {"rewrite", 0, NULL, "make counting cheaper by rewriting the instrumented call sites"},
    {"leave-out", 0, "FILE", "do not count calls of the functions in FILE, which report -f exclude-list writes"},
    {"wait", 0, "SECONDS", "seconds to wait for the daemon after the command has ended (default 10)"},
    {"check", 0, NULL, "print whether the command would be counted, and do not run it"},
    {"require-daemon", 0, NULL, "do not run the command if no daemon answers"},
    {"verbose", 'v', NULL, "print at the end what was delivered"},
    {"socket", 0, "PATH", "the daemon's Unix socket"},
    {"help", 'h', NULL, "print this text"},
};
enum {
    OPTION_LABEL,
    OPTION_RATE,
    OPTION_CLOCK,
    OPTION_MEMORY,
    OPTION_REWRITE,
    OPTION_LEAVE_OUT,
    OPTION_WAIT,
    OPTION_CHECK,
    OPTION_REQUIRE,
    OPTION_VERBOSE,
    OPTION_SOCKET,
    OPTION_HELP,
    OPTION_COUNT
};

/* How profctl itself is to behave; the rest goes to the command's environment. */
struct behaviour {
    bool help, verbose, require, check;
    uint32_t wait_ms;
};

#define WAIT_MS 10000u
#define WHY_SIZE 160

static enum profd_status env_set(const char *name, const char *value, struct profd_error *e)
{
    return setenv(name, value, 1) == 0 ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "run: no memory for %s", name);
}

/* PROFD_LABEL_K=V: the collector reads them there. */
static enum profd_status label_take(const char *text, struct profd_error *e)
{
    char variable[256];
    const char *equals = strchr(text, '=');
    struct profd_upload *judge = NULL;
    if (!equals || equals == text) {
        return profd_error_set(e, PROFD_USAGE, "run: -l \"%s\" is not NAME=VALUE", text);
    }
    int n = snprintf(variable, sizeof variable, "PROFD_LABEL_%.*s", (int)(equals - text), text);
    if (n < 0 || (size_t)n >= sizeof variable) {
        return profd_error_set(e, PROFD_REFUSED, "run: the name of label \"%s\" is too long", text);
    }
    enum profd_status status = profd_upload_new(&judge, e);
    if (status == PROFD_OK) {
        status = profd_upload_add_label(judge, variable + strlen("PROFD_LABEL_"), equals + 1, e);
    }
    profd_upload_free(judge);
    return status == PROFD_OK ? env_set(variable, equals + 1, e) : profd_error_wrap(e, status, "run: -l %s", text);
}

static enum profd_status number_parse(const char *option, const char *text, unsigned long least, unsigned long most,
                                      unsigned long *out, struct profd_error *e)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end || n < least || n > most) {
        return profd_error_set(e, PROFD_USAGE, "run: --%s \"%s\" is not a number from %lu to %lu", option, text, least,
                               most);
    }
    *out = n;
    return PROFD_OK;
}

static enum profd_status number_take(const char *option, const char *variable, const char *text, unsigned long least,
                                     unsigned long most, struct profd_error *e)
{
    unsigned long n;
    TRY(number_parse(option, text, least, most, &n, e));
    return env_set(variable, text, e);
}

/* The command may change its folder, so its processes get an absolute path. */
static enum profd_status leave_out_take(const char *value, struct profd_error *e)
{
    char *path = realpath(value, NULL);
    if (!path || access(path, R_OK) != 0) {
        enum profd_status status =
            profd_error_set(e, PROFD_NO_INPUT, "run: --leave-out %s: %s", value, strerror(errno));
        free(path);
        return status;
    }
    enum profd_status status = env_set("PROFD_LEAVE_OUT", path, e);
    free(path);
    return status;
}

/* Timers of CPU time end at the scheduler's ticks. The coarse clock tells their rate. */
static void rate_judge(const char *value)
{
    struct timespec tick;
    const unsigned long asked = strtoul(value, NULL, 10);
    if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 && tick.tv_nsec > 0 && asked <= ATTACH_RATE_MAX &&
        asked > 1000000000ul / (unsigned long)tick.tv_nsec) {
        profctl_complain(
            "run: this kernel takes at most %lu samples a second of a thread; each stands for several of the "
            "%lu ticks of --rate %s",
            1000000000ul / (unsigned long)tick.tv_nsec, asked, value);
    }
}

static enum profd_status option_take(int which, const char *value, struct behaviour *b, struct profd_error *e)
{
    char path[RUN_PLACE_SIZE];
    unsigned long n = 0;
    enum profd_status status = PROFD_OK;
    switch (which) {
    case OPTION_LABEL:
        return label_take(value, e);
    case OPTION_RATE:
        rate_judge(value);
        return number_take("rate", "PROFD_RATE", value, 0, ATTACH_RATE_MAX, e);
    case OPTION_MEMORY:
        return number_take("memory", "PROFD_COLLECT_MEMORY", value, 1, ATTACH_SIZE_MAX >> 20, e);
    case OPTION_CLOCK:
        if (strcmp(value, "wall") == 0) {
            return profd_error_set(e, PROFD_USAGE,
                                   "run: --clock wall is refused: a signal to a waiting thread ends nanosleep, poll, "
                                   "select, epoll_wait and timed reads early, so the command would behave differently; "
                                   "`perf sched record` shows what threads wait for");
        }
        if (profctl_alternative(options[which].argument, value) < 0) {
            return profd_error_set(e, PROFD_USAGE, "run: --clock must be one of %s, not \"%s\"",
                                   options[which].argument, value);
        }
        return env_set("PROFD_CLOCK", value, e);
    case OPTION_REWRITE:
        return env_set("PROFD_REWRITE", "1", e);
    case OPTION_LEAVE_OUT:
        return leave_out_take(value, e);
    case OPTION_WAIT:
        status = number_parse("wait", value, 0, 86400, &n, e);
        b->wait_ms = status == PROFD_OK ? (uint32_t)n * 1000 : b->wait_ms;
        return status;
    case OPTION_CHECK:
        b->check = true;
        return PROFD_OK;
    case OPTION_REQUIRE:
        b->require = true;
        return PROFD_OK;
    case OPTION_VERBOSE:
        b->verbose = true;
        return PROFD_OK;
    case OPTION_HELP:
        b->help = true;
        return PROFD_OK;
    default:
        status = run_place_socket(value, path, e);
        return status == PROFD_OK ? env_set("PROFD_SOCKET", path, e) : status;
    }
}

/* Options end at the first argument that is not an option: the command and its arguments follow. */
static enum profd_status command_parse(int argc, char **argv, struct behaviour *b, int *command, struct profd_error *e)
{
    struct option longs[OPTION_COUNT + 1] = {{0}};
    for (int i = 0; i < OPTION_COUNT; i++) {
        longs[i] =
            (struct option){options[i].name, options[i].argument ? required_argument : no_argument, NULL, 256 + i};
    }
    opterr = 0;
    optind = 1;
    while (!b->help) {
        int value = getopt_long(argc, argv, "+:l:vh", longs, NULL);
        if (value == -1) {
            break;
        }
        if (value == '?' || value == ':') {
            return profctl_refuse_option(&verb_run_command, value, argc, argv, e);
        }
        int which = value == 'l'   ? OPTION_LABEL
                    : value == 'v' ? OPTION_VERBOSE
                    : value == 'h' ? OPTION_HELP
                                   : value - 256;
        TRY(option_take(which, optarg, b, e));
    }
    if (optind >= argc && !b->help) {
        return profd_error_set(e, PROFD_USAGE,
                               "run: no command given; usage: profctl run [options] [--] COMMAND [ARGUMENT...]");
    }
    *command = optind;
    return PROFD_OK;
}

/* Runs it to its end; its name goes to the daemon meanwhile. The exit status. */
static int command_run(char **argv, const char *path, struct run_delivery *delivery, bool *ran)
{
    struct run_command c;
    int status = 0;
    if (!run_command_start(&c, "run", argv)) {
        *ran = false;
        return profd_status_exit(PROFD_INTERNAL);
    }
    *ran = run_command_release(&c);
    if (*ran) {
        run_delivery_send_command(delivery, path);
    }
    while (!run_command_step(&c, true, &status)) {
    }
    return run_command_end(&c, status);
}

/* Waits for the daemon, and says what there is to say. */
static void delivery_finish(struct run_delivery *d, const struct behaviour *b)
{
    struct profd_error e = {""};
    if (b->wait_ms && run_delivery_finish(d, b->wait_ms, &e) != PROFD_OK) {
        profctl_complain("run: %s", e.sentence);
    } else if (b->verbose && b->wait_ms) {
        profctl_complain("run: all counts are stored by %s at %s; executables sent: %zu", profd_conn_daemon(d->conn),
                         profd_conn_server(d->conn), d->names);
    } else if (b->verbose) {
        profctl_complain("run: counted for %s at %s; did not wait until the counts are stored",
                         profd_conn_daemon(d->conn), profd_conn_server(d->conn));
    }
    if (d->refused > 1) {
        profctl_complain("run: %s (and %zu more)", d->why.sentence, d->refused - 1);
    } else if (d->refused) {
        profctl_complain("run: %s", d->why.sentence);
    }
}

static enum profd_status environment_set(struct profd_error *e)
{
    char library[RUN_PLACE_SIZE];
    enum profd_status status = run_place_library(library, e);
    const char *before = getenv("ASAN_OPTIONS");
    char sanitizer[RUN_PLACE_SIZE];
    if (status == PROFD_OK) {
        status = env_set("LD_PRELOAD", library, e);
    }
    /* Also in the collector (__asan_default_options). */
    if (snprintf(sanitizer, sizeof sanitizer, "%s%sverify_asan_link_order=0", before ? before : "",
                 before && *before ? ":" : "") >= (int)sizeof sanitizer) {
        return status;
    }
    return status == PROFD_OK ? env_set("ASAN_OPTIONS", sanitizer, e) : status;
}

/* Finds the command's file and prepares the environment. path: its file, or "". why: "" or why it cannot be counted. */
static enum profd_status command_prepare(const char *command, char path[COMMAND_PATH_SIZE], char why[WHY_SIZE],
                                         struct profd_error *e)
{
    if (!command_find(command, path)) {
        path[0] = '\0';
    }
    const char *judged = path[0] ? run_judge_program(path) : NULL;
    if (judged || !run_judge_limits(why, WHY_SIZE)) {
        (void)snprintf(why, WHY_SIZE, "%s", judged ? judged : "");
    }
    return environment_set(e);
}

static int run_main(const char *program, int argc, char **argv)
{
    struct profd_error e = {""}, absent = {""};
    struct behaviour b = {.wait_ms = WAIT_MS};
    struct run_delivery delivery;
    struct run_uncounted uncounted;
    char path[COMMAND_PATH_SIZE], why[WHY_SIZE];
    bool ran = false;
    int command = 0;
    (void)program;
    enum profd_status status = command_parse(argc, argv, &b, &command, &e);
    if (status == PROFD_OK && b.help) {
        puts("usage: profctl run [options] [--] COMMAND [ARGUMENT...]\n\n"
             "Runs a command, and all processes that it starts, under the collector.\n"
             "Every call is counted in code compiled with -pg; other code is sampled.\n"
             "The exit status is that of the command, or 128 plus the signal that ended it.\n\noptions:");
        profctl_print_options(options, OPTION_COUNT);
        printf("\nexamples:\n%s\nprofctl-run(1) describes the verb in full.\n", examples_of("run"));
        return fflush(stdout) == 0 ? 0 : profd_status_exit(PROFD_IO);
    }
    if (status == PROFD_OK) {
        status = command_prepare(argv[command], path, why, &e);
    }
    if (status != PROFD_OK) {
        profctl_complain("%s", e.sentence);
        return profd_status_exit(status);
    }
    if (b.check) {
        /* --check. The exit status is 0 if it will be counted. */
        if (!path[0]) {
            profctl_complain("run: %s: there is no such program", argv[command]);
            return profd_status_exit(PROFD_NO_INPUT);
        }
        printf("%s will %sbe counted%s%s\n", path, why[0] ? "not " : "", why[0] ? ": " : "", why);
        if (!why[0]) {
            puts("Of the programs that it starts, those are not counted that are static, set-user-id, of another C "
                 "library or\nmachine, or started with another root directory or without LD_PRELOAD; profctl run lists "
                 "them at its end.");
        }
        return fflush(stdout) != 0 ? profd_status_exit(PROFD_IO) : why[0] ? profd_status_exit(PROFD_REFUSED) : 0;
    }
    status = run_delivery_open(&delivery, &absent);
    if (status != PROFD_OK) {
        profctl_complain("run: %s; %s", absent.sentence,
                         b.require ? "command not run"
                         : status == PROFD_FORBIDDEN || status == PROFD_UNTRUSTED
                             ? "the command runs without profiling"
                             : "a daemon that starts before the command ends gets its counts");
        if (b.require) {
            return profd_status_exit(status);
        }
    }
    if (why[0]) {
        profctl_complain("run: %s runs without profiling: %s", argv[command], why);
    }
    run_uncounted_open(&uncounted);
    int exit_status = command_run(argv + command, path[0] ? path : argv[command], &delivery, &ran);
    if (delivery.conn && ran) {
        delivery_finish(&delivery, &b);
    }
    const size_t programs = run_uncounted_finish(&uncounted);
    if (programs && delivery.conn && ran && path[0] && !why[0]) {
        run_uncounted_send(programs, path, delivery.conn);
    }
    run_delivery_close(&delivery);
    return exit_status;
}

const struct profctl_verb verb_run_command = {
    .name = "run",
    .arguments = "[--] COMMAND [ARGUMENT...]",
    .summary = "Run a command under the collector",
    .details = "",
    .options = options,
    .option_count = OPTION_COUNT,
    .arguments_least = 1,
    .arguments_most = (size_t)-1,
    .run_alone = run_main,
};
