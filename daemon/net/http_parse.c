#include "net/http_parse.h"

#include <string.h>
#include <strings.h>

#include "net/http_target.h"
#include "proto/http_text.h"

static enum http_parse_result parse_refuse(struct http_parser *p, int status, const char *reason)
{
    p->status = status;
    p->reason = reason;
    return HTTP_PARSE_BAD;
}

/* Length of the token that text begins with. */
static size_t parse_token(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && http_is_token(text[i])) {
        i++;
    }
    return i;
}

static enum http_parse_result parse_version(struct http_parser *p, const char *text, size_t n)
{
    if (n != 8 || memcmp(text, "HTTP/", 5) != 0 || text[5] < '0' || text[5] > '9' || text[6] != '.' || text[7] < '0' ||
        text[7] > '9') {
        return parse_refuse(p, 400, "the request line does not end in a version such as HTTP/1.1");
    }
    if (text[5] != '1' || text[7] > '1') {
        return parse_refuse(p, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    }
    p->head.minor = (unsigned)(text[7] - '0');
    p->head.close = p->head.minor == 0;
    return HTTP_PARSE_MORE;
}

const char *const http_methods[] = {"", "GET", "HEAD", "OPTIONS", "PUT", "POST"};

static enum http_parse_result parse_request_line(struct http_parser *p, const char *line, size_t n)
{
    size_t method = parse_token(line, n);
    if (method == 0 || method >= n || line[method] != ' ') {
        return parse_refuse(p, 400, "the request does not begin with a method and one space");
    }
    for (enum http_method m = HTTP_METHOD_GET; m <= HTTP_METHOD_POST; m++) {
        if (strlen(http_methods[m]) == method && memcmp(line, http_methods[m], method) == 0) {
            p->head.method = m;
        }
    }
    size_t target = method + 1;
    const char *space = memchr(line + target, ' ', n - target);
    if (space == NULL) {
        return parse_refuse(p, 400, "the request line has no version");
    }
    size_t size = (size_t)(space - line) - target;
    enum http_parse_result result = parse_version(p, space + 1, n - target - size - 1);
    if (result != HTTP_PARSE_MORE) {
        return result;
    }
    /* Targets of other methods (OPTIONS *, CONNECT host) do not matter: nothing is answered about them. */
    bool known = p->head.method != HTTP_METHOD_OTHER && p->head.method != HTTP_METHOD_OPTIONS;
    const char *fault = known ? http_target_judge(line + target, size) : NULL;
    if (fault != NULL) {
        return parse_refuse(p, 400, fault);
    }
    p->head.target = (struct http_span){(uint16_t)target, (uint16_t)size};
    return HTTP_PARSE_MORE;
}

/* 1*DIGIT that fits 64 bits. */
static bool parse_number(const char *text, size_t n, uint64_t *value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v)) {
            return false;
        }
    }
    *value = v;
    return n > 0;
}

/* A list of options, of which only close matters. */
static enum http_parse_result parse_connection(struct http_parser *p, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t size = parse_token(text + at, n - at);
        if (size == 5 && strncasecmp(text + at, "close", 5) == 0) {
            p->head.close = true;
        }
        at += size;
        while (at < n && (text[at] == ' ' || text[at] == '\t')) {
            at++;
        }
        if (at < n && text[at] != ',') {
            return parse_refuse(p, 400, "Connection is not a list of options");
        }
        at++;
        while (at < n && (text[at] == ' ' || text[at] == '\t')) {
            at++;
        }
    }
    return HTTP_PARSE_MORE;
}

/* Fields that may occur only once, and where their values are stored. */
static struct http_span *parse_single(struct http_head *h, const char *name, size_t n)
{
    const struct {
        const char *name;
        struct http_span *span;
    } singles[] = {
        {"host", &h->host},
        {"origin", &h->origin},
        {"sec-fetch-site", &h->fetch_site},
        {"authorization", &h->authorization},
        {"x-remote-user", &h->remote_user},
        {"if-none-match", &h->if_none_match},
        {"content-length", &h->content_length},
        {"content-type", &h->content_type},
        {"content-encoding", &h->content_encoding},
        {"transfer-encoding", &h->transfer_encoding},
        {"expect", &h->expect},
    };
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++) {
        if (strlen(singles[i].name) == n && strncasecmp(singles[i].name, name, n) == 0) {
            return singles[i].span;
        }
    }
    return NULL;
}

static bool parse_is(const char *name, size_t n, const char *wanted)
{
    return strlen(wanted) == n && strncasecmp(name, wanted, n) == 0;
}

