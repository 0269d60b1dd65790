/* Two files with a static function of the same name: see twins_left.c and twins_right.c. Argument: rounds (default
 * 400). */
#include <stdio.h>
#include <stdlib.h>

unsigned long left_sum(int rounds);
unsigned long right_sum(int rounds);

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 400;
    printf("%lu\n", left_sum(rounds) ^ right_sum(rounds));
    return 0;
}
