/* ask_time SECONDS: asks for the time during so many seconds of CPU time. */
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    long seconds = argc > 1 ? atol(argv[1]) : 1;
    struct timespec t = {0, 0}, cpu = {0, 0};
    while (cpu.tv_sec < seconds) {
        for (int i = 0; i < 100000; i++) {
            clock_gettime(CLOCK_MONOTONIC, &t);
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    }
    return 0;
}
