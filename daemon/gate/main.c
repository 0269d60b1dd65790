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

static _Noreturn void gate_child(const struct config *c, int listener, int supply, pid_t parent)
{
    struct profd_error e;

    (void)signal(SIGTERM, SIG_DFL);
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

/* Sends the files again when they change, until the child ends. seen: observed before they were sent first. */
static void gate_serve(const struct config *c, int supply, unsigned long long seen)
{
    struct pollfd p = {.fd = supply, .events = POLLIN};
    struct profd_error e;
    char byte;

    for (;;) {
        const int ready = poll(&p, 1, OBSERVE_MS);
        unsigned long long now;

        if (ready > 0) {
            if (recv(supply, &byte, 1, MSG_DONTWAIT) <= 0) {
                return;
            }
            notify_send("READY=1");
        }
        now = supply_observe(c);
        if (now != seen) {
            seen = now;
            if (supply_send(supply, c, &e)) {
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

static enum profd_status gate_start(const struct config *c, int *exit_status, struct profd_error *e)
{
    const pid_t self = getpid();
    const unsigned long long seen = supply_observe(c);
    int ends[2], listener = -1;
    enum profd_status status;
    pid_t child;

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
    gate_serve(c, ends[0], seen);
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
        status = gate_start(&config, &exit_status, &e);
    }
    config_done(&config);
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
        exit_status = profd_status_exit(status);
    }
    return exit_status;
}
