/* What a client says: one function a message. */
#include "lib/client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/executable.h"
#include "lib/upload.h"
#include "proto/limits.h"

/* Encodes and queues; descriptors are taken over in every case. */
static enum profd_status ask(struct profd_client *c, const struct message *m, const int *fds, size_t fd_count,
                             uint32_t *tag, bool expect_answer, struct profd_error *e)
{
    uint8_t *frame = NULL;
    size_t size = 0;
    uint32_t local = tag ? *tag : 0;
    uint16_t flags = (uint16_t)(fd_count << FRAME_FLAG_FDS_SHIFT);
    enum profd_status status = message_encode(m, flags, 0, &frame, &size, e);
    if (status != PROFD_OK) {
        executable_close_fds(fds, fd_count);
        return status;
    }
    status = client_queue(c, frame, size, fds, fd_count, &local, expect_answer, e);
    if (status == PROFD_OK && tag) {
        *tag = local;
    }
    return status;
}

enum profd_status profd_client_send_upload(struct profd_client *c, const struct profd_upload *u,
                                           const struct profd_id *id, uint32_t *tag, struct profd_error *e)
{
    uint8_t *frame;
    size_t size;
    uint32_t local = 0;
    TRY(upload_encode(u, id, &frame, &size, e));
    TRY(client_queue(c, frame, size, NULL, 0, &local, true, e));
    if (tag) {
        *tag = local;
    }
    return PROFD_OK;
}

enum profd_status profd_client_send_query(struct profd_client *c, const char *target, const char *if_none_match,
                                          uint32_t *tag, struct profd_error *e)
{
    size_t n = strlen(target);
    uint32_t local = 0;
    if (target[0] != '/' || n > LIMIT_QUERY_BYTES) {
        return profd_error_set(e, PROFD_BAD_QUERY, "a query of %zu bytes: it must begin with / and have at most %u", n,
                               LIMIT_QUERY_BYTES);
    }
    struct message m = {.type = FRAME_QUERY};
    m.as.query = (struct message_query){target, if_none_match ? if_none_match : ""};
    TRY(ask(c, &m, NULL, 0, &local, true, e));
    if (tag) {
        *tag = local;
    }
    return PROFD_OK;
}

enum profd_status profd_client_send_admin(struct profd_client *c, const char *verb, const char *const *arguments,
                                          size_t n, uint32_t *tag, struct profd_error *e)
{
    struct message m = {.type = FRAME_ADMIN};
    uint32_t local = 0;
    if (n > LIMIT_ADMIN_ARGUMENTS) {
        return profd_error_set(e, PROFD_USAGE, "%s with %zu arguments, at most %u", verb, n, LIMIT_ADMIN_ARGUMENTS);
    }
    m.as.admin = (struct message_admin){verb, n, arguments};
    TRY(ask(c, &m, NULL, 0, &local, true, e));
    if (tag) {
        *tag = local;
    }
    return PROFD_OK;
}

enum profd_status client_send_files(struct profd_client *c, const struct profd_event *want,
                                    const struct message_object *object, const int *fds, size_t fd_count, uint32_t *tag,
                                    struct profd_error *e)
{
    struct message m = {.type = FRAME_OBJECT, .as.object = *object};
    m.as.object.build_id = want ? want->build_id : "";
    uint32_t local = want ? want->tag : 0;
    TRY(ask(c, &m, fds, fd_count, &local, true, e));
    if (tag) {
        *tag = local;
    }
    return PROFD_OK;
}

enum profd_status profd_client_send_object(struct profd_client *c, const struct profd_event *want,
                                           const struct profd_executable *x, uint32_t *tag, struct profd_error *e)
{
    int fds[2];
    size_t fd_count = 0;
    enum profd_status status = executable_dup_fds(x, fds, &fd_count, e);
    const struct message_object m = {.name = profd_executable_path(x), .code = executable_wants_code(x)};
    return status == PROFD_OK ? client_send_files(c, want, &m, fds, fd_count, tag, e) : status;
}

enum profd_status profd_client_send_decline(struct profd_client *c, const struct profd_event *want, const char *reason,
                                            struct profd_error *e)
{
    struct message m = {.type = FRAME_DECLINE};
    m.as.decline = (struct message_decline){want->build_id, reason};
    uint32_t tag = want->tag;
    return ask(c, &m, NULL, 0, &tag, false, e);
}

enum profd_status profd_client_send_sync(struct profd_client *c, uint32_t *tag, struct profd_error *e)
{
    struct message m = {.type = FRAME_SYNC};
    uint32_t local = 0;
    TRY(ask(c, &m, NULL, 0, &local, true, e));
    if (tag) {
        *tag = local;
    }
    return PROFD_OK;
}
