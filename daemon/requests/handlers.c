#include "requests/requests.h"

#include "requests/admin.h"
#include "requests/symbols.h"
#include "requests/queries.h"
#include "requests/relay.h"
#include "requests/uploads.h"

void handlers_fill(const struct handlers_services *s, struct conn_handler out[HANDLERS_COUNT])
{
    const struct conn_handler handlers[HANDLERS_COUNT] = {
        {FRAME_UPLOAD, true, 0, 0, upload_receive, s->uploads, false},
        {FRAME_OBJECT, true, 1, 2, object_receive, s->objects, false},
        {FRAME_DECLINE, false, 0, 0, object_receive_decline, s->objects, false},
        {FRAME_QUERY, true, 0, 0, query_receive, s->queries, true},
        {FRAME_SYNC, true, 0, 0, sync_receive, s->shared, true},
        {FRAME_NACK, false, 0, 0, sync_receive_nack, s->shared, false},
        {FRAME_ADMIN, true, 0, 0, admin_receive, s->admin, true},
        {FRAME_FETCH, true, 0, 0, relay_receive_fetch, s->relay, true},
        {FRAME_ACKNOWLEDGE, true, 0, 0, relay_receive_acknowledge, s->relay, false},
        {FRAME_FETCH_OBJECT, true, 0, 0, relay_receive_fetch_object, s->relay, true},
        {FRAME_ATTACH, true, 1, 1, live_attach, s->live, false},
    };

    memcpy(out, handlers, sizeof handlers);
}
