/* How wide the columns of numbers are. */
#include "render/text_internal.h"

int text_width_count(uint64_t value)
{
    int digits = 1;
    while (value >= 10) {
        value /= 10;
        digits++;
    }
    return digits;
}

int text_width_seconds(double value)
{
    struct buffer b;
    buffer_init(&b, 512);
    buffer_add_fixed(&b, value, 0, 2);
    int width = (int)b.size;
    buffer_done(&b);
    return width;
}
