/* sigprof HOW WHAT: sends itself SIGPROF by raise, kill, timer or itimer, while its disposition is WHAT: default,
 * reset (set to the default), ignore, or handler. Prints "good", or what is wrong. */
#define _GNU_SOURCE
#include "cpu.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void take(int number)
{
    (void)number;
    came++;
}

static void burn(double seconds)
{
    for (double end = cpu() + seconds; cpu() < end && came == 0;) {
    }
}

int main(int argc, char **argv)
{
    const char *how = argc == 3 ? argv[1] : "", *what = argc == 3 ? argv[2] : "";
    const struct itimerval once = {{0, 0}, {0, 10000}};
    const struct itimerspec soon = {{0, 0}, {0, 10000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    timer_t timer;
    burn(0.1);
    if (strcmp(what, "default") != 0) {
        signal(SIGPROF, strcmp(what, "reset") == 0 ? SIG_DFL : strcmp(what, "ignore") == 0 ? SIG_IGN : take);
    }
    if (strcmp(how, "raise") == 0) {
        raise(SIGPROF);
    } else if (strcmp(how, "kill") == 0) {
        kill(getpid(), SIGPROF);
    } else if (strcmp(how, "timer") == 0) {
        timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer);
        timer_settime(timer, 0, &soon, NULL);
    } else {
        setitimer(ITIMER_PROF, &once, NULL);
    }
    burn(0.3);
    puts(came == (strcmp(what, "handler") == 0) ? "good" : "the handler was not called once");
    return 0;
}
