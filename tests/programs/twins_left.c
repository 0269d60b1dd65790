/* The left twin: mix() rotates. */
unsigned long left_sum(int rounds);

static __attribute__((noinline)) unsigned long mix(unsigned long x)
{
    for (int i = 0; i < 50; i++) {
        x = (x << 7 | x >> 57) + 0x9e3779b9ul;
    }
    return x;
}

unsigned long left_sum(int rounds)
{
    unsigned long sum = 1;
    for (int i = 0; i < rounds * 1000; i++) {
        sum = mix(sum);
    }
    return sum;
}
