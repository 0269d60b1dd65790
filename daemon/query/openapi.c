/* /openapi.json: schema/openapi.json as it was at build time. */
#include <nettle/sha2.h>
#include <stdint.h>

#include "query/handlers.h"
#include "query/query.h"

extern const unsigned char embed_schema_openapi_json[];
extern const size_t embed_schema_openapi_json_size;

enum profd_status openapi_show(struct job *job, struct profd_error *e)
{
    static const struct store_epoch none = {.number = 0}; /* it depends on no stored data */
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    (void)e;
    sha256_init(&sha);
    sha256_update(&sha, embed_schema_openapi_json_size, embed_schema_openapi_json);
    sha256_digest(&sha, sizeof digest, digest);
    if (!job_set_etag(job, (const char *)digest, sizeof digest, &none)) {
        buffer_add(&job->answer->body, embed_schema_openapi_json, embed_schema_openapi_json_size);
    }
    return PROFD_OK;
}
