/* profd-gate: see profd-gate(8). This process opens files, for the other one, which meets the network and may open
 * none. It ends when the other does. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/config.h"
#include "gate/cage.h"
#include "gate/gate.h"
#include "gate/listener.h"
#include "gate/supply.h"
#include "log/log.h"
#include "log/notify.h"

#define OBSERVE_MS 1000 /* how often files are looked at */

/* The process that opens files. */
struct gate_run {
    int argc;
    char *const *argv;
    struct config *config;
    int supply;
    unsigned long long seen; /* observed before the files were sent */
};

static volatile sig_atomic_t gate_hup;

static void gate_on_hup(int number)
{
    (void)number;
    gate_hup = 1;
}

static _Noreturn void gate_child(const struct config *c, int listener, int supply, pid_t parent)
{
    struct profd_error e;

    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGHUP, SIG_IGN); /* the parent sends what it has read */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) {
        _exit(0);
    }
    if (cage_drop_privileges(&e)) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
        _exit(profd_status_exit(PROFD_INTERNAL));
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* another user clears it */
    exit(gate_run(c, listener, supply));
}

/* SIGHUP: the configuration, and the files that it names now. On an error, those of before stay. */
static void gate_reload(struct gate_run *g)
{
    struct config_change change;
    struct profd_error e;
    struct config old;
    enum profd_status status = config_reload(OF_GATE, g->argc, g->argv, g->config, &old, &change, &e);

    if (!status) {
        status = supply_send(g->supply, g->config, &e);
        if (status) {
            config_reload_undo(OF_GATE, g->config, &old);
        } else {
            config_done(&old);
            log_open(g->config->log_level);
            g->seen = supply_observe(g->config);
        }
    }
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "the configuration stays as it was: %s", e.sentence);
    } else {
        config_log_change(&change);
    }
}

/* Sends the files again when they change, or are named anew, until the child ends. */
static void gate_serve(struct gate_run *g)
{
    struct pollfd p = {.fd = g->supply, .events = POLLIN};
    struct profd_error e;
    char byte;

    for (;;) {
        const int ready = poll(&p, 1, OBSERVE_MS);
        unsigned long long now;

        if (ready > 0) {
            if (recv(g->supply, &byte, 1, MSG_DONTWAIT) <= 0) {
                return;
            }
            notify_send("READY=1");
        }
        if (gate_hup) {
            gate_hup = 0;
            gate_reload(g);
        }
        now = supply_observe(g->config);
        if (now != g->seen) {
            g->seen = now;
            if (supply_send(g->supply, g->config, &e)) {
                log_write(LOG_LEVEL_WARNING, NULL, "the certificates of before stay in use: %s", e.sentence);
            }
        }
    }
}

static int gate_reap(pid_t child)
{
    int how = 0;

    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(how)) {
        return WEXITSTATUS(how);
    }
    log_write(LOG_LEVEL_ERROR, NULL, "the process that serves connections was ended by signal %d", WTERMSIG(how));
    return profd_status_exit(PROFD_INTERNAL);
}

static enum profd_status gate_start(struct gate_run *g, int *exit_status, struct profd_error *e)
{
    const struct sigaction hup = {.sa_handler = gate_on_hup};
    const struct config *c = g->config;
    const pid_t self = getpid();
    int ends[2], listener = -1;
    enum profd_status status;
    pid_t child;

    g->seen = supply_observe(c);
    sigaction(SIGHUP, &hup, NULL);
    (void)notify_open();
    status = listener_open(c, &listener, e);
    if (status) {
        return status;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
        return profd_error_set(e, PROFD_IO, "socketpair: %s", strerror(errno));
    }
    status = supply_send(ends[0], c, e);
    if (status) {
        return status;
    }
    child = fork();
    if (child < 0) {
        return profd_error_set(e, PROFD_IO, "fork: %s", strerror(errno));
    }
    if (!child) {
        close(ends[0]);
        gate_child(c, listener, ends[1], self);
    }
    close(ends[1]);
    close(listener);
    g->supply = ends[0];
    gate_serve(g);
    *exit_status = gate_reap(child);
    return PROFD_OK;
}

int main(int argc, char *argv[])
{
    struct config config;
    struct profd_error e = {""};
    enum profd_status status;
    bool run;
    int exit_status = 0;

    status = config_start(OF_GATE, argc, argv, &config, &run, &e);
    if (run) {
        status = gate_start(&(struct gate_run){.argc = argc, .argv = argv, .config = &config}, &exit_status, &e);
    }
    config_done(&config);
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
        exit_status = profd_status_exit(status);
    }
    return exit_status;
}
