/* Built as a position-independent executable: the Mandelbrot set, with a tail call and a function pointer.
 * Arguments: width and iterations (default 160 400). */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

NOINLINE int escape(double re, double im, int limit)
{
    double x = 0, y = 0;
    int n = 0;
    for (; n < limit && x * x + y * y < 4; n++) {
        double t = x * x - y * y + re;
        y = 2 * x * y + im;
        x = t;
    }
    return n;
}

NOINLINE int inside_bulb(double re, double im, int limit)
{
    double q = (re - 0.25) * (re - 0.25) + im * im;
    if (q * (q + (re - 0.25)) < 0.25 * im * im) {
        return limit;
    }
    return escape(re, im, limit);
}

NOINLINE long row(int width, int y, int limit, int (*test)(double, double, int))
{
    long sum = 0;
    for (int x = 0; x < width; x++) {
        sum += test(-2.2 + 3.0 * x / width, -1.5 + 3.0 * y / width, limit);
    }
    return sum;
}

int main(int argc, char **argv)
{
    int width = argc > 1 ? atoi(argv[1]) : 160;
    int limit = argc > 2 ? atoi(argv[2]) : 400;
    long sum = 0;
    for (int y = 0; y < width; y++) {
        sum += row(width, y, limit, y % 2 ? escape : inside_bulb);
    }
    printf("%ld\n", sum);
    return 0;
}
