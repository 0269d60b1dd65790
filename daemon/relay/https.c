#include "relay/https.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/limits.h"

#define TOKEN_MIN 20
#define CONNECT_SECONDS 20L
#define ANSWER_MS 90000L /* proxies give up after a minute */
#define RETRY_MOST 3600  /* seconds: a longer Retry-After counts as this */

struct https {
    CURL *easy;
    char why[CURL_ERROR_SIZE];
};

/* The received part of an answer. */
struct https_taking {
    struct https_answer *answer;
    size_t capacity;
    bool too_large, no_memory, has_head;
};

enum profd_status https_new(struct https **out, struct profd_error *e)
{
    struct https *h = calloc(1, sizeof *h);

    if (h && !curl_global_init(CURL_GLOBAL_DEFAULT)) {
        h->easy = curl_easy_init();
    }
    if (!h || !h->easy) {
        free(h);
        return profd_no_memory(e);
    }
    *out = h;
    return PROFD_OK;
}

void https_free(struct https *h)
{
    if (h) {
        curl_easy_cleanup(h->easy);
        curl_global_cleanup();
        free(h);
    }
}

void https_answer_done(struct https_answer *a)
{
    free(a->body);
    a->body = NULL;
}

static size_t https_take(char *data, size_t one, size_t n, void *context)
{
    struct https_taking *t = context;
    struct https_answer *a = t->answer;

    (void)one; /* 1 */
    t->too_large = n > HTTPS_ANSWER_MAX - a->size;
    if (t->too_large) {
        return 0;
    }
    if (a->size + n >= t->capacity) {
        const size_t more = 2 * (a->size + n) + 1024;
        char *body = realloc(a->body, more);

        t->no_memory = !body;
        if (!body) {
            return 0;
        }
        a->body = body;
        t->capacity = more;
    }
    memcpy(a->body + a->size, data, n);
    a->size += n;
    a->body[a->size] = 0;
    return n;
}

/* Takes a line of a head, or a trailer of the body. libcurl reports an answer that ends within its head as an answer
 * without a body. A line HTTP/... begins the head of a further answer. */
static size_t https_take_head(char *line, size_t one, size_t n, void *context)
{
    struct https_taking *t = context;

    (void)one; /* 1 */
    t->has_head = *line == '\r' || *line == '\n' || (t->has_head && (n < 5 || memcmp(line, "HTTP/", 5) != 0));
    return n;
}

/* Makes the headers of a request; the first one has the token, which may be "". Returns NULL if out of memory. */
static struct curl_slist *https_make_headers(const char *token, const struct https_request *r)
{
    const struct {
        const char *name, *value;
    } fields[] = {{"Authorization: Bearer ", token}, {"Content-Type: ", r->type}, {"Content-Encoding: ", r->coding}};
    char line[HTTPS_TOKEN_SIZE + 32];
    struct curl_slist *list = NULL;

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (!fields[i].value || !*fields[i].value) {
            continue;
        }
        (void)snprintf(line, sizeof line, "%s%s", fields[i].name, fields[i].value);
        struct curl_slist *longer = curl_slist_append(list, line);
        explicit_bzero(line, sizeof line);
        if (!longer) {
            curl_slist_free_all(list);
            return NULL;
        }
        list = longer;
    }
    return list;
}

/* Sets all options. curl_easy_reset keeps the connection. */
static CURLcode https_set(struct https *h, const struct config *c, const char *url, const struct https_request *r,
                          const struct curl_slist *headers, struct https_taking *taking)
{
    char proxy[CONFIG_HOST_MAX + 24] = "";
    CURL *easy = h->easy;

    curl_easy_reset(easy);
    CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, url);
    /* The proxy of the environment is not used, so that only the configuration decides. */
    if (c->has_proxy) {
        const bool brackets = strchr(c->proxy.host, ':') != NULL;

        (void)snprintf(proxy, sizeof proxy, "http://%s%s%s:%s", brackets ? "[" : "", c->proxy.host, brackets ? "]" : "",
                       c->proxy.port);
    }
    code = code ? code : curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_PROXYUSERPWD, c->proxy_user);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_PROXYAUTH, CURLAUTH_BASIC);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, c->relay_otlp ? "http,https" : "https");
    code = code ? code : curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (c->ca && !code) { /* the default is the system's store */
        code = curl_easy_setopt(easy, CURLOPT_CAINFO, c->ca);
        code = code ? code : curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    /* The proxy must not get the token. */
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_USERAGENT, "profd-relay/" PROFD_VERSION);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->size);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_POSTFIELDS, r->body ? (const char *)r->body : "");
    code = code ? code : curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, r->method);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, https_take);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_WRITEDATA, taking);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, https_take_head);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HEADERDATA, taking);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, h->why);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_MAXCONNECTS, 1L);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    return code ? code
                : curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, ANSWER_MS + (long)(r->size * 1000 / LIMIT_FRAME_RATE));
}

