/* The head of a request: its target and Host, its fields, and whether it may be answered. */
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "net/net_internal.h"
#include "proto/http_text.h"

#define HTTP_HOST_MAX 255

/* Returns NULL if text is a valid target in origin-form, otherwise the rule that it breaks. A target begins with one
 * '/', has only characters that RFC 3986 allows in path and query, percent signs with two digits, and no encoded
 * control character. Its path has no encoded slash or backslash, and no segment "." or "..", encoded or not. O(n). */
static const char *http_target_judge(const char *text, size_t n)
{
    bool query = false;
    size_t segment = 0, dots = 0; /* bytes of the current path segment, and how many of them are dots */
    if (n == 0 || text[0] != '/' || (n > 1 && text[1] == '/')) {
        return "the request target must begin with one slash";
    }
    for (size_t at = 1, size = 0; at <= n; at += size) {
        size = 1;
        bool ends = at == n || (!query && (text[at] == '/' || text[at] == '?'));
        if (!query && ends && dots == segment && (dots == 1 || dots == 2)) {
            return "the request path has a segment of dots";
        }
        if (at == n) {
            break;
        }
        if (ends) {
            query = text[at] == '?';
            segment = dots = 0;
            continue;
        }
        char byte = text[at];
        if (byte == '%') {
            const int value = http_percent_value(text + at, n - at);
            if (value < 0) {
                return "the request target contains a percent sign without two hexadecimal digits";
            }
            if (value < 0x20 || value == 0x7f) {
                return "the request target contains an encoded control character";
            }
            if (!query && (value == '/' || value == '\\')) {
                return "the request path contains an encoded slash";
            }
            byte = (char)value;
            size = 3;
        } else if (!http_is_path(byte) && !(query && byte == '?')) {
            return "the request target contains a character that must be percent-encoded";
        }
        segment++;
        dots += byte == '.';
    }
    return NULL;
}

/* ":" and 1–5 digits up to 65535, or nothing. */
static bool host_port_valid(const char *text, size_t n)
{
    uint32_t port = 0;
    if (n == 0) {
        return true;
    }
    if (n < 2 || n > 6 || text[0] != ':') {
        return false;
    }
    for (size_t i = 1; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        port = port * 10 + (uint32_t)(text[i] - '0');
    }
    return port <= 65535;
}

bool http_host_valid(const char *text, size_t n)
{
    size_t i = 0;
    if (n == 0 || n > HTTP_HOST_MAX) {
        return false;
    }
    if (text[0] == '[') {
        for (i = 1; i < n && (http_hex_value(text[i]) >= 0 || text[i] == ':' || text[i] == '.'); i++) {
        }
        return i > 2 && i < n && text[i] == ']' && host_port_valid(text + i + 1, n - i - 1);
    }
    while (i < n && (http_is_alphanumeric(text[i]) || text[i] == '.' || text[i] == '-' || text[i] == '_')) {
        i++;
    }
    return i > 0 && host_port_valid(text + i, n - i);
}

bool http_host_local(const char *text, size_t n, unsigned port)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char full[32];
        int size = snprintf(full, sizeof full, "%s:%u", names[i], port);
        if (size > 0 && (size_t)size == n && strncasecmp(text, full, n) == 0) {
            return true;
        }
        if (port == 80 && strlen(names[i]) == n && strncasecmp(text, names[i], n) == 0) {
            return true;
        }
    }
    return false;
}

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

const char *const http_methods[] = {"", "GET", "HEAD", "OPTIONS", "PUT", "POST"};

