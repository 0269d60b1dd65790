#include "clickhouse/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PARAMETERS_MAX 380
#define REPLY_BUFFER (32u << 20)    /* bytes of a reply in a server's memory */
#define STATEMENT_BYTES (64u << 20) /* of the engine: they list hosts and series */
#define REPLIES_BYTES (768u << 20)  /* of all replies that this process is reading, or keeps */
#define LATE_ERROR_BYTES 8192
#define ACKNOWLEDGEMENT_BYTES (64u << 10)     /* of an insert: it is empty, or an error */
#define BYTES_TYPE "application/octet-stream" /* of a reply that is no text */
#define QUORUM_PENDING 286                    /* UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE */

struct clickhouse {
    CURL *curl;
    struct curl_slist *headers;
    struct clickhouse_limits limits;
    bool tls;
    struct clickhouse_server servers[CLICKHOUSE_SERVERS_MOST];
    unsigned server_count, server;   /* server: that is asked first, index */
    char place[300];                 /* of it: "https://host:port" */
    char parameters[PARAMETERS_MAX]; /* of the URL of a statement in the body */
    char why[CURL_ERROR_SIZE];
    /* of the statement that runs: */
    char *reply;
    size_t size, capacity;
    bool too_large, crowded, no_memory;
    bool head_ended, framed; /* its head is complete; says where it ends */
    long code;               /* of the error that the server reported; 0: none */
};

/* Errors of the server that do not mean that the statement is wrong, by their numbers. */
static const struct {
    long code;
    enum profd_status status;
} codes[] = {
    {159, PROFD_TIMEOUT},      /* TIMEOUT_EXCEEDED */
    {160, PROFD_TIMEOUT},      /* TOO_SLOW */
    {164, PROFD_FORBIDDEN},    /* READONLY */
    {192, PROFD_UNAUTHORIZED}, /* UNKNOWN_USER */
    {193, PROFD_UNAUTHORIZED}, /* WRONG_PASSWORD */
    {194, PROFD_UNAUTHORIZED}, /* REQUIRED_PASSWORD */
    {195, PROFD_FORBIDDEN},    /* IP_ADDRESS_NOT_ALLOWED */
    {202, PROFD_BUSY},         /* TOO_MANY_SIMULTANEOUS_QUERIES */
    {209, PROFD_BUSY},         /* SOCKET_TIMEOUT, of another server */
    {210, PROFD_BUSY},         /* NETWORK_ERROR, as before */
    {225, PROFD_BUSY},         /* NO_ZOOKEEPER */
    {241, PROFD_BUSY},         /* MEMORY_LIMIT_EXCEEDED */
    {242, PROFD_BUSY},         /* TABLE_IS_READ_ONLY: a replica without ZooKeeper */
    {243, PROFD_FULL},         /* NOT_ENOUGH_SPACE */
    {252, PROFD_BUSY},         /* TOO_MANY_PARTS */
    {279, PROFD_BUSY},         /* ALL_CONNECTION_TRIES_FAILED */
    {285, PROFD_BUSY},         /* TOO_LESS_LIVE_REPLICAS, for a quorum */
    {286, PROFD_BUSY},         /* UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE */
    {289, PROFD_BUSY},         /* REPLICA_IS_NOT_IN_QUORUM */
    {291, PROFD_FORBIDDEN},    /* DATABASE_ACCESS_DENIED */
    {319, PROFD_BUSY},         /* UNKNOWN_STATUS_OF_INSERT */
    {497, PROFD_FORBIDDEN},    /* ACCESS_DENIED, of newer servers */
    {516, PROFD_UNAUTHORIZED}, /* AUTHENTICATION_FAILED, of newer servers */
    {999, PROFD_BUSY},         /* KEEPER_EXCEPTION */
};

static atomic_size_t replies; /* bytes */

void clickhouse_count_reply(size_t bytes, bool kept)
{
    (void)(kept ? atomic_fetch_add(&replies, bytes) : atomic_fetch_sub(&replies, bytes));
}