static enum profd_status https_explain(struct https *h, CURLcode code, const char *url,
                                       const struct https_taking *taking, struct profd_error *e)
{
    long proxy = 0;
    enum profd_status status = PROFD_UNAVAILABLE;

    (void)curl_easy_getinfo(h->easy, CURLINFO_HTTP_CONNECTCODE, &proxy);
    FAIL_IF(taking->too_large, e, PROFD_UNAVAILABLE, "%s: the answer has more than %u bytes", url, HTTPS_ANSWER_MAX);
    if (taking->no_memory || code == CURLE_OUT_OF_MEMORY) {
        return profd_no_memory(e);
    }
    FAIL_IF(proxy && (proxy < 200 || proxy > 299), e, PROFD_UNAVAILABLE,
            "%s: the proxy refuses the connection: status %ld", url, proxy);
    if (code == CURLE_PEER_FAILED_VERIFICATION) {
        status = PROFD_UNTRUSTED;
    } else if (code == CURLE_SSL_CACERT_BADFILE) {
        status = PROFD_CONFIG;
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        status = PROFD_TIMEOUT;
    }
    return profd_error_set(e, status, "%s: %s", url, *h->why ? h->why : curl_easy_strerror(code));
}

size_t https_measure_base(const char *url)
{
    size_t n = strlen(url);

    while (n > 0 && url[n - 1] == '/') {
        n--;
    }
    return n;
}

enum profd_status https_send(struct https *h, const struct config *c, const struct https_request *request,
                             struct https_answer *out, struct profd_error *e)
{
    char token[HTTPS_TOKEN_SIZE], *url = NULL;
    struct https_answer answer = {.status = 0};
    struct https_taking taking = {.answer = &answer};
    CURLcode code = CURLE_OUT_OF_MEMORY;
    enum profd_status status;

    *token = 0;
    TRY(c->relay_otlp && access(c->token, F_OK)
            ? PROFD_OK
            : config_read_secret("token", c->token, TOKEN_MIN, token, sizeof token, e));
    struct curl_slist *headers = https_make_headers(token, request);
    explicit_bzero(token, sizeof token);
    if (headers && asprintf(&url, "%.*s%s", (int)https_measure_base(c->relay), c->relay, request->path) >= 0) {
        h->why[0] = 0;
        code = https_set(h, c, url, request, headers, &taking);
        code = code ? code : curl_easy_perform(h->easy);
    }
    if (code) {
        status = https_explain(h, code, url ? url : c->relay, &taking, e);
    } else if (!taking.has_head) {
        status = profd_error_set(e, PROFD_UNAVAILABLE, "%s: the answer ends within its head", url);
    } else {
        char *type = NULL;
        curl_off_t retry = 0;

        (void)curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &answer.status);
        (void)curl_easy_getinfo(h->easy, CURLINFO_CONTENT_TYPE, &type);
        (void)curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &retry);
        (void)snprintf(answer.type, sizeof answer.type, "%.*s", (int)strcspn(type ? type : "", "; "), type ? type : "");
        answer.has_retry = retry > 0;
        answer.retry_ms = (uint64_t)(retry < RETRY_MOST ? retry : RETRY_MOST) * 1000;
        status = PROFD_OK;
    }
    if (headers) {
        (void)curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, NULL);
        explicit_bzero(headers->data, strlen(headers->data)); /* the token */
        curl_slist_free_all(headers);
    }
    free(url);
    if (status) {
        https_answer_done(&answer);
    } else {
        *out = answer;
    }
    return status;
}