static bool parse_is(const char *name, size_t n, const char *wanted)
{
    return strlen(wanted) == n && strncasecmp(name, wanted, n) == 0;
}

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
    if (!space) {
        return parse_refuse(p, 400, "the request line has no version");
    }
    size_t size = (size_t)(space - line) - target;
    const char *version = space + 1;
    if (n - target - size - 1 != 8 || memcmp(version, "HTTP/", 5) != 0 || version[5] < '0' || version[5] > '9' ||
        version[6] != '.' || version[7] < '0' || version[7] > '9') {
        return parse_refuse(p, 400, "the request line does not end in a version such as HTTP/1.1");
    }
    if (version[5] != '1' || version[7] > '1') {
        return parse_refuse(p, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    }
    p->head.minor = (unsigned)(version[7] - '0');
    p->head.close = p->head.minor == 0;
    /* Targets of other methods (OPTIONS *, CONNECT host) do not matter: nothing is answered about them. */
    bool known = p->head.method != HTTP_METHOD_OTHER && p->head.method != HTTP_METHOD_OPTIONS;
    const char *fault = known ? http_target_judge(line + target, size) : NULL;
    if (fault) {
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

/* Parses a list of options. Only close has a meaning. */
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

/* Checks one field about the body or the answer, without the others. */
static enum http_parse_result parse_body_field(struct http_parser *p, const struct http_span *field, const char *value,
                                               size_t n)
{
    struct http_head *h = &p->head;
    const bool bodied = h->method == HTTP_METHOD_PUT || h->method == HTTP_METHOD_POST;
    if (field == &h->content_length && !parse_number(value, n, &h->body)) {
        return parse_refuse(p, 400, "Content-Length is not a number of decimal digits");
    }
    if (field == &h->connect_timeout && (n > 10 || !parse_number(value, n, &h->timeout))) {
        return parse_refuse(p, 400, "Connect-Timeout-Ms is not a number of at most 10 decimal digits");
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

    struct http_head *h = &p->head;
    const struct {
        const char *name;
        struct http_span *value;
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
        {"connect-timeout-ms", &h->connect_timeout},
    };
    const char *text = data + line;
    size_t i = 0, size = end - value;
    if (parse_is(text, name, "upgrade")) {
        return parse_refuse(p, 400, "Upgrade is not accepted: only HTTP/1.1 is supported");
    }
    if (parse_is(text, name, "connection")) {
        return parse_connection(p, data + value, size);
    }
    if (parse_is(text, name, "accept-encoding") && !coding_wish_read(&h->codings, data + value, size)) {
        return parse_refuse(p, 400, "Accept-Encoding is not a list of codings with weights from 0 to 1");
    }
    /* Fields that may occur only once. */
    while (i < sizeof singles / sizeof singles[0] && !parse_is(text, name, singles[i].name)) {
        i++;
    }
    if (i == sizeof singles / sizeof singles[0]) {
        return HTTP_PARSE_MORE;
    }
    if (singles[i].value->at != 0) {
        return parse_refuse(p, 400, "a header field that may occur only once occurs twice");
    }
    *singles[i].value = (struct http_span){(uint16_t)value, (uint16_t)size};
    if (singles[i].value == &h->host && !http_host_valid(data + value, size)) {
        return parse_refuse(p, 400, "Host is not a host name or address with or without a port");
    }
    return parse_body_field(p, singles[i].value, data + value, size);
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

enum http_parse_result http_parse(struct http_parser *p, const char *data, size_t size)
{
    if (p->status != 0) {
        return HTTP_PARSE_BAD;
    }
    enum http_parse_result result = p->done ? HTTP_PARSE_DONE : HTTP_PARSE_MORE;
    while (result == HTTP_PARSE_MORE && p->at < size) {
        const uint8_t byte = (uint8_t)data[p->at];
        if (p->headers != 0 && p->at - p->headers >= LIMIT_HTTP_HEADERS) {
            return parse_refuse(p, 431, "the header is larger than 8192 bytes");
        }
        if (p->cr) {
            if (byte != '\n') {
                return parse_refuse(p, 400, "a carriage return is not followed by a line feed");
            }
            p->cr = false;
            p->at++;
            result = parse_line(p, data, p->at - 2);
            continue;
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
    }
    return result;
}

#define BASIC_MOST 1024u /* bytes of user and password, as base64 */

static bool check_is(const char *data, struct http_span s, const char *wanted)
{
    return strlen(wanted) == s.size && strncasecmp(data + s.at, wanted, s.size) == 0;
}

/* On TCP, an unknown host name is an attack by DNS rebinding. A browser cannot reach a Unix socket. */
static bool check_host(const struct http_server_config *config, const struct http_head *h, const char *data)
{
    return !config->tcp || http_host_local(data + h->host.at, h->host.size, config->port);
}

/* A page that was loaded over TLS came through a proxy, which uses the Unix socket. */
static bool check_origin(const struct http_server_config *config, const struct http_head *h, const char *data)
{
    static const char plain[] = "http://", tls[] = "https://";
    if (h->origin.at == 0) {
        return true;
    }
    const bool by_tls =
        !config->tcp && h->origin.size >= sizeof tls - 1 && strncasecmp(data + h->origin.at, tls, sizeof tls - 1) == 0;
    const char *scheme = by_tls ? tls : plain;
    const size_t skip = strlen(scheme);
    return h->origin.size == skip + h->host.size && strncasecmp(data + h->origin.at, scheme, skip) == 0 &&
           strncasecmp(data + h->origin.at + skip, data + h->host.at, h->host.size) == 0;
}

bool http_check_from_origin(const struct http_server_config *config, const struct http_head *head, const char *data)
{
    return config->origin && head->origin.at != 0 && check_is(data, head->origin, config->origin) &&
           check_host(config, head, data);
}

/* Finds the parameter of an authorization scheme, behind one or more spaces. Returns false if the scheme is another. */
static bool check_scheme(const struct http_head *h, const char *data, const char *scheme, struct http_span *out)
{
    const size_t n = strlen(scheme);
    if (h->authorization.size <= n || !check_is(data, (struct http_span){h->authorization.at, (uint16_t)n}, scheme) ||
        data[h->authorization.at + n] != ' ') {
        return false;
    }
    *out = h->authorization;
    for (size_t i = n; i > 0 || (out->size > 0 && data[out->at] == ' '); i -= i > 0) {
        out->at++;
        out->size--;
    }
    return true;
}

/* Hashes the bearer token, or the password of basic authentication, which is all that some clients have. Returns false
 * if there is neither. */
static bool check_token(const struct http_head *h, const char *data, uint8_t hash[SHA256_DIGEST_SIZE])
{
    uint8_t decoded[BASE64_DECODE_LENGTH(BASIC_MOST)];
    struct base64_decode_ctx decoding;
    size_t n = sizeof decoded;
    struct http_span span;
    struct sha256_ctx context;
    sha256_init(&context);
    if (check_scheme(h, data, "bearer", &span)) {
        sha256_update(&context, span.size, (const uint8_t *)data + span.at);
    } else if (check_scheme(h, data, "basic", &span) && span.size <= BASIC_MOST) {
        base64_decode_init(&decoding);
        const uint8_t *colon = base64_decode_update(&decoding, &n, decoded, span.size, data + span.at) == 1 &&
                                       base64_decode_final(&decoding) == 1
                                   ? memchr(decoded, ':', n)
                                   : NULL;
        if (!colon) {
            return false;
        }
        sha256_update(&context, (size_t)(decoded + n - colon - 1), colon + 1);
        explicit_bzero(decoded, sizeof decoded);
    } else {
        return false;
    }
    sha256_digest(&context, SHA256_DIGEST_SIZE, hash);
    return true;
}

/* Bytes of the target without its query. */
static size_t check_path(const struct http_head *h, const char *data)
{
    const char *query = memchr(data + h->target.at, '?', h->target.size);
    return query ? (size_t)(query - (data + h->target.at)) : h->target.size;
}

static void check_refuse(struct http_refusal *out, int status, const char *rule, const char *data,
                         struct http_span value)
{
    out->status = status;
    if (value.at == 0) {
        profd_error_set(&out->error, PROFD_REFUSED, "%s", rule);
    } else {
        profd_error_set(&out->error, PROFD_REFUSED, "%s: '%.*s'", rule, value.size > 100 ? 100 : value.size,
                        data + value.at);
    }
}

/* Asks the owner of the listener about a PUT or POST, then checks the rules for all bodies. The body is still unread.
 */
static void check_body(const struct http_server_config *config, const struct http_peer *peer, const struct http_head *h,
                       const char *data, struct http_refusal *out)
{
    const bool post = h->method == HTTP_METHOD_POST, sized = h->content_length.at != 0;
    const struct http_body_head head = {.post = post,
                                        .path = data + h->target.at,
                                        .n = check_path(h, data),
                                        .token = out->token,
                                        .tcp = config->tcp,
                                        .peer = *peer,
                                        .sized = sized,
                                        .size = h->body,
                                        .type = data + h->content_type.at,
                                        .type_size = h->content_type.size};

    out->status = config->judge_body(config->body_context, &head, &out->error);
    if (out->status != 0) {
        return;
    }
    if (!sized && !(post && h->transfer_encoding.at != 0)) {
        out->status = 411;
        profd_error_set(&out->error, PROFD_REFUSED,
                        post ? "a POST needs a Content-Length or Transfer-Encoding: chunked"
                             : "a PUT needs a Content-Length");
    } else if (post && h->body > LIMIT_HTTP_POST) {
        out->status = 413;
        profd_error_set(&out->error, PROFD_TOO_LARGE, "the body has %llu bytes, at most %u are taken",
                        (unsigned long long)h->body, LIMIT_HTTP_POST);
    } else if (h->coding != CODING_IDENTITY && (!post || h->coding == CODING_NONE)) {
        check_refuse(out, 415,
                     post ? "a POST is identity, gzip or zstd; Content-Encoding"
                          : "a PUT is not coded; Content-Encoding",
                     data, h->content_encoding);
    }
}

void http_check(const struct http_server_config *config, const struct http_peer *peer, const struct http_head *head,
                const char *data, struct http_refusal *out)
{
    const bool bodied = head->method == HTTP_METHOD_PUT || head->method == HTTP_METHOD_POST;
    const bool from_origin = http_check_from_origin(config, head, data);
    /* Browsers ask so, without a token, whether a page of another origin may ask with one. */
    const bool preflight = head->method == HTTP_METHOD_OPTIONS && from_origin;
    const char *path = data + head->target.at;
    const size_t path_size = check_path(head, data);
    out->token = 0;
    out->methods = config->find_methods ? config->find_methods(path, path_size) : "GET, HEAD";
    /* The verdict is 0, or 401 or 403 with a sentence. */
    uint8_t hash[SHA256_DIGEST_SIZE];
    const bool token = check_token(head, data, hash);
    const struct http_credentials c = {.tcp = config->tcp,
                                       .open = config->open,
                                       .reads = head->method == HTTP_METHOD_GET || head->method == HTTP_METHOD_HEAD,
                                       .peer = *peer,
                                       .given = head->authorization.at != 0,
                                       .token_sha256 = token ? hash : NULL,
                                       .user = head->remote_user.at != 0 ? data + head->remote_user.at : NULL,
                                       .user_size = head->remote_user.size};
    const int verdict = config->admit ? config->admit(config->admit_context, &c, &out->token, &out->error) : 0;
    out->status = 0;
    out->anonymous = verdict != 0;
    if (!check_host(config, head, data)) {
        check_refuse(out, 421, "the Host is not one of this server's names", data, head->host);
    } else if (head->fetch_site.at != 0 && !from_origin && !check_is(data, head->fetch_site, "same-origin") &&
               !check_is(data, head->fetch_site, "none")) {
        check_refuse(out, 403, "requests from pages of other sites are not answered; Sec-Fetch-Site", data,
                     head->fetch_site);
    } else if (!from_origin && !check_origin(config, head, data)) {
        check_refuse(out, 403, "requests from pages of other origins are not answered; Origin", data, head->origin);
    } else if (!preflight && (head->method == HTTP_METHOD_OTHER || !strstr(out->methods, http_methods[head->method]))) {
        out->status = 405;
        profd_error_set(&out->error, PROFD_METHOD, "only %s can be asked here", out->methods);
    } else if (head->body != 0 && !bodied) {
        check_refuse(out, 413, "a GET or HEAD must not have a body; Content-Length", data, head->content_length);
    } else if (verdict == 403 ||
               (verdict != 0 && !preflight && (bodied || !config->is_public || !config->is_public(path, path_size)))) {
        out->status = verdict;
    } else if (bodied) {
        check_body(config, peer, head, data, out);
    } else if (!preflight && coding_choose(&head->codings) == CODING_NONE) {
        out->status = 406;
        profd_error_set(&out->error, PROFD_REFUSED,
                        "Accept-Encoding refuses all supported codings: identity, gzip and zstd");
    }
}
