#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/buffer.h"
#include "net/http_inside.h"

#define HTTP_PROBLEM_MAX 4096

static const char *write_reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {200, "OK"}, {204, "No Content"}, {304, "Not Modified"}, {400, "Bad Request"}, {401, "Unauthorized"},
        {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"}, {408, "Request Timeout"}, {409, "Conflict"},
        {413, "Content Too Large"}, {414, "URI Too Long"}, {417, "Expectation Failed"}, {421, "Misdirected Request"},
        {422, "Unprocessable Content"}, {431, "Request Header Fields Too Large"}, {500, "Internal Server Error"},
        {503, "Service Unavailable"}, {504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"}, {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Status";
}

/* strftime would follow the locale. */
static void write_date(struct evbuffer *out)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = time(NULL);
    struct tm t;
    if (gmtime_r(&now, &t) == NULL)
        return;
    evbuffer_add_printf(out, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", days[t.tm_wday], t.tm_mday, months[t.tm_mon],
                        t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

/* A field, unless its value is empty or could break out of its line. */
static void write_field(struct evbuffer *out, const char *name, const char *value)
{
    if (value == NULL || *value == '\0')
        return;
    for (const char *p = value; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return;
    evbuffer_add_printf(out, "%s: %s\r\n", name, value);
}

static void write_security(struct evbuffer *out, const char *csp)
{
    write_field(out, "X-Content-Type-Options", "nosniff");
    write_field(out, "Content-Security-Policy", csp != NULL ? csp : "default-src 'none'; frame-ancestors 'none'; sandbox");
    write_field(out, "Cross-Origin-Resource-Policy", "same-origin");
    write_field(out, "Cross-Origin-Opener-Policy", "same-origin");
    write_field(out, "Referrer-Policy", "no-referrer");
}

static void write_by_status(struct evbuffer *out, int status)
{
    if (status == 405)
        write_field(out, "Allow", "GET, HEAD");
    if (status == 401)
        write_field(out, "WWW-Authenticate", "Bearer realm=\"profd\"");
}

static void body_free(const void *data, size_t size, void *memory)
{
    (void)data;
    (void)size;
    free(memory);
}

/* Moves the body's memory to out, which frees it when it is written. */
static bool write_body(struct evbuffer *out, struct buffer *body, bool wanted)
{
    char *data = body->data;
    size_t size = body->size;
    *body = (struct buffer){.limit = body->limit};
    if (data == NULL)
        return true;
    if (wanted && size > 0 && evbuffer_add_reference(out, data, size, body_free, data) == 0)
        return true;
    free(data);
    return !wanted || size == 0;
}

bool http_write_answer(struct evbuffer *out, const struct http_answer *answer, bool head_only, bool last)
{
    bool bodiless = answer->status == 304 || answer->status == 204;
    struct buffer none = {0};
    struct buffer *body = answer->body != NULL ? answer->body : &none;
    evbuffer_add_printf(out, "HTTP/1.1 %03d %s\r\n", answer->status, write_reason(answer->status));
    write_date(out);
    if (!bodiless) {
        write_field(out, "Content-Type", answer->content_type);
        evbuffer_add_printf(out, "Content-Length: %zu\r\n", body->size);
    }
    write_field(out, "Cache-Control", answer->cache_control != NULL ? answer->cache_control : "no-store");
    write_field(out, "ETag", answer->etag);
    if (answer->retry_after_ms > 0)
        evbuffer_add_printf(out, "Retry-After: %u\r\n", (unsigned)(((uint64_t)answer->retry_after_ms + 999) / 1000));
    write_by_status(out, answer->status);
    if (last)
        write_field(out, "Connection", "close");
    write_security(out, answer->csp);
    bool written = evbuffer_add(out, "\r\n", 2) == 0;
    return write_body(out, body, !head_only && !bodiless) && written;
}

/* The sentence as a JSON string; profd_error has removed control characters and broken UTF-8. */
static void write_string(struct buffer *b, const char *text)
{
    buffer_add_char(b, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            buffer_add_char(b, '\\');
        buffer_add_char(b, *text);
    }
    buffer_add_char(b, '"');
}

bool http_write_refusal(struct evbuffer *out, const struct http_refusal *refusal, bool head_only)
{
    struct buffer body;
    buffer_init(&body, HTTP_PROBLEM_MAX);
    buffer_add_text(&body, "{\"type\":\"about:blank\",\"title\":");
    write_string(&body, write_reason(refusal->status));
    buffer_add_text(&body, ",\"status\":");
    buffer_add_u64(&body, (uint64_t)refusal->status, 0);
    buffer_add_text(&body, ",\"detail\":");
    write_string(&body, refusal->error.sentence);
    buffer_add_text(&body, "}\n");
    if (body.failed) {
        buffer_done(&body);
        return false;
    }
    struct http_answer answer = {.status = refusal->status, .content_type = "application/problem+json", .body = &body,
                                 .retry_after_ms = refusal->status == 503 ? 1000 : 0};
    return http_write_answer(out, &answer, head_only, true);
}
