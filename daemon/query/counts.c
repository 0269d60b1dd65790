/* /api/v1/builds/{id}/counts: the sum itself, for profctl export. */
#include "proto/counts.h"

#include <stdlib.h>

#include "query/handlers.h"
#include "query/listing.h"
#include "query/query.h"
#include "query/work.h"

/* The layout of the build's gmon.out is stated in parameters of the media type; without its executable it is unknown.
 */
static const char *content_type(const struct object *object)
{
    static const char *const TYPES[2][2] = {
        {"application/vnd.profd.counts; bits=32; endian=little", "application/vnd.profd.counts; bits=32; endian=big"},
        {"application/vnd.profd.counts; bits=64; endian=little", "application/vnd.profd.counts; bits=64; endian=big"},
    };
    return object == NULL ? "application/vnd.profd.counts" : TYPES[object->bits == 64][object->big_endian];
}

enum profd_status counts_show(struct job *job, struct profd_error *e)
{
    struct work w;
    struct counts counts;
    const struct object *object;
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool fresh = false;
    TRY(work_begin(job, true, &w, &fresh, e));
    if (fresh) {
        return PROFD_OK;
    }
    TRY(listing_load(job, &w, &counts, &object, e));
    TRY(counts_encode(&counts, &bytes, &size, e));
    job->answer->content_type = content_type(object);
    buffer_add(&job->answer->body, bytes, size);
    free(bytes);
    return PROFD_OK;
}