/* What the fields of a body say, each by itself. */
static enum http_parse_result parse_body_field(struct http_parser *p, const struct http_span *field, const char *value,
                                               size_t n)
{
    struct http_head *h = &p->head;
    const bool bodied = h->method == HTTP_METHOD_PUT || h->method == HTTP_METHOD_POST;
    if (field == &h->content_length && !parse_number(value, n, &h->body)) {
        return parse_refuse(p, 400, "Content-Length is not a number of decimal digits");
    }
    if (field == &h->transfer_encoding && !bodied) {
        return parse_refuse(p, 400, "Transfer-Encoding is accepted with PUT and POST only");
    }
    if (field == &h->transfer_encoding && (!parse_is(value, n, "chunked") || h->minor == 0)) {
        return parse_refuse(p, 400, "Transfer-Encoding is not chunked once, with HTTP/1.1");
    }
    if (field == &h->expect && (!bodied || !parse_is(value, n, "100-continue"))) {
        return parse_refuse(p, 417, "Expect is not 100-continue, of a PUT or POST");
    }
    if (field == &h->content_encoding) {
        h->coding = CODING_IDENTITY;
        while (h->coding != CODING_NONE && !parse_is(value, n, coding_name(h->coding))) {
            h->coding++;
        }
    }
    return HTTP_PARSE_MORE;
}

static enum http_parse_result parse_known(struct http_parser *p, const char *name, size_t name_size, const char *value,
                                          size_t n, size_t at)
{
    if (parse_is(name, name_size, "upgrade")) {
        return parse_refuse(p, 400, "Upgrade is not accepted: only HTTP/1.1 is supported");
    }
    if (parse_is(name, name_size, "connection")) {
        return parse_connection(p, value, n);
    }
    if (parse_is(name, name_size, "accept-encoding") && !coding_wish_read(&p->head.codings, value, n)) {
        return parse_refuse(p, 400, "Accept-Encoding is not a list of codings with weights from 0 to 1");
    }
    struct http_span *single = parse_single(&p->head, name, name_size);
    if (single == NULL) {
        return HTTP_PARSE_MORE;
    }
    if (single->at != 0) {
        return parse_refuse(p, 400, "a header field that may occur only once occurs twice");
    }
    *single = (struct http_span){(uint16_t)at, (uint16_t)n};
    if (single == &p->head.host && !http_host_valid(value, n)) {
        return parse_refuse(p, 400, "Host is not a host name or address with or without a port");
    }
    return parse_body_field(p, single, value, n);
}

static enum http_parse_result parse_field(struct http_parser *p, const char *data, size_t line, size_t n)
{
    if (data[line] == ' ' || data[line] == '\t') {
        return parse_refuse(p, 400, "a header line begins with white space");
    }
    size_t name = parse_token(data + line, n);
    if (name == 0 || name >= n || data[line + name] != ':') {
        return parse_refuse(p, 400, "a header line does not begin with a field name and a colon");
    }
    if (++p->fields > LIMIT_HTTP_FIELDS) {
        return parse_refuse(p, 431, "the request has more than 64 header fields");
    }
    size_t value = line + name + 1, end = line + n;
    while (value < end && (data[value] == ' ' || data[value] == '\t')) {
        value++;
    }
    while (end > value && (data[end - 1] == ' ' || data[end - 1] == '\t')) {
        end--;
    }
    return parse_known(p, data + line, name, data + value, end - value, value);
}

/* The line [p->line, end) is complete; p->at is after its CRLF. */
static enum http_parse_result parse_line(struct http_parser *p, const char *data, size_t end)
{
    size_t line = p->line, n = end - line;
    p->line = p->at;
    if (p->headers == 0) {
        p->headers = p->at;
        return parse_request_line(p, data, n);
    }
    if (n > 0) {
        return parse_field(p, data, line, n);
    }
    if (p->head.host.at == 0) {
        return parse_refuse(p, 400, "the request has no Host");
    }
    if (p->head.content_length.at != 0 && p->head.transfer_encoding.at != 0) {
        return parse_refuse(p, 400, "the request has both Content-Length and Transfer-Encoding");
    }
    p->done = true;
    return HTTP_PARSE_DONE;
}

static enum http_parse_result parse_byte(struct http_parser *p, const char *data)
{
    uint8_t byte = (uint8_t)data[p->at];
    if (p->headers != 0 && p->at - p->headers >= LIMIT_HTTP_HEADERS) {
        return parse_refuse(p, 431, "the header is larger than 8192 bytes");
    }
    if (p->cr) {
        if (byte != '\n') {
            return parse_refuse(p, 400, "a carriage return is not followed by a line feed");
        }
        p->cr = false;
        p->at++;
        return parse_line(p, data, p->at - 2);
    }
    if (byte == '\n') {
        return parse_refuse(p, 400, "a line feed does not follow a carriage return");
    }
    if (byte != '\r' && byte != '\t' && (byte < 0x20 || byte == 0x7f)) {
        return parse_refuse(p, 400, "the request contains a control character");
    }
    if (p->headers == 0 && byte != '\r' && p->at - p->line >= LIMIT_HTTP_LINE) {
        return parse_refuse(p, 414, "the request line is longer than 4096 bytes");
    }
    p->cr = byte == '\r';
    p->at++;
    return HTTP_PARSE_MORE;
}

enum http_parse_result http_parse(struct http_parser *p, const char *data, size_t size)
{
    if (p->status != 0) {
        return HTTP_PARSE_BAD;
    }
    enum http_parse_result result = p->done ? HTTP_PARSE_DONE : HTTP_PARSE_MORE;
    while (result == HTTP_PARSE_MORE && p->at < size) {
        result = parse_byte(p, data);
    }
    return result;
}
