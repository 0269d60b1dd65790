#include <curl/curl.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "lib/client.h"
#include "profctl/profctl.h"
#include "proto/late.h"

static struct {
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_reset) *easy_reset;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_perform) *easy_perform;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
} curl;
static const char *const names[] = {"curl_global_init",   "curl_easy_init",    "curl_easy_reset",
                                    "curl_easy_setopt",   "curl_easy_perform", "curl_easy_getinfo",
                                    "curl_easy_strerror", "curl_slist_append", "curl_slist_free_all"};
static const struct late_library libcurl = {"libcurl.so.4", names, COUNT(names), &curl};

struct transfer {
    CURL *handle;
    const struct profd_http_request *request;
    profd_sink sink;
    void *sink_context;
    struct https_post *post; /* NULL: what profd_http says */
    struct profd_answer answer;
    bool begun; /* the sink was called */
    char location[256];
    enum profd_status status; /* of the sink, or of reading the body */
    struct profd_error error;
    char why[CURL_ERROR_SIZE];
};

/* Kept for the next request, with its connection. */
static CURL *kept;

/* The value of a header line if it has this name. */
static void header_take(const char *line, size_t n, const char *name, char *out, size_t size)
{
    const size_t skip = strlen(name);
    if (n <= skip || strncasecmp(line, name, skip) != 0 || line[skip] != ':') {
        return;
    }
    size_t at = skip + 1;
    while (at < n && (line[at] == ' ' || line[at] == '\t')) {
        at++;
    }
    while (n > at && (line[n - 1] == '\r' || line[n - 1] == '\n' || line[n - 1] == ' ')) {
        n--;
    }
    (void)snprintf(out, size, "%.*s", (int)(n - at), line + at);
}

static size_t on_header(char *line, size_t one, size_t n, void *context)
{
    struct transfer *t = context;
    (void)one;
    if (n > 5 && memcmp(line, "HTTP/", 5) == 0) { /* an interim answer came before */
        t->answer = (struct profd_answer){.http_status = 0};
        t->location[0] = '\0';
    }
    header_take(line, n, "content-type", t->answer.content_type, sizeof t->answer.content_type);
    header_take(line, n, "etag", t->answer.etag, sizeof t->answer.etag);
    header_take(line, n, "location", t->location, sizeof t->location);
    if (t->post) {
        header_take(line, n, "retry-after", t->post->retry_after, sizeof t->post->retry_after);
    }
    return n;
}

/* Passes bytes of the body on. */
static void transfer_give(struct transfer *t, const void *bytes, size_t n)
{
    long code = 0;
    curl.easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &code);
    t->answer.http_status = (int)code;
    t->begun = true;
    if (code >= 300 && code < 400 && code != 304) {
        t->status = profd_error_set(&t->error, PROFD_PROTOCOL,
                                    "%s is redirected to \"%s\" (HTTP status %ld), which is not followed; give the "
                                    "server's own URL with --server",
                                    t->request->url, t->location, code);
    } else {
        t->status = t->sink(t->sink_context, &t->answer, bytes, n, &t->error);
    }
}

static size_t on_body(char *bytes, size_t one, size_t n, void *context)
{
    struct transfer *t = context;
    (void)one;
    transfer_give(t, bytes, n);
    return t->status == PROFD_OK ? n : 0;
}

static size_t on_read(char *to, size_t one, size_t n, void *context)
{
    struct transfer *t = context;
    const ssize_t got = read(t->request->body, to, one * n);
    if (got < 0) {
        t->status = profd_error_set(&t->error, PROFD_IO, "the file cannot be read while it is sent");
        return CURL_READFUNC_ABORT;
    }
    return (size_t)got;
}

/* The sentence for what libcurl reports. */
static enum profd_status transfer_judge(struct transfer *t, CURLcode code, const char *ca, struct profd_error *e)
{
    const char *url = t->request->url, *why = t->why[0] ? t->why : curl.easy_strerror(code);
    const int host = (int)(strcspn(url + strlen("https://"), "/") + strlen("https://"));
    if (code == CURLE_OK || t->status != PROFD_OK) {
        if (e && t->status != PROFD_OK) {
            *e = t->error;
        }
        return t->status;
    }
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return strstr(why, "subject name") /* "... does not match", "no alternative ..." */
                   ? profd_error_set(e, PROFD_UNTRUSTED, "the certificate of %.*s is for another name: %s", host, url,
                                     why)
                   : profd_error_set(e, PROFD_UNTRUSTED,
                                     "the certificate of %.*s is not trusted: %s; --cacert FILE names the certificate "
                                     "of its CA",
                                     host, url, why);
    case CURLE_SSL_CACERT_BADFILE:
        return profd_error_set(e, PROFD_NO_INPUT, "--cacert: no certificates can be read from %s", ca ? ca : "-");
    case CURLE_OPERATION_TIMEDOUT:
        return profd_error_set(e, PROFD_TIMEOUT, "%.*s did not answer in time: %s", host, url, why);
    case CURLE_OUT_OF_MEMORY:
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a request to %.*s", host, url);
    default: {
        long number = 0;
        if (code == CURLE_COULDNT_CONNECT && !t->post && strncmp(url, "http:", 5) == 0) {
            curl.easy_getinfo(t->handle, CURLINFO_OS_ERRNO, &number);
            return profd_error_set(e, PROFD_UNAVAILABLE,
                                   "no daemon at %.*s (%s); start one with `profd --http ADDR:PORT`, or give the "
                                   "server's URL with --server",
                                   host, url, number ? strerror((int)number) : why);
        }
        return profd_error_set(e, PROFD_UNAVAILABLE, "cannot ask %.*s: %s", host, url, why);
    }
    }
}

