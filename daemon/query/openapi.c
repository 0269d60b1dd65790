/* /openapi.json: schema/openapi.json as it was at build time. */
#include <string.h>

#include "query/handlers.h"
#include "query/query.h"

extern const unsigned char embed_schema_openapi_json[];
extern const size_t embed_schema_openapi_json_size;

enum profd_status openapi_show(struct job *job, struct profd_error *e)
{
    (void)e;
    if (!job_set_etag(job, "openapi", strlen("openapi"), embed_schema_openapi_json_size)) {
        buffer_add(&job->answer->body, embed_schema_openapi_json, embed_schema_openapi_json_size);
    }
    return PROFD_OK;
}
