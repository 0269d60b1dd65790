#include "profctl/profctl_json.h"

#include <stdio.h>
#include <stdlib.h>

enum profd_status json_print(json_t *value, struct profd_error *e)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    if (!text) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the answer in JSON");
    }
    puts(text);
    free(text);
    return PROFD_OK;
}
