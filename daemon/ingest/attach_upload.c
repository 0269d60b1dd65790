/* The counts of a live process are validated by the rules for uploads. */
#include <string.h>

#include "ingest/attach_internal.h"
#include "ingest/validate.h"
#include "proto/message.h"

#define SECOND INT64_C(1000000000)

/* The process's clock is this machine's, read a moment earlier or later: that is no reason to doubt it. */
static uint64_t start_judge(const struct attach_delivery *d)
{
    int64_t late = d->received + LIMIT_CLOCK_FUTURE_MINUTES * 60 * SECOND;
    return (uint64_t)(d->start > d->received && d->start <= late ? d->received : d->start < 0 ? 0 : d->start);
}

enum profd_status attach_upload_validate(const struct attach_delivery *d, struct attach_inside *in,
                                         struct store_upload *u, struct profd_error *e)
{
    struct message_build *builds = ARENA_ARRAY(in->arena, d->build_count, struct message_build);
    struct message_label *labels = ARENA_ARRAY(in->arena, d->label_count + 1, struct message_label);
    char *host = arena_copy(in->arena, d->host, strlen(d->host));
    if (!builds || !labels || !host) {
        return profd_no_memory(e);
    }
    for (size_t i = 0; i < d->build_count; i++) {
        builds[i] = (struct message_build){d->builds[i].id.text, d->builds[i].name};
    }
    for (size_t i = 0; i < d->label_count; i++) {
        labels[i] = (struct message_label){d->labels[i].name, d->labels[i].value};
    }
    struct message_upload m = {.sender = {d->instance, UPLOAD_SENDER_SIZE},
                               .sequence = 1,
                               .start = start_judge(d),
                               .end = d->received < 0 ? 0 : (uint64_t)d->received,
                               .build_count = d->build_count,
                               .builds = builds,
                               .label_count = d->label_count,
                               .labels = labels,
                               .inexact = d->inexact,
                               .processes_started = d->first,
                               .host = host,
                               .process = {d->instance, ATTACH_INSTANCE_SIZE}};
    return validate_upload(d->uid, d->received, &m, in->arena, u, &in->builds, e);
}
