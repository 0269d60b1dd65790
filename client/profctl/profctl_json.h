/* JSON that profctl itself writes. */
#ifndef PROFD_CLIENT_PROFCTL_JSON_H
#define PROFD_CLIENT_PROFCTL_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "proto/status.h"

/* A number for json_pack's 'I'. JSON numbers above 2^63-1 do not exist here: such a sum has saturated. */
static inline json_int_t json_count(uint64_t n)
{
    return n > (uint64_t)INT64_MAX ? INT64_MAX : (json_int_t)n;
}

/* Prints the value on one line of stdout, and frees it. NO_MEMORY for NULL, which is what json_pack returns without
 * memory. */
enum profd_status json_print(json_t *value, struct profd_error *e);

#endif
