/* sigaction() and signal() replace libc's for SIGPROF only: a program that installs a handler gets the signal, and
 * never sees the collector's handler. The kernel's action is never the default while a tick may be pending in another
 * thread, because that would end the process. */
#include <signal.h>
#include <stddef.h>

#include "client/collect/raw.h"
#include "client/collect/sample.h"

#define EXPORT __attribute__((visibility("default")))

extern __sighandler_t bsd_signal(int number, __sighandler_t handler);
extern int __sigaction(int number, const struct sigaction *act, struct sigaction *old);

EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction before;
    if (number != SIGPROF || !sample_has_signal()) {
        return __sigaction(number, act, old);
    }
    sample_get_action(&before);
    int failed = act ? sample_set_action(act) : 0;
    if (old && !failed) {
        *old = before;
    }
    return failed;
}

static __sighandler_t signal_by_flags(int number, __sighandler_t handler, int flags)
{
    struct sigaction old, act;
    raw_zero(&act, sizeof act);
    act.sa_handler = handler;
    act.sa_flags = flags;
    return sigaction(number, &act, &old) == 0 ? old.sa_handler : SIG_ERR;
}

EXPORT __sighandler_t signal(int number, __sighandler_t handler)
{
    return number == SIGPROF && sample_has_signal() ? signal_by_flags(number, handler, SA_RESTART)
                                                    : ssignal(number, handler);
}

EXPORT __sighandler_t bsd_signal(int number, __sighandler_t handler)
{
    return signal(number, handler);
}

/* signal() of System V, for programs that request it: the handler runs once, and the signal is not blocked meanwhile.
 */
EXPORT __sighandler_t __sysv_signal(int number, __sighandler_t handler)
{
    return signal_by_flags(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
}
