/* What users store. */
#include "store/memory.h"
#include "store/quota.h"

enum profd_status memory_get_use(struct store *base, uint32_t uid, uint64_t *bytes, uint64_t *total,
                                 struct profd_error *e)
{
    const struct memory_store *s = memory_self(base);
    (void)e;
    *bytes = *total = 0;
    for (size_t i = 0; i < s->upload_count; i++) {
        *total += s->uploads[i].counts_size;
        *bytes += s->uploads[i].uid == uid ? s->uploads[i].counts_size : 0;
    }
    for (size_t i = 0; i < s->instance_count; i++) {
        *total += s->instances[i].snapshot_size;
        *bytes += s->instances[i].uid == uid ? s->instances[i].snapshot_size : 0;
    }
    for (size_t i = 0; i < s->object_count; i++) {
        size_t senders = 0;
        uint32_t sender = 0;
        for (size_t k = 0; k < s->object_sender_count; k++) {
            senders += s->object_senders[k].object == i;
            sender = s->object_senders[k].object == i ? s->object_senders[k].uid : sender;
        }
        *total += senders == 1 ? s->objects[i].encoded_size : 0;
        *bytes += senders == 1 && sender == uid ? s->objects[i].encoded_size : 0;
    }
    return PROFD_OK;
}

enum profd_status memory_add_users(struct memory_store *s, struct store_totals *t, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; status == PROFD_OK && i < s->user_count; i++) {
        uint64_t bytes = 0;
        status = memory_get_use(&s->base, s->users[i].uid, &bytes, &t->user_bytes, e);
        quota_add_user(t, s->users[i].uid, bytes);
    }
    return status;
}
