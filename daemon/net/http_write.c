#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/net_internal.h"
#include "proto/http_text.h"

#define HTTP_PROBLEM_MAX 4096
#define HTTP_ANSWER_HEAD_MAX 8192
#define HTTP_PREFLIGHT_SECONDS 600

/* strftime would follow the locale. */
static void write_date(struct buffer *out)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = time(NULL);
    struct tm t;
    if (!gmtime_r(&now, &t)) {
        return;
    }
    buffer_add_format(out, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", days[t.tm_wday], t.tm_mday,
                      months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

/* A field, unless its value is empty or could break out of its line. */
static void write_field(struct buffer *out, const char *name, const char *value)
{
    if (!value || *value == '\0') {
        return;
    }
    for (const char *p = value; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            return;
        }
    }
    buffer_add_text(out, name);
    buffer_add_text(out, ": ");
    buffer_add_text(out, value);
    buffer_add_text(out, "\r\n");
}

static void write_number(struct buffer *out, const char *name, uint64_t value)
{
    buffer_add_text(out, name);
    buffer_add_text(out, ": ");
    buffer_add_u64(out, value, 0);
    buffer_add_text(out, "\r\n");
}

/* Writes the permissions of pages of the other origin (Fetch standard). If an origin is configured, every answer
 * depends on the requesting origin. */
static void write_origin(struct buffer *out, const struct http_manner *manner, bool negotiated)
{
    if (manner->origin) {
        write_field(out, "Vary", negotiated ? "Accept-Encoding, Origin" : "Origin");
    } else if (negotiated) {
        write_field(out, "Vary", "Accept-Encoding");
    }
    if (!manner->from_origin) {
        return;
    }
    write_field(out, "Access-Control-Allow-Origin", manner->origin);
    if (!manner->preflight) {
        write_field(out, "Access-Control-Expose-Headers",
                    "Date, ETag, Link, Profd-Exact, Retry-After, WWW-Authenticate");
        return;
    }
    write_field(out, "Access-Control-Allow-Methods", "GET, HEAD");
    write_field(out, "Access-Control-Allow-Headers", "Authorization, If-None-Match");
    write_field(out, "Access-Control-Allow-Private-Network", "true");
    write_number(out, "Access-Control-Max-Age", HTTP_PREFLIGHT_SECONDS);
}

static void body_free(const void *data, size_t size, void *memory)
{
    (void)data;
    (void)size;
    free(memory);
}

bool http_write_answer(struct evbuffer *out, const struct http_answer *answer, const struct http_manner *manner)
{
    const bool bodiless = answer->status == 304 || answer->status == 204;
    struct buffer none = {0}, head;
    struct buffer *body = answer->body ? answer->body : &none;
    buffer_init(&head, HTTP_ANSWER_HEAD_MAX);
    buffer_add_text(&head, "HTTP/1.1 ");
    buffer_add_u64(&head, (uint64_t)answer->status, 0);
    buffer_add_char(&head, ' ');
    buffer_add_text(&head, http_phrase(answer->status));
    buffer_add_text(&head, "\r\n");
    write_date(&head);
    if (!bodiless) {
        write_field(&head, "Content-Type", answer->content_type);
        write_number(&head, "Content-Length", body->size);
        if (answer->coding != CODING_IDENTITY) {
            write_field(&head, "Content-Encoding", coding_name(answer->coding));
        }
    }
    write_field(&head, "Cache-Control", answer->cache_control ? answer->cache_control : "no-store");
    write_field(&head, "ETag", answer->etag);
    write_field(&head, "Profd-Exact", answer->exact);
    if (answer->retry_after_ms > 0) {
        write_number(&head, "Retry-After", ((uint64_t)answer->retry_after_ms + 999) / 1000);
    }
    if (answer->status == 405) {
        buffer_add_format(&head, "Allow: %s%s\r\n", manner->methods, manner->origin ? ", OPTIONS" : "");
    }
    if (answer->status == 401) {
        write_field(&head, "WWW-Authenticate", "Bearer realm=\"profd\"");
    }
    write_origin(&head, manner, answer->negotiated);
    if (manner->last) {
        write_field(&head, "Connection", "close");
    }
    write_field(&head, "Content-Security-Policy",
                answer->csp ? answer->csp : "default-src 'none'; frame-ancestors 'none'; sandbox");
    buffer_add_text(&head, "X-Content-Type-Options: nosniff\r\n"
                           "Cross-Origin-Resource-Policy: same-origin\r\n"
                           "Cross-Origin-Opener-Policy: same-origin\r\n"
                           "Referrer-Policy: no-referrer\r\n");
    buffer_add_text(&head, "\r\n");
    bool written = !head.failed && evbuffer_add(out, head.data, head.size) == 0;
    buffer_done(&head);

    /* The body's memory moves to out, which frees it when it is written. */
    char *data = body->data;
    const size_t size = body->size;
    *body = (struct buffer){.limit = body->limit};
    if (!data || manner->head_only || bodiless || size == 0) {
        free(data);
        return written;
    }
    if (evbuffer_add_reference(out, data, size, body_free, data) == 0) {
        return written;
    }
    free(data);
    return false;
}

/* The status code of an error answer, as in the problem documents of queries. */
static enum profd_status write_code(int status)
{
    switch (status) {
    case 401:
        return PROFD_UNAUTHORIZED;
    case 403:
        return PROFD_FORBIDDEN;
    case 405:
        return PROFD_METHOD;
    case 408:
    case 504:
        return PROFD_TIMEOUT;
    case 413:
    case 414:
    case 431:
        return PROFD_TOO_LARGE;
    case 503:
        return PROFD_BUSY;
    case 505:
        return PROFD_UNKNOWN_VERSION;
    case 400:
        return PROFD_MALFORMED;
    default:
        return PROFD_REFUSED;
    }
}

bool http_write_refusal(struct evbuffer *out, const struct http_refusal *refusal, struct http_manner manner)
{
    struct buffer body;
    buffer_init(&body, HTTP_PROBLEM_MAX);
    const bool deadline = manner.timed && refusal->status == 504;
    if (deadline) { /* as the Connect protocol says it */
        buffer_add_text(&body, "{\"code\":\"deadline_exceeded\",\"message\":\"the answer was not ready in time\"}");
    } else {
        manner.write_problem(write_code(refusal->status), refusal->status, refusal->error.sentence, &body);
    }
    if (body.failed) {
        buffer_done(&body);
        return false;
    }
    struct http_answer answer = {.status = refusal->status,
                                 .content_type = deadline ? "application/json" : "application/problem+json",
                                 .body = &body,
                                 .retry_after_ms = refusal->status == 503 ? 1000 : 0};
    manner.last = true;
    manner.methods = refusal->methods;
    return http_write_answer(out, &answer, &manner);
}
