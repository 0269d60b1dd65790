#include "proto/otlp_answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/json_message.h"
#include "proto/otlp.pb-c.h"

#define VALUES_MOST 64 /* of an answer in JSON */

bool otlp_is_busy(long http_status)
{
    return http_status == 429 || (http_status >= 502 && http_status <= 504);
}

/* The message of an answer, which some receivers send in JSON though they were asked in protobuf. NULL: it is none, for
 * example the page of a proxy, or JSON without a field of the message. */
static void *read_message(const ProtobufCMessageDescriptor *d, const uint8_t *body, size_t n)
{
    ProtobufCMessage *m = NULL;
    if (n == 0 || *body != '{') {
        return protobuf_c_message_unpack(d, NULL, n, body);
    }
    if (!json_message_decode(d, (const char *)body, n, VALUES_MOST, &m, NULL) &&
        protobuf_c_message_get_packed_size(m) == 0 && memchr(body, '"', n)) {
        protobuf_c_message_free_unpacked(m, NULL);
        m = NULL;
    }
    return m;
}

static enum profd_status judge_failure(const char *from, long http_status, const uint8_t *body, size_t n,
                                       struct profd_error *e)
{
    Profd__Otlp__Failure *why = read_message(&profd__otlp__failure__descriptor, body, n);
    const enum profd_status status = profd_error_set(e,
                                                     otlp_is_busy(http_status)                  ? PROFD_UNAVAILABLE
                                                     : http_status == 401 || http_status == 403 ? PROFD_FORBIDDEN
                                                     : http_status == 413                       ? PROFD_TOO_LARGE
                                                     : http_status / 100 == 4                   ? PROFD_REFUSED
                                                                                                : PROFD_PROTOCOL,
                                                     "%s answers with HTTP status %ld%s%s", from, http_status,
                                                     why && why->message[0] ? ": " : "", why ? why->message : "");
    profd__otlp__failure__free_unpacked(why, NULL);
    return status;
}

enum profd_status otlp_judge(const char *from, long http_status, const uint8_t *body, size_t n, char *warning,
                             size_t warning_size, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    *warning = '\0';
    if (http_status / 100 != 2) {
        return judge_failure(from, http_status, body, n, e);
    }
    Profd__Otlp__Response *r = read_message(&profd__otlp__response__descriptor, body, n);
    FAIL_IF(!r, e, PROFD_PROTOCOL, "%s answers with %zu bytes that are not OTLP", from, n);
    if (r->partial_success && r->partial_success->rejected_profiles > 0) {
        status = profd_error_set(e, PROFD_REFUSED, "%s rejected %" PRId64 " profiles: %s", from,
                                 r->partial_success->rejected_profiles, r->partial_success->error_message);
    } else if (r->partial_success) {
        (void)snprintf(warning, warning_size, "%s", r->partial_success->error_message);
    }
    profd__otlp__response__free_unpacked(r, NULL);
    return status;
}
