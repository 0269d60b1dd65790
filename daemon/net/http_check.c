#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <string.h>
#include <strings.h>

#include "net/http_internal.h"
#include "net/http_target.h"
#include "proto/limits.h"

#define BASIC_MOST 1024u /* bytes of user and password, as base64 */

static bool check_is(const char *data, struct http_span s, const char *wanted)
{
    return strlen(wanted) == s.size && strncasecmp(data + s.at, wanted, s.size) == 0;
}

/* On TCP, an unknown host name means DNS rebinding. A browser cannot reach a Unix socket. */
static bool check_host(const struct http_server_config *config, const struct http_head *h, const char *data)
{
    return !config->tcp || http_host_local(data + h->host.at, h->host.size, config->port);
}

/* A page of another origin must not make a browser ask here. */
static bool check_site(const struct http_head *h, const char *data, bool from_origin)
{
    return h->fetch_site.at == 0 || from_origin || check_is(data, h->fetch_site, "same-origin") ||
           check_is(data, h->fetch_site, "none");
}

/* Pages that came by TLS came through a proxy, so by the Unix socket. */
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
    return config->origin != NULL && head->origin.at != 0 && check_is(data, head->origin, config->origin) &&
           check_host(config, head, data);
}

/* Browsers ask so, without a token, whether a page of another origin may ask with one. */
static bool check_preflight(const struct http_head *h, bool from_origin)
{
    return h->method == HTTP_METHOD_OPTIONS && from_origin;
}

/* The parameter of a scheme, behind one or more spaces; false: it is another scheme. */
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

/* The hash of a bearer token, or of the password of basic authentication: some clients can do nothing else. */
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
        if (colon == NULL) {
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
    return query == NULL ? h->target.size : (size_t)(query - (data + h->target.at));
}

static bool check_public(const struct http_server_config *config, const struct http_head *h, const char *data)
{
    return config->is_public != NULL && config->is_public(data + h->target.at, check_path(h, data));
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

/* What the owner of the listener says of a PUT or POST, and what bodies must be. The body was not read yet. */
static void check_body(const struct http_server_config *config, const struct http_head *h, const char *data,
                       struct http_refusal *out)
{
    const bool post = h->method == HTTP_METHOD_POST, sized = h->content_length.at != 0;
    const struct http_body_head head = {.post = post,
                                        .path = data + h->target.at,
                                        .n = check_path(h, data),
                                        .token = out->token,
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
    bool from_origin = http_check_from_origin(config, head, data), preflight = check_preflight(head, from_origin);
    out->token = 0;
    out->methods = config->find_methods == NULL ? "GET, HEAD"
                                                : config->find_methods(data + head->target.at, check_path(head, data));
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
    const int verdict = config->admit == NULL ? 0 : config->admit(config->admit_context, &c, &out->token, &out->error);
    out->status = 0;
    out->anonymous = verdict != 0;
    if (!check_host(config, head, data)) {
        check_refuse(out, 421, "the Host is not one of this server's names", data, head->host);
    } else if (!check_site(head, data, from_origin)) {
        check_refuse(out, 403, "requests from pages of other sites are not answered; Sec-Fetch-Site", data,
                     head->fetch_site);
    } else if (!from_origin && !check_origin(config, head, data)) {
        check_refuse(out, 403, "requests from pages of other origins are not answered; Origin", data, head->origin);
    } else if (!preflight && (head->method == HTTP_METHOD_OTHER || !strstr(out->methods, http_methods[head->method]))) {
        out->status = 405;
        profd_error_set(&out->error, PROFD_METHOD, "only %s can be asked here", out->methods);
    } else if (head->body != 0 && !bodied) {
        check_refuse(out, 413, "a GET or HEAD must not have a body; Content-Length", data, head->content_length);
    } else if (verdict == 403 || (verdict != 0 && !preflight && (bodied || !check_public(config, head, data)))) {
        out->status = verdict;
    } else if (bodied) {
        check_body(config, head, data, out);
    } else if (!preflight && coding_choose(&head->codings) == CODING_NONE) {
        out->status = 406;
        profd_error_set(&out->error, PROFD_REFUSED,
                        "Accept-Encoding refuses all supported codings: identity, gzip and zstd");
    }
}
