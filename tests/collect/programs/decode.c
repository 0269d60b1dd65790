/* Reads lines of hexadecimal code and prints what rewrite_decode_length says of each. */
#include <stdio.h>

#include "client/collect/rewrite_find.h"

int main(void)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        uint8_t code[64];
        unsigned n = 0, value;
        while (n < sizeof code && sscanf(line + 2 * n, "%2x", &value) == 1) {
            code[n++] = (uint8_t)value;
        }
        printf("%u\n", rewrite_decode_length(code, code + n));
    }
    return 0;
}