/* Takes memory for n more bytes and a NUL. */
static bool reply_reserve(struct clickhouse *c, size_t n)
{
    if (atomic_load(&replies) + n > REPLIES_BYTES) {
        c->crowded = true;
        return false;
    }
    if (n > c->limits.reply_bytes - c->size) {
        c->too_large = true;
        return false;
    }
    if (c->size + n + 1 > c->capacity) {
        const size_t capacity = 2 * (c->size + n + 1);
        char *longer = realloc(c->reply, capacity);
        if (!longer) {
            c->no_memory = true;
            return false;
        }
        c->reply = longer;
        c->capacity = capacity;
    }
    return true;
}

/* What there was of a reply is not wanted any more. */
static void reply_forget(struct clickhouse *c)
{
    clickhouse_count_reply(c->size, false);
    c->size = 0;
}

/* What a reply took that was too long is not kept. */
static void reply_drop(struct clickhouse *c)
{
    reply_forget(c);
    free(c->reply);
    c->reply = NULL;
    c->capacity = 0;
}

static size_t on_body(char *bytes, size_t one, size_t n, void *context)
{
    struct clickhouse *c = context;
    (void)one;
    if (!reply_reserve(c, n)) {
        return 0;
    }
    memcpy(c->reply + c->size, bytes, n);
    c->size += n;
    clickhouse_count_reply(n, true);
    return n;
}

/* Takes a line of the reply's head. Without this, the end of a connection is taken for the end of any reply. */
static size_t on_head(char *line, size_t one, size_t n, void *context)
{
    struct clickhouse *c = context;
    (void)one;
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        c->head_ended = c->framed = false;
    }
    c->head_ended |= n <= 2; /* an empty line */
    c->framed |= (n > 15 && strncasecmp(line, "Content-Length:", 15) == 0) ||
                 (n > 18 && strncasecmp(line, "Transfer-Encoding:", 18) == 0);
    return n;
}

static void headers_free(struct curl_slist *list)
{
    for (struct curl_slist *h = list; h; h = h->next) {
        explicit_bzero(h->data, strlen(h->data));
    }
    curl_slist_free_all(list);
}

/* Adds "name: value"; false when out of memory. */
static bool header_put(struct clickhouse *c, const char *name, const char *value)
{
    char line[64 + CLICKHOUSE_PASSWORD_MAX];
    (void)snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *list = curl_slist_append(c->headers, line);
    explicit_bzero(line, sizeof line);
    if (list) {
        c->headers = list;
    }
    return list != NULL;
}

static bool headers_make(struct clickhouse *c, const struct clickhouse_address *a)
{
    /* No "Expect": it costs a round trip. */
    return header_put(c, "Expect", "") && header_put(c, "Content-Type", "text/plain; charset=UTF-8") &&
           header_put(c, "X-ClickHouse-User", a->user) &&
           (!a->password[0] || header_put(c, "X-ClickHouse-Key", a->password));
}

