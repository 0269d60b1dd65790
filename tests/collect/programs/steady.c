/* steady spin: calls for ever; SIGUSR1 and SIGUSR2 are moncontrol(0) and (1), SIGHUP forks a child that does the same.
 * steady exit, steady _exit: calls, waits for the end of its input, and ends that way. steady chroot: calls, changes
 * its root folder and its user, calls, and ends. steady flicker: two seconds of CPU time, every other few milliseconds
 * of them switched off by itself. Prints "ready" when it has begun. */
#define _GNU_SOURCE
#include "cpu.h"
#include "truth.h"

#include <signal.h>
#include <string.h>

uint64_t (*truth)[TRUTH_FUNCTIONS];
__thread unsigned truth_slot;
extern void moncontrol(int mode);
static volatile sig_atomic_t fork_wanted;

__attribute__((noinline)) void leaf(void)
{
    COUNT(leaf);
}

__attribute__((noinline)) void middle(void)
{
    COUNT(middle);
    leaf();
    __asm__ volatile("");
}

static QUIET void on_signal(int number)
{
    if (number == SIGHUP) {
        fork_wanted = 1;
    } else {
        moncontrol(number == SIGUSR2);
    }
}

static QUIET void spin(void)
{
    for (;;) {
        for (int i = 0; i < 1000; i++) {
            middle();
        }
        if (fork_wanted) {
            fork_wanted = 0;
            if (fork() == 0) {
                truth_open();
            }
        }
    }
}

static QUIET void flicker(void)
{
    for (int phase = 0; cpu() < 2; phase++) {
        moncontrol(phase % 2);
        for (double end = cpu() + 0.005; cpu() < end;) {
            middle();
        }
    }
}

QUIET int main(int argc, char **argv)
{
    char byte;
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    const char *mode = argc > 1 ? argv[1] : "";
    truth_open();
    sigaction(SIGUSR1, &act, NULL);
    sigaction(SIGUSR2, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
    for (int i = 0; i < 1000; i++) {
        middle();
    }
    puts("ready");
    fflush(stdout);
    if (strcmp(mode, "spin") == 0) {
        spin();
    }
    if (strcmp(mode, "flicker") == 0) {
        flicker();
    }
    if (strcmp(mode, "chroot") == 0 &&
        (chdir("/proc/sys") != 0 || chroot(".") != 0 || setgid(65534) != 0 || setuid(65534) != 0)) {
        return 1;
    }
    while (read(0, &byte, 1) > 0) {
    }
    for (int i = 0; i < 500; i++) {
        middle();
    }
    if (strcmp(mode, "_exit") == 0) {
        _exit(3);
    }
    return 3;
}
