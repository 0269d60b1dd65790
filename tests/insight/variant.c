/* Linked to each program of programs.py: how often the slower function does its work twice, and a timer as fast as
 * the kernel's own ticks. */
#include <sys/time.h>

extern const volatile unsigned variant_every;
const volatile unsigned variant_every = EVERY; /* of so many calls one; UINT_MAX: none */
extern const char variant_name[];
const char variant_name[] = NAME; /* builds of the same code have different build-ids */

__attribute__((constructor, no_instrument_function)) static void set_timer(void)
{
    const struct itimerval each = {{0, 1000000 / RATE}, {0, 1000000 / RATE}};
    (void)setitimer(ITIMER_PROF, &each, 0);
}