static void options_set(struct clickhouse *c, const struct clickhouse_address *a, const char *ca)
{
    /* The reply is buffered by the server until the query has ended, so an error is never found behind data that came
     * with status 200: in memory, since without a size even the shortest reply goes through a file. */
    (void)snprintf(c->parameters, sizeof c->parameters, "wait_end_of_query=1&buffer_size=%u&max_execution_time=%u",
                   REPLY_BUFFER, (c->limits.answer_ms + 999) / 1000);
    curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS_STR, a->tls ? "https" : "http");
    curl_easy_setopt(c->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(c->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(c->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)c->limits.connect_ms);
    curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, c->why);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(c->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (ca) {
        curl_easy_setopt(c->curl, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(c->curl, CURLOPT_CAINFO, ca);
    }
}

static void place_set(struct clickhouse *c)
{
    const struct clickhouse_server *s = &c->servers[c->server];
    (void)snprintf(c->place, sizeof c->place, "%s://%s:%u", c->tls ? "https" : "http", s->host, s->port);
}

enum profd_status clickhouse_open(const struct clickhouse_address *address, const char *ca,
                                  const struct clickhouse_limits *limits, struct clickhouse **out,
                                  struct profd_error *e)
{
    struct clickhouse *c = calloc(1, sizeof *c);
    if (c) {
        c->limits = *limits;
        c->curl = curl_easy_init();
        c->tls = address->tls;
        c->server_count = address->server_count;
        memcpy(c->servers, address->servers, sizeof c->servers);
        place_set(c);
    }
    if (!c || !c->curl || !headers_make(c, address)) {
        clickhouse_close(c);
        return profd_no_memory(e);
    }
    options_set(c, address, ca);
    *out = c;
    return PROFD_OK;
}

void clickhouse_close(struct clickhouse *c)
{
    if (c) {
        curl_easy_cleanup(c->curl);
        headers_free(c->headers);
        reply_drop(c);
        free(c);
    }
}

/* May this process open no connection to the server? So it is in profd.service, until a drop-in opens the address. */
static bool network_is_closed(const struct clickhouse *c)
{
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    long number = 0;
    if (probe < 0) {
        return errno == EAFNOSUPPORT || errno == EPERM || errno == EACCES;
    }
    (void)close(probe);
    (void)curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &number);
    return number == ENETUNREACH || number == EPERM || number == EACCES;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Milliseconds that are left for all statements of this work. */
static uint64_t time_left(const struct clickhouse *c)
{
    const uint64_t now = now_ms(), until = c->limits.until ? *c->limits.until : 0;
    return until == 0 ? UINT64_MAX : until > now ? until - now : 0;
}

static enum profd_status too_slow(const struct clickhouse *c, struct profd_error *e)
{
    return profd_error_set(e, PROFD_TIMEOUT,
                           "ClickHouse at %s answers too slowly: the time for all statements of this work is over",
                           c->place);
}

/* The sentence for what libcurl reports. */
static enum profd_status failure_describe(const struct clickhouse *c, CURLcode code, struct profd_error *e)
{
    const char *why = c->why[0] ? c->why : curl_easy_strerror(code);
    if (c->too_large) {
        return profd_error_set(e, PROFD_TOO_LARGE, "the reply of ClickHouse at %s has more than %zu bytes", c->place,
                               c->limits.reply_bytes);
    }
    if (c->crowded) {
        return profd_error_set(e, PROFD_BUSY,
                               "the replies of ClickHouse that are being read have more than %u bytes together; try "
                               "again",
                               REPLIES_BYTES);
    }
    if (c->no_memory || code == CURLE_OUT_OF_MEMORY) {
        return profd_no_memory(e);
    }
    if (time_left(c) == 0) {
        return too_slow(c, e);
    }
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return profd_error_set(e, PROFD_TIMEOUT, "ClickHouse at %s does not answer: %s", c->place, why);
    case CURLE_PEER_FAILED_VERIFICATION:
        return profd_error_set(e, PROFD_UNTRUSTED, "the certificate of ClickHouse at %s is not accepted: %s", c->place,
                               why);
    case CURLE_SSL_CACERT_BADFILE:
        return profd_error_set(e, PROFD_NO_INPUT, "the certificates of the CAs for ClickHouse cannot be read: %s", why);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return profd_error_set(e, PROFD_PROTOCOL, "what answers at %s does not speak HTTP: %s", c->place, why);
    default:
        return profd_error_set(e, PROFD_UNAVAILABLE, "cannot ask ClickHouse at %s: %s%s", c->place, why,
                               network_is_closed(c) ? "; the network is closed to this process: profd.service wants "
                                                      "the drop-in of \"Outgrowing one machine\" in profd(8)"
                                                    : "");
    }
}

/* ClickHouse may report an error behind data that it has sent with status 200. Returns where that begins in the reply,
 * or NULL: it is text up to the end. A text of the last column that ends so is taken for it, and the answer refused. */
