/* Small documents of JSON, built with jansson; problem documents (RFC 9457). */
#include "render/document.h"

#include <stdlib.h>
#include <string.h>

#include "proto/http_text.h"
#include "proto/utf8.h"
#include "render/render_internal.h"

json_t *document_text_of(const char *text, size_t n)
{
    json_t *value = json_stringn(text, n);
    struct buffer b;
    if (value) {
        return value;
    }
    const uint8_t *p = (const uint8_t *)text;
    buffer_init(&b, 4 * n + 16);
    for (size_t i = 0, length; i < n; i += length) {
        length = p[i] < 0x80 ? 1 : utf8_length(p + i, n - i);
        if (length == 0) {
            JSON_ADD(&b, "\xef\xbf\xbd");
            length = 1;
        } else {
            buffer_add(&b, p + i, length);
        }
    }
    value = b.failed ? NULL : json_stringn(b.data, b.size);
    buffer_done(&b);
    return value;
}

json_t *document_text(const char *text)
{
    return text ? document_text_of(text, strlen(text)) : json_null();
}

void document_write(json_t *root, struct buffer *out)
{
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!text) {
        out->failed = true;
        return;
    }
    json_add_document(out, text, strlen(text));
    buffer_add_char(out, '\n');
    free(text);
}

/* Problem documents (RFC 9457). The title of type about:blank is the phrase of the HTTP status (4.2.1). */

void render_problem(enum profd_status status, int http_status, const char *sentence, struct buffer *out)
{
    document_write(json_pack("{s:s, s:s, s:i, s:o, s:s, s:b}", "type", "about:blank", "title", http_phrase(http_status),
                             "status", http_status, "detail", document_text(sentence), "code",
                             profd_status_name(status), "retry", profd_status_retry(status)),
                   out);
}

int render_connect_problem(enum profd_status status, const char *sentence, struct buffer *out)
{
    static const struct {
        enum profd_status status;
        int http_status;
        const char *code;
    } codes[] = {{PROFD_MALFORMED, 400, "invalid_argument"},
                 {PROFD_BAD_QUERY, 400, "invalid_argument"},
                 {PROFD_REFUSED, 400, "invalid_argument"},
                 {PROFD_CONFLICT, 400, "failed_precondition"},
                 {PROFD_UNAUTHORIZED, 401, "unauthenticated"},
                 {PROFD_FORBIDDEN, 403, "permission_denied"},
                 {PROFD_NOT_FOUND, 404, "not_found"},
                 {PROFD_LIMIT, 429, "resource_exhausted"},
                 {PROFD_TOO_LARGE, 429, "resource_exhausted"},
                 {PROFD_FULL, 429, "resource_exhausted"},
                 {PROFD_UNKNOWN_TYPE, 501, "unimplemented"},
                 {PROFD_METHOD, 501, "unimplemented"},
                 {PROFD_BUSY, 503, "unavailable"},
                 {PROFD_NO_MEMORY, 503, "unavailable"},
                 {PROFD_UNAVAILABLE, 503, "unavailable"},
                 {PROFD_STOPPING, 503, "unavailable"},
                 {PROFD_TIMEOUT, 504, "deadline_exceeded"},
                 {PROFD_DAMAGED, 500, "data_loss"}};
    const size_t n = sizeof codes / sizeof *codes;
    size_t i = 0;

    while (i < n && codes[i].status != status) {
        i++;
    }
    document_write(
        json_pack("{s:s, s:o}", "code", i < n ? codes[i].code : "internal", "message", document_text(sentence)), out);
    return i < n ? codes[i].http_status : 500;
}
