#include "profctl/profctl_labels.h"

#include <stdio.h>
#include <string.h>

#define NAME_SIZE 160

enum profd_status labels_add(const struct profctl_call *call, struct profd_upload *u, struct profd_error *e)
{
    for (size_t i = 0; i < call->given_count; i++) {
        if (strcmp(call->given[i].option->name, "label") != 0) {
            continue;
        }
        const char *text = call->given[i].value, *equals = strchr(text, '=');
        char name[NAME_SIZE];
        if (!equals || (size_t)(equals - text) >= sizeof name) {
            return profd_error_set(e, PROFD_USAGE, "%s: -l %s is not NAME=VALUE", call->verb->name, text);
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        enum profd_status status = profd_upload_add_label(u, name, equals + 1, e);
        if (status != PROFD_OK) {
            return profd_error_wrap(e, PROFD_USAGE, "%s: -l %s", call->verb->name, text);
        }
    }
    return PROFD_OK;
}

enum profd_status labels_check(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_upload *u;
    enum profd_status status = profd_upload_new(&u, e);
    if (status == PROFD_OK) {
        status = labels_add(call, u, e);
        profd_upload_free(u);
    }
    return status;
}