static const char *find_late_error(const struct clickhouse *c)
{
    const char *end = c->reply + c->size, *at = end;
    if (c->size == 0 || *--at != '\n') {
        return NULL;
    }
    while (at > c->reply && end - at < LATE_ERROR_BYTES && ((unsigned char)at[-1] >= ' ' || at[-1] == '\n')) {
        at--;
    }
    const char *code = memmem(at, (size_t)(end - at), "Code: ", 6);
    return code && memmem(code, (size_t)(end - code), "Exception: ", 11) ? code : NULL;
}

/* The sentence of an error that the server reports: "Code: 60, e.displayText() = DB::Exception: Text, e.what() = …",
 * or of newer ones "Code: 60. DB::Exception: Text (UNKNOWN_TABLE) (version …)". */
static enum profd_status refusal_describe(struct clickhouse *c, const char *reply, long http, struct profd_error *e)
{
    const char *at = strstr(reply, "Code: "), *text = at ? strstr(at, "Exception: ") : NULL;
    enum profd_status status = PROFD_REFUSED;
    if (!text) {
        return profd_error_set(e, PROFD_PROTOCOL,
                               "what answers at %s is not ClickHouse, or is behind a proxy that refuses: HTTP status "
                               "%ld",
                               c->place, http);
    }
    const long code = c->code = strtol(at + strlen("Code: "), NULL, 10);
    text += strlen("Exception: ");
    const char *end = strstr(text, ", e.what()");
    const size_t n = end ? (size_t)(end - text) : strcspn(text, "\n");
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        status = codes[i].code == code ? codes[i].status : status;
    }
    return profd_error_set(e, status, "ClickHouse at %s: %.*s (code %ld)", c->place, n < 300 ? (int)n : 300, text,
                           code);
}

/* Gives the next statement its time. TIMEOUT: none is left. */
static enum profd_status time_give(struct clickhouse *c, struct profd_error *e)
{
    const uint64_t left = time_left(c);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)(left < c->limits.answer_ms ? left : c->limits.answer_ms));
    return left > 0 ? PROFD_OK : too_slow(c, e);
}

/* Sends a body to the server that is asked first; more: further parameters. The reply is in c->reply, NUL-terminated.
 */
static enum profd_status perform_once(struct clickhouse *c, const char *more, const void *body, size_t size,
                                      struct profd_error *e)
{
    long http = 0;
    char *url;
    reply_forget(c);
    c->code = 0;
    c->too_large = c->crowded = c->no_memory = c->head_ended = c->framed = false;
    c->why[0] = '\0';
    const enum profd_status timed = time_give(c, e);
    if (timed != PROFD_OK) {
        return timed;
    }
    if (!reply_reserve(c, 0) ||
        asprintf(&url, "%s/?%s%s", c->place, c->parameters, more) < 0) { /* it may have no body */
        return profd_no_memory(e);
    }
    const CURLcode set = curl_easy_setopt(c->curl, CURLOPT_URL, url);
    free(url);
    if (set != CURLE_OK) {
        return profd_no_memory(e);
    }
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
    const CURLcode code = curl_easy_perform(c->curl);
    if (code != CURLE_OK) {
        reply_drop(c);
        return failure_describe(c, code, e);
    }
    c->reply[c->size] = '\0';
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &http);
    if (!c->head_ended || !c->framed) {
        return profd_error_set(e, PROFD_PROTOCOL,
                               "what answers at %s does not say where its reply ends, so that it may be cut off",
                               c->place);
    }
    const char *late = http == 200 ? find_late_error(c) : NULL;
    return http == 200 && !late ? PROFD_OK : refusal_describe(c, late ? late : c->reply, http, e);
}

/* The same, but where a server cannot be connected to, of the next. */
static enum profd_status perform(struct clickhouse *c, const char *more, const void *body, size_t size,
                                 struct profd_error *e)
{
    enum profd_status status = perform_once(c, more, body, size, e);
    for (unsigned i = 1; i < c->server_count && status == PROFD_UNAVAILABLE; i++) {
        c->server = (c->server + 1) % c->server_count;
        place_set(c);
        status = perform_once(c, more, body, size, e);
    }
    return status;
}

