/* The right twin: mix() multiplies. */
unsigned long right_sum(int rounds);

static __attribute__((noinline)) unsigned long mix(unsigned long x)
{
    for (int i = 0; i < 20; i++) {
        x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ul;
    }
    return x;
}

unsigned long right_sum(int rounds)
{
    unsigned long sum = 3;
    for (int i = 0; i < rounds * 1000; i++) {
        sum = mix(sum);
    }
    return sum;
}
