/* Reads OTLP profiles (OpenTelemetry, signal "profiles") into profiles of ingest/foreign.h. */
#ifndef PROFD_INGEST_OTLP_H
#define PROFD_INGEST_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "ingest/foreign.h"
#include "proto/otlp_answer.h"
#include "proto/status.h"

/* Limits of a request */
#define OTLP_PROFILES_MOST 2048u         /* profiles */
#define OTLP_FRAMES_MOST 8000000u        /* frames of all samples */
#define OTLP_ATTRIBUTES_MOST 1024u       /* attributes of a resource, a location or a mapping */
#define OTLP_RESOURCE_BYTES (128u << 20) /* bytes of the attributes of all resources; each use of a text counts */
#define OTLP_JSON_BYTES (4u << 20)       /* bytes of JSON */
#define OTLP_VALUES_MOST 1000000u        /* values in JSON */
#define OTLP_MEMORY ((size_t)256 << 20)  /* bytes of memory while it is read */

/* Profiles that are not stored. */
struct otlp_rejected {
    uint64_t count;
    struct profd_error why; /* the reason of the first one */
};

/* Reads a request (ExportProfilesServiceRequest) and appends its profiles to out, also on failure. The caller frees
 * them. Profiles that break a rule are only counted in *rejected. MALFORMED, TOO_LARGE or NO_MEMORY concern the request
 * as a whole. O(bytes + frames). */
enum profd_status otlp_read(const struct foreign_request *r, struct foreign_list *out, struct otlp_rejected *rejected,
                            struct profd_error *e);

/* Appends the body of an answer as JSON or protobuf: an ExportProfilesServiceResponse if status is OK, otherwise a
 * Status with the sentence. */
void otlp_answer(bool json, enum profd_status status, const char *sentence, const struct otlp_rejected *rejected,
                 struct buffer *out);

#endif
