/* The cycle example of gprof's manual: start → main → a ⇄ b, both call c.
 * One run makes exactly these calls: main→a 1, a→b 3, b→a 2, a→c 3, b→c 3. Argument: how long to work (default 20). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile uint64_t sink;
static long work = 20;

void a(int depth);
void b(int depth);

void c(void)
{
    sink += 1;
}

static inline __attribute__((always_inline)) void spin(long rounds)
{
    for (long i = 0; i < rounds * 100000; i++) {
        sink += (uint64_t)i ^ (sink >> 3);
    }
}

void a(int depth)
{
    spin(3 * work);
    c();
    b(depth);
}

void b(int depth)
{
    spin(4 * work);
    c();
    if (depth > 1) {
        a(depth - 1);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        work = atol(argv[1]);
    }
    spin(work);
    a(3);
    printf("%d\n", (int)(sink & 1));
    return 0;
}
