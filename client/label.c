#include "client/label.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/utf8.h"

bool label_name_valid(const char *name)
{
    if (name[0] == '\0' || (name[0] >= '0' && name[0] <= '9') || strncmp(name, "__", 2) == 0) {
        return false;
    }
    for (const char *p = name; *p; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (!letter && !(*p >= '0' && *p <= '9') && *p != '_') {
            return false;
        }
    }
    return strlen(name) <= LIMIT_LABEL_NAME;
}

enum profd_status label_check(const char *name, const char *value, struct profd_error *e)
{
    if (!label_name_valid(name)) {
        return profd_error_set(
            e, PROFD_REFUSED,
            "\"%s\" is no label name: letters, digits and _, at most %u bytes, not beginning with a digit "
            "or __",
            name, LIMIT_LABEL_NAME);
    }
    size_t size = strlen(value);
    if (size > LIMIT_LABEL_VALUE) {
        return profd_error_set(e, PROFD_REFUSED, "the value of label %s has %zu bytes; at most %u are taken", name,
                               size, LIMIT_LABEL_VALUE);
    }
    for (size_t i = 0; i < size;) {
        size_t n = utf8_length((const uint8_t *)value + i, size - i);
        if (n == 0) {
            return profd_error_set(e, PROFD_REFUSED, "the value of label %s is not UTF-8 at byte %zu", name, i);
        }
        i += n;
    }
    return PROFD_OK;
}
