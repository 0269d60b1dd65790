/* Calls a function until SIGTERM, then writes the number of calls to the file $TRUTH.PID and ends. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t ended;
static unsigned long long count;

__attribute__((noinline)) void leaf(void)
{
    count++;
    __asm__ volatile("");
}

__attribute__((no_instrument_function)) static void on_end(int number)
{
    (void)number;
    ended = 1;
}

__attribute__((no_instrument_function)) int main(void)
{
    char path[4096];
    FILE *f;

    signal(SIGTERM, on_end);
    while (!ended) {
        for (int i = 0; i < 1000; i++) {
            leaf();
        }
        usleep(1000);
    }
    snprintf(path, sizeof path, "%s.%d", getenv("TRUTH"), (int)getpid());
    f = fopen(path, "w");
    return !f || fprintf(f, "%llu\n", count) < 0 || fclose(f);
}
