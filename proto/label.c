#include "proto/label.h"

#include <string.h>

enum profd_status label_check(const char *name, const char *value, struct profd_error *e)
{
    size_t name_size = strlen(name), value_size = strlen(value);
    switch (label_judge(name, name_size, value, value_size)) {
    case LABEL_NAME_CHARACTERS:
        return profd_error_set(e, PROFD_REFUSED,
                               "\"%.200s\" is not a label name: letters, digits and _, not a digit first", name);
    case LABEL_NAME_RESERVED:
        return profd_error_set(e, PROFD_REFUSED,
                               "\"%.200s\" is not a label name: names that begin with __ are reserved", name);
    case LABEL_NAME_LONG:
        return profd_error_set(e, PROFD_TOO_LARGE, "a label's name has %zu bytes; at most %u are allowed", name_size,
                               LIMIT_LABEL_NAME);
    case LABEL_VALUE_LONG:
        return profd_error_set(e, PROFD_TOO_LARGE, "the value of label \"%s\" has %zu bytes; at most %u are allowed",
                               name, value_size, LIMIT_LABEL_VALUE);
    case LABEL_VALUE_NOT_UTF8:
        return profd_error_set(e, PROFD_REFUSED, "the value of label \"%s\" is not UTF-8", name);
    case LABEL_GOOD:
        break;
    }
    return PROFD_OK;
}
