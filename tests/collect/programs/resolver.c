/* A resolver that is instrumented runs before anything is set up: relocation calls it, thread-local storage is still
 * empty. */
#include "truth.h"

uint64_t (*truth)[TRUTH_FUNCTIONS];
__thread unsigned truth_slot;

static void leaf(void)
{
    COUNT(leaf);
}

void (*resolve(void))(void);
void (*resolve(void))(void)
{
    return leaf;
}
void chosen(void) __attribute__((ifunc("resolve")));

QUIET int main(void)
{
    truth_open();
    for (int i = 0; i < 1000; i++) {
        chosen();
    }
    return 0;
}
