#include "lib/senders.h"

#include <stdlib.h>

struct sender {
    uint32_t uid;
    struct profd_id id;
};

enum profd_status senders_take(struct senders *s, uint32_t uid, struct profd_id **out, struct profd_error *e)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->list[i].uid == uid) {
            *out = &s->list[i].id;
            return PROFD_OK;
        }
    }
    struct sender *grown = realloc(s->list, (s->count + 1) * sizeof *grown);
    if (!grown) {
        return profd_no_memory(e);
    }
    s->list = grown;
    s->list[s->count].uid = uid;
    enum profd_status status = profd_id_make(&s->list[s->count].id, e);
    *out = &s->list[s->count].id;
    s->count += status == PROFD_OK;
    return status;
}

void senders_done(struct senders *s)
{
    free(s->list);
}
