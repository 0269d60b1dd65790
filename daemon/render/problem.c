/* Problem documents (RFC 9457). The title of type about:blank is the phrase of the HTTP status (4.2.1). */
#include "proto/http_phrase.h"
#include "render/document.h"
#include "render/render.h"

void render_problem(enum profd_status status, int http_status, const char *sentence, struct buffer *out)
{
    document_write(json_pack("{s:s, s:s, s:i, s:o, s:s, s:b}", "type", "about:blank", "title", http_phrase(http_status),
                             "status", http_status, "detail", document_text(sentence), "code",
                             profd_status_name(status), "retry", profd_status_retry(status)),
                   out);
}