static enum profd_status ask(struct clickhouse *c, const char *statement, char **reply, size_t *size,
                             struct profd_error *e)
{
    const enum profd_status status = perform(c, "", statement, strlen(statement), e);
    if (status == PROFD_OK) {
        *reply = c->reply;
        *size = c->size;
        reply_forget(c);
        c->reply = NULL;
        c->capacity = 0;
    }
    return status;
}

enum profd_status clickhouse_ask(struct clickhouse *c, const char *statement, char **reply, struct profd_error *e)
{
    size_t size;
    return ask(c, statement, reply, &size, e);
}

enum profd_status clickhouse_use(struct clickhouse *c, const struct clickhouse_address *address, struct profd_error *e)
{
    const size_t n = strlen(c->parameters), size = sizeof c->parameters - n;
    /* A replica that lacks what others acknowledged must not answer, and what one replica alone has is not
     * acknowledged.
     */
    const char *quorum = address->replicated ? "&insert_quorum=2&insert_quorum_timeout=15000"
                                               "&select_sequential_consistency=1"
                                               "&replication_alter_partitions_sync=2"
                                             : "";
    const int more = snprintf(c->parameters + n, size, "&max_query_size=%u&database=%s%s", STATEMENT_BYTES,
                              address->database, quorum);
    return more > 0 && (size_t)more < size ? PROFD_OK
                                           : profd_error_set(e, PROFD_INTERNAL, "too many parameters for ClickHouse");
}

enum profd_status clickhouse_take(struct clickhouse *c, const char *statement, uint8_t **bytes, size_t *size,
                                  struct profd_error *e)
{
    char *reply;
    const char *type = NULL;
    const enum profd_status status = ask(c, statement, &reply, size, e);
    if (status != PROFD_OK) {
        return status;
    }
    curl_easy_getinfo(c->curl, CURLINFO_CONTENT_TYPE, &type);
    if (!type || strncasecmp(type, BYTES_TYPE, strlen(BYTES_TYPE)) != 0) { /* an acknowledgement looks like no rows */
        free(reply);
        return profd_error_set(e, PROFD_PROTOCOL, "what answers a query at %s sends %.60s instead of rows", c->place,
                               type ? type : "no type");
    }
    *bytes = (uint8_t *)reply;
    return PROFD_OK;
}

/* ClickHouse lets one insert at a time wait for a quorum of a table's replicas, and refuses another at once. */
static void wait_quorum(void)
{
    uint8_t random = 0;
    (void)!getrandom(&random, sizeof random, 0);
    (void)poll(NULL, 0, 2 + random % 16);
}

enum profd_status clickhouse_insert(struct clickhouse *c, const char *statement, const void *data, size_t size,
                                    struct profd_error *e)
{
    char *query = curl_easy_escape(c->curl, statement, 0), *more = NULL;
    enum profd_status status = PROFD_OK;
    if (!query || asprintf(&more, "&insert_distributed_sync=1&query=%s", query) < 0) {
        more = NULL;
        status = profd_no_memory(e);
    }
    const size_t limit = c->limits.reply_bytes;
    c->limits.reply_bytes = ACKNOWLEDGEMENT_BYTES;
    for (uint64_t began = now_ms(); status == PROFD_OK;) {
        status = perform(c, more, data, size, e);
        if (c->code != QUORUM_PENDING || now_ms() - began > c->limits.answer_ms) {
            break;
        }
        status = PROFD_OK;
        wait_quorum();
    }
    c->limits.reply_bytes = limit;
    if (status == PROFD_OK && c->size > 0) {
        status = profd_error_set(e, PROFD_PROTOCOL,
                                 "what answers an insert at %s is no acknowledgement of ClickHouse, which is empty: it "
                                 "has %zu bytes",
                                 c->place, c->size);
    }
    free(more);
    curl_free(query);
    return status;
}
