/* sigaction() and signal() replace libc's for SIGPROF only: a program that installs a handler gets the signal, and
 * never sees the collector's handler. The signal is never reset to its default while a tick may be pending in another
 * thread, because that would end the process. */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/collect/raw.h"
#include "client/collect/sample.h"

#define EXPORT __attribute__((visibility("default")))

extern __sighandler_t bsd_signal(int number, __sighandler_t handler);
extern int __sigaction(int number, const struct sigaction *act, struct sigaction *old);

EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
    int failed = 0;
    if (number != SIGPROF || !sample_has_signal()) {
        return __sigaction(number, act, old);
    }
    if (act) {
        sample_give_up();
        if (act->sa_handler != SIG_DFL) {
            failed = __sigaction(number, act, NULL);
            if (!failed) {
                sample_lose_signal();
            }
        }
    }
    if (old && !failed) {
        raw_zero(old, sizeof *old); /* SIG_DFL, no flags, nothing blocked */
    }
    return failed;
}

EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
    bool ours = number == SIGPROF && sample_has_signal();
    if (ours) {
        sample_give_up();
    }
    if (ours && handler == SIG_DFL) {
        return SIG_DFL;
    }
    __sighandler_t old = ssignal(number, handler);
    if (!ours || old == SIG_ERR) {
        return old;
    }
    sample_lose_signal();
    return SIG_DFL;
}

EXPORT __sighandler_t bsd_signal(int number, __sighandler_t handler)
{
    return signal(number, handler);
}

/* signal() of System V, for programs that request it: the handler runs once, and the signal is not blocked meanwhile.
 */
EXPORT __sighandler_t __sysv_signal(int number, __sighandler_t handler)
{
    struct sigaction old, act;
    raw_zero(&act, sizeof act);
    act.sa_handler = handler;
    act.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
    return sigaction(number, &act, &old) == 0 ? old.sa_handler : SIG_ERR;
}
