#include "core/local_names.h"

#include <string.h>

/* How many bytes of a suffix stand in front of its digits. p is a dot. */
static unsigned suffix_start(const char *p)
{
    static const char *const marks[] = {".clone.", ".constprop."};
    for (unsigned i = 0; i < 2; i++) {
        size_t n = strlen(marks[i]);
        /* The bare mark at the end of a name does not count as one. */
        if (strncmp(p, marks[i], n) == 0 && p[n] != '\0') {
            return (unsigned)n;
        }
    }
    return 1;
}

void local_names_judge(const char *strings, size_t size, uint8_t *bits)
{
    bool listed = true; /* the answer for what begins at p + 1, if that is not in a suffix */
    /* Bit k: the answer for what begins at p + 1 + k, if the digits of a suffix are to begin there. */
    uint32_t digits = 1;
    memset(bits, 0, LOCAL_NAMES_BYTES(size));
    for (size_t i = size; i-- > 0;) {
        const char *p = &strings[i];
        bool digit = false;
        if (*p == '\0') {
            digit = listed;
            listed = true;
        } else if (*p >= '0' && *p <= '9') {
            digit = p[1] == '.' ? listed : (digits & 1) != 0;
        } else if (*p == '.') {
            listed = (digits >> (suffix_start(p) - 1) & 1) != 0;
        } else if (*p == '$') {
            listed = false;
        }
        digits = digits << 1 | digit;
        bits[i / 8] = (uint8_t)(bits[i / 8] | (unsigned)listed << i % 8);
    }
}

bool local_names_listed(const char *strings, size_t offset, const uint8_t *bits)
{
    const char *name = strings + offset;
    if (name[0] == '\0' || strncmp(name, "__gnu_compiled", 14) == 0 || strncmp(name, "___gnu_compiled", 15) == 0) {
        return false;
    }
    return (bits[offset / 8] >> offset % 8 & 1) != 0;
}