/* A list with one more header "name: value"; NULL when out of memory. Takes over the list. */
static struct curl_slist *header_add(struct curl_slist *list, const char *name, const char *value)
{
    char line[1024];
    const int n = snprintf(line, sizeof line, "%s%s", name, value);
    struct curl_slist *longer = n > 0 && (size_t)n < sizeof line ? curl.slist_append(list, line) : NULL;
    explicit_bzero(line, sizeof line);
    if (!longer) {
        curl.slist_free_all(list);
    }
    return longer;
}

/* Makes the request of a new transfer. ca is a file of certificates, or NULL: those of the system. */
static enum profd_status transfer_run(struct transfer *t, const char *ca, struct profd_error *e)
{
    const struct profd_http_request *r = t->request;
    TRY(late_load(&libcurl, e));
    struct curl_slist *headers = header_add(NULL, "Expect:", ""); /* none: profd does not answer it */
    if (headers && r->token[0]) {
        headers = header_add(headers, "Authorization: Bearer ", r->token);
    }
    if (headers && r->if_none_match) {
        headers = header_add(headers, "If-None-Match: ", r->if_none_match);
    }
    if (headers && t->post) {
        t->post->retry_after[0] = '\0';
        headers = header_add(headers, "Content-Type: ", "application/x-protobuf");
        headers = headers ? header_add(headers, "Content-Encoding: ", "gzip") : NULL;
    }
    if (headers && !kept && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) {
        kept = curl.easy_init();
    }
    if (!headers || !kept) {
        curl.slist_free_all(headers);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a request to %s", r->url);
    }
    t->handle = kept;
    const bool tls = strncmp(r->url, "https:", 6) == 0;
    curl.easy_reset(kept); /* connections stay */
    curl.easy_setopt(kept, CURLOPT_URL, r->url);
    curl.easy_setopt(kept, CURLOPT_PROTOCOLS_STR, tls ? "https" : "http");
    curl.easy_setopt(kept, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (ca) {
        curl.easy_setopt(kept, CURLOPT_CAINFO, ca);
        curl.easy_setopt(kept, CURLOPT_CAPATH, NULL);
    }
    if (!tls) {
        curl.easy_setopt(kept, CURLOPT_PROXY, ""); /* it is a loopback address */
    }
    curl.easy_setopt(kept, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(kept, CURLOPT_USERAGENT, "profctl/" PROFD_VERSION);
    curl.easy_setopt(kept, CURLOPT_ACCEPT_ENCODING, "");
    curl.easy_setopt(kept, CURLOPT_CONNECTTIMEOUT_MS, (long)r->connect_ms);
    curl.easy_setopt(kept, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl.easy_setopt(kept, CURLOPT_LOW_SPEED_TIME, (long)((r->answer_ms + 999) / 1000));
    curl.easy_setopt(kept, CURLOPT_HTTPHEADER, headers);
    curl.easy_setopt(kept, CURLOPT_ERRORBUFFER, t->why);
    curl.easy_setopt(kept, CURLOPT_HEADERFUNCTION, on_header);
    curl.easy_setopt(kept, CURLOPT_HEADERDATA, t);
    curl.easy_setopt(kept, CURLOPT_WRITEFUNCTION, on_body);
    curl.easy_setopt(kept, CURLOPT_WRITEDATA, t);
    if (r->body >= 0) {
        curl.easy_setopt(kept, CURLOPT_UPLOAD, 1L);
        curl.easy_setopt(kept, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->body_size);
        curl.easy_setopt(kept, CURLOPT_READFUNCTION, on_read);
        curl.easy_setopt(kept, CURLOPT_READDATA, t);
    }
    if (t->post) {
        curl.easy_setopt(kept, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->post->size);
        curl.easy_setopt(kept, CURLOPT_POSTFIELDS, t->post->body);
    }
    const CURLcode code = curl.easy_perform(kept);
    if (code == CURLE_OK && !t->begun) {
        transfer_give(t, "", 0);
    }
    const enum profd_status status = transfer_judge(t, code, ca, e);
    for (struct curl_slist *h = headers; h; h = h->next) {
        explicit_bzero(h->data, strlen(h->data));
    }
    curl.slist_free_all(headers);
    return status;
}

enum profd_status https_ask(void *context, const struct profd_http_request *r, profd_sink sink, void *sink_context,
                            struct profd_error *e)
{
    return transfer_run(&(struct transfer){.request = r, .sink = sink, .sink_context = sink_context}, context, e);
}

enum profd_status https_post(void *context, const struct profd_http_request *r, profd_sink sink, void *sink_context,
                             struct profd_error *e)
{
    struct https_post *post = context;
    return transfer_run(&(struct transfer){.request = r, .sink = sink, .sink_context = sink_context, .post = post},
                        post->ca_file, e);
}

#define TIMEOUT_USUAL 120
#define TIMEOUT_MOST 86400

static struct {
    __typeof__(debuginfod_begin) *begin;
    __typeof__(debuginfod_end) *end;
    __typeof__(debuginfod_set_user_data) *set_user_data;
    __typeof__(debuginfod_get_user_data) *get_user_data;
    __typeof__(debuginfod_set_progressfn) *set_progressfn;
    __typeof__(debuginfod_find_debuginfo) *find_debuginfo;
    __typeof__(debuginfod_find_executable) *find_executable;
    __typeof__(debuginfod_find_source) *find_source;
} library;
static const char *const library_names[] = {"debuginfod_begin",           "debuginfod_end",
                                            "debuginfod_set_user_data",   "debuginfod_get_user_data",
                                            "debuginfod_set_progressfn",  "debuginfod_find_debuginfo",
                                            "debuginfod_find_executable", "debuginfod_find_source"};
static const struct late_library libdebuginfod = {"libdebuginfod.so.1", library_names, COUNT(library_names), &library};

struct download {
    int64_t end; /* of conn_clock */
    bool late, large;
};

/* libdebuginfod calls this at least once a second, before the server answers too. */
static int on_progress(debuginfod_client *client, long done, long size)
{
    struct download *t = library.get_user_data(client);
    t->late = t->late || conn_clock() >= t->end;
    t->large = t->large || done > (long)DEBUGINFOD_SIZE_MAX || size > (long)DEBUGINFOD_SIZE_MAX;
    return t->late || t->large;
}

static const char *const KINDS[] = {"debug file", "executable", "source file"};

enum profd_status debuginfod_fetch(const struct debuginfod_file *file, char **path, struct profd_error *e)
{
    struct download t = {.end = conn_clock() + (int64_t)file->seconds * 1000};
    FAIL_IF(file->url && setenv("DEBUGINFOD_URLS", file->url, 1) != 0, e, PROFD_NO_MEMORY, "no memory for %s",
            file->url);
    const char *kind = KINDS[file->kind], *build_id = file->build_id, *servers = getenv("DEBUGINFOD_URLS");
    FAIL_IF(!servers || servers[strspn(servers, " ")] == '\0', e, PROFD_USAGE,
            "there is no debuginfod server; set DEBUGINFOD_URLS, or use --url URL");
    TRY(late_load(&libdebuginfod, e));
    debuginfod_client *client = library.begin();
    FAIL_IF(!client, e, PROFD_NO_MEMORY, "no memory for a debuginfod client");
    library.set_user_data(client, &t);
    library.set_progressfn(client, on_progress);
    const unsigned char *id = (const unsigned char *)build_id;
    int fd = file->kind == DEBUGINFOD_DEBUG        ? library.find_debuginfo(client, id, 0, path)
             : file->kind == DEBUGINFOD_EXECUTABLE ? library.find_executable(client, id, 0, path)
                                                   : library.find_source(client, id, 0, file->source, path);
    library.end(client);
    if (fd >= 0) {
        close(fd);
        return PROFD_OK;
    }
    FAIL_IF(t.large || fd == -EFBIG, e, PROFD_TOO_LARGE, "%s: the %s of build %.12s has more than %lu MiB", servers,
            kind, build_id, DEBUGINFOD_SIZE_MAX >> 20);
    FAIL_IF(t.late || fd == -ETIME || fd == -ETIMEDOUT, e, PROFD_TIMEOUT,
            "%s: the %s of build %.12s did not arrive within %u s; --timeout allows more", servers, kind, build_id,
            file->seconds);
    return fd == -ENOENT ? profd_error_set(e, PROFD_NOT_FOUND, "%s: has no %s of build %.12s", servers, kind, build_id)
                         : profd_error_set(e, PROFD_UNAVAILABLE, "%s: cannot fetch the %s of build %.12s: %s", servers,
                                           kind, build_id, strerror(-fd));
}

enum profd_status debuginfod_read_timeout(const struct profctl_call *call, unsigned *seconds, struct profd_error *e)
{
    unsigned long value = TIMEOUT_USUAL;
    TRY(profctl_number(call, "timeout", "a number of seconds", 1, TIMEOUT_MOST, &value, e));
    *seconds = (unsigned)value;
    return PROFD_OK;
}
