/* library N: parses and dumps a document N times with jansson, whose sources are built with it; prints microseconds of
 * CPU for each. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUIET __attribute__((no_instrument_function))
extern int moncontrol(int);

static QUIET double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static QUIET char *document(void)
{
    size_t capacity = 1 << 20, n = 0;
    char *text = malloc(capacity);
    n += (size_t)snprintf(text, capacity, "[");
    for (int i = 0; i < 300; i++) {
        n += (size_t)snprintf(text + n, capacity - n,
                              "%s{\"id\": %d, \"name\": \"entry \\u00e9 %d\", \"ratio\": %d.25, \"tags\": [\"a\", "
                              "\"b%d\", null, true, false], \"in\": {\"x\": [%d, %d, [], {}]}}",
                              i ? ", " : "", i, i * 7, i, i, i, -i);
    }
    snprintf(text + n, capacity - n, "]");
    return text;
}

QUIET int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 100;
    char *text = document();
    if (getenv("BENCH_OFF")) {
        moncontrol(0);
    }
    double begin = cpu();
    for (long i = 0; i < rounds; i++) {
        json_error_t error;
        json_t *value = json_loads(text, 0, &error);
        char *out = json_dumps(value, JSON_SORT_KEYS);
        if (!value || !out || strlen(out) < 1000) {
            return 1;
        }
        free(out);
        json_decref(value);
    }
    printf("%.4f %ld\n", (cpu() - begin) / (double)rounds, rounds);
    return 0;
}
