/* A program of the fleet, in two versions. It counts its own calls, in TRUTH/PID, so that what profd says of it can be
 * compared. Usage: shop ORDERS */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define QUIET __attribute__((no_instrument_function, noinline))
#define LOUD __attribute__((noinline))

enum { ORDER, PRICE, DISCOUNT, COUPON, FUNCTIONS };
static const char *const names[FUNCTIONS] = {"order", "price", "discount", "coupon"};
static unsigned long counts[FUNCTIONS];
static volatile unsigned long sink;

LOUD static void price(unsigned long n)
{
    counts[PRICE]++;
    sink += n * n;
}

LOUD static void discount(unsigned long n)
{
    counts[DISCOUNT]++;
    price(n);
    sink++;
}

#if VERSION >= 13
LOUD static void coupon(unsigned long n)
{
    counts[COUPON]++;
    discount(n);
    sink++;
}
#endif

LOUD static void order(unsigned long n)
{
    counts[ORDER]++;
    for (unsigned long i = 0; i < n % 7; i++) {
        discount(i);
    }
#if VERSION >= 13
    coupon(n);
#endif
    price(n);
    sink++;
}

QUIET int main(int argc, char **argv)
{
    const unsigned long orders = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    char path[4096];
    FILE *f;

    for (unsigned long i = 0; i < orders; i++) {
        order(i);
    }
    snprintf(path, sizeof path, "%s/%ld", getenv("TRUTH"), (long)getpid());
    f = fopen(path, "w");
    for (unsigned i = 0; f && i < FUNCTIONS; i++) {
        fprintf(f, "%s %lu\n", names[i], counts[i]);
    }
    return !f || fclose(f);
}
