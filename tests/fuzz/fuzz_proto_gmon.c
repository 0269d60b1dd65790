/* First byte: the format. Law: what parses is written again, and that parses to the same totals and is then stable. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/gmon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct counts c, again;
    struct profd_error e;
    if (size < 1) {
        return 0;
    }
    struct gmon_format format = {(data[0] & 1) != 0, data[0] & 2 ? 4 : 8};
    if (gmon_parse(data + 1, size - 1, &format, &c, &e) != PROFD_OK) {
        return 0;
    }
    uint8_t *first = NULL, *second = NULL;
    size_t n, k;
    if (gmon_format_file(&c, &format, &first, &n, &e) != PROFD_OK ||
        gmon_parse(first, n, &format, &again, &e) != PROFD_OK) {
        if (c.histogram_count + c.arc_count > 0) { /* a file of basic blocks alone has nothing to write */
            abort();
        }
        free(first);
        counts_done(&c);
        return 0;
    }
    uint64_t ticks[2], calls[2];
    counts_totals(&c, &ticks[0], &calls[0]);
    counts_totals(&again, &ticks[1], &calls[1]);
    if (ticks[0] != ticks[1] || calls[0] != calls[1] ||
        gmon_format_file(&again, &format, &second, &k, &e) != PROFD_OK || n != k || memcmp(first, second, n) != 0) {
        abort();
    }
    free(first);
    free(second);
    counts_done(&c);
    counts_done(&again);
    return 0;
}
