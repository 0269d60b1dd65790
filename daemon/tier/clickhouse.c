#include "tier/clickhouse.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define URL_MAX (1u << 20)
#define REPLY_BUFFER (8u << 20)      /* bytes of a reply that a server keeps in memory until the statement has ended */
#define LATE_ERROR_BYTES (16u << 10) /* of an error behind data, at most */
#define SENTENCE_BYTES 300           /* of the server's sentence, at most */
#define KILL_MS 2000L
#define KILL_BYTES (64u << 10)
#define LOOK_AGAIN_MS 1000u
#define NOT_SENT (-1)

struct clickhouse {
    CURL *curl;
    struct curl_slist *headers;
    struct clickhouse_limits limits;
    struct clickhouse_address address; /* without the password */
    unsigned server;                   /* the one that is asked next: an index */
    uint64_t looked;                   /* ms of now_ms, when unknown was asked for; 0: not of this server */
    uint64_t unknown;                  /* bit i: the server does not know settings[i] */
    char place[300], why[CURL_ERROR_SIZE];
    /* of the statement that runs: */
    struct buffer reply;
    bool answered;           /* the reply has begun */
    bool head_ended, framed; /* the reply's head is complete; it says where the reply ends */
    bool stopped;
    long code; /* of the error that the server reported; 0: none. NOT_SENT: the server could not be connected to */
};

/* Settings that change what is stored or answered, where profiles of users or other releases may have other values.
 * replicated: only for tables with replicas. */
static const struct {
    const char *name, *value;
    bool replicated;
} settings[] = {
    {"cancel_http_readonly_queries_on_client_close", "1", false}, /* first: see run */
    {"max_query_size", "67108864", false},                        /* statements list keys of sums */
    /* Errors, never a part of the answer. */
    {"timeout_overflow_mode", "throw", false},
    {"read_overflow_mode", "throw", false},
    {"result_overflow_mode", "throw", false},
    {"group_by_overflow_mode", "throw", false},
    {"sort_overflow_mode", "throw", false},
    {"set_overflow_mode", "throw", false},
    {"distinct_overflow_mode", "throw", false},
    {"skip_unavailable_shards", "0", false},
    {"use_query_cache", "0", false},
    /* An acknowledged insert is stored, as often as it was sent. */
    {"async_insert", "0", false},
    {"insert_deduplicate", "0", false},
    {"max_partition_size_to_drop", "0", false}, /* any; an older server has this in its configuration only */
    {"insert_distributed_sync", "1", false},
    {"distributed_foreground_insert", "1", false}, /* its newer name */
    /* A replica that lacks what others acknowledged must not answer, and what one replica alone has is not
     * acknowledged. */
    {"insert_quorum", "2", true},
    {"insert_quorum_timeout", "15000", true},
    {"insert_quorum_parallel", "0", true},
    {"select_sequential_consistency", "1", true},
};
#define SETTING_COUNT (sizeof settings / sizeof settings[0])
_Static_assert(SETTING_COUNT <= 64, "unknown has a bit for each setting");

/* Errors of the server that do not mean that the statement is wrong. */
static enum profd_status status_of_code(long code)
{
    switch (code) {
    case 159: /* TIMEOUT_EXCEEDED */
    case 160: /* TOO_SLOW */
        return PROFD_TIMEOUT;
    case 192: /* UNKNOWN_USER */
    case 193: /* WRONG_PASSWORD */
    case 194: /* REQUIRED_PASSWORD */
    case 516: /* AUTHENTICATION_FAILED, of newer servers */
        return PROFD_UNAUTHORIZED;
    case 164: /* READONLY */
    case 195: /* IP_ADDRESS_NOT_ALLOWED */
    case 291: /* DATABASE_ACCESS_DENIED */
    case 497: /* ACCESS_DENIED */
        return PROFD_FORBIDDEN;
    case 202: /* TOO_MANY_SIMULTANEOUS_QUERIES */
    case 209: /* SOCKET_TIMEOUT, of another server */
    case 210: /* NETWORK_ERROR, as before */
    case 225: /* NO_ZOOKEEPER */
    case 241: /* MEMORY_LIMIT_EXCEEDED */
    case 242: /* TABLE_IS_READ_ONLY: a replica without Keeper */
    case 252: /* TOO_MANY_PARTS */
    case 279: /* ALL_CONNECTION_TRIES_FAILED */
    case 285: /* TOO_FEW_LIVE_REPLICAS, for a quorum */
    case 286: /* UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE */
    case 289: /* REPLICA_IS_NOT_IN_QUORUM */
    case 319: /* UNKNOWN_STATUS_OF_INSERT */
    case 394: /* QUERY_WAS_CANCELLED */
    case 999: /* KEEPER_EXCEPTION */
        return PROFD_BUSY;
    case 243: /* NOT_ENOUGH_SPACE */
        return PROFD_FULL;
    default:
        return PROFD_REFUSED;
    }
}

static size_t on_body(char *bytes, size_t one, size_t n, void *context)
{
    struct clickhouse *c = context;
    (void)one;
    buffer_add(&c->reply, bytes, n);
    return c->reply.failed ? 0 : n;
}

/* Takes a line of the reply's head. Without this, the end of a connection is taken for the end of any reply. */
static size_t on_head(char *line, size_t one, size_t n, void *context)
{
    struct clickhouse *c = context;
    (void)one;
    c->answered = true;
    if (n >= 5 && !memcmp(line, "HTTP/", 5)) {
        c->head_ended = c->framed = false;
    }
    c->head_ended |= n <= 2; /* an empty line */
    c->framed |= (n > 15 && !strncasecmp(line, "Content-Length:", 15)) ||
                 (n > 18 && !strncasecmp(line, "Transfer-Encoding:", 18));
    return n;
}

static int on_progress(void *context, curl_off_t t, curl_off_t d, curl_off_t u, curl_off_t v)
{
    struct clickhouse *c = context;
    (void)t, (void)d, (void)u, (void)v;
    c->stopped = c->limits.stopped && c->limits.stopped(c->limits.context);
    return c->stopped;
}

/* Adds "name: value"; false when out of memory. */
static bool header_put(struct clickhouse *c, const char *name, const char *value)
{
    char line[64 + CLICKHOUSE_PASSWORD_MAX];
    (void)snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *list = curl_slist_append(c->headers, line);
    explicit_bzero(line, sizeof line);
    c->headers = list ? list : c->headers;
    return list != NULL;
}

static void server_set(struct clickhouse *c, unsigned server)
{
    const struct clickhouse_server *s = &c->address.servers[server];
    c->server = server;
    c->looked = 0;
    (void)snprintf(c->place, sizeof c->place, "%s://%s:%u", c->address.tls ? "https" : "http", s->host, s->port);
}

enum profd_status clickhouse_open(const struct clickhouse_address *address, const char *ca,
                                  const struct clickhouse_limits *limits, struct clickhouse **out,
                                  struct profd_error *e)
{
    struct clickhouse *c = calloc(1, sizeof *c);
    CURL *curl = c ? c->curl = curl_easy_init() : NULL;
    /* No "Expect": it costs a round trip. */
    if (!curl || !header_put(c, "Expect", "") || !header_put(c, "Content-Type", "text/plain; charset=UTF-8") ||
        !header_put(c, "X-ClickHouse-User", address->user) ||
        (address->password[0] && !header_put(c, "X-ClickHouse-Key", address->password))) {
        clickhouse_close(c);
        return profd_no_memory(e);
    }
    c->limits = *limits;
    c->address = *address;
    explicit_bzero(c->address.password, sizeof c->address.password);
    server_set(c, 0);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, address->tls ? "https" : "http");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)limits->connect_ms);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)limits->answer_ms);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, c->why);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, c);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, c);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (ca) {
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
    }
    *out = c;
    return PROFD_OK;
}

void clickhouse_close(struct clickhouse *c)
{
    if (c) {
        curl_easy_cleanup(c->curl);
        for (struct curl_slist *h = c->headers; h; h = h->next) {
            explicit_bzero(h->data, strlen(h->data));
        }
        curl_slist_free_all(c->headers);
        buffer_done(&c->reply);
        free(c);
    }
}

const char *clickhouse_place(const struct clickhouse *c)
{
    return c->place;
}

/* True if this process may open no connection to the server, as in profd.service without a drop-in. */
static bool network_is_closed(const struct clickhouse *c)
{
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    long number = errno;
    if (probe >= 0) {
        (void)close(probe);
        (void)curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &number);
    }
    return number == EPERM || number == EACCES || number == (probe < 0 ? EAFNOSUPPORT : ENETUNREACH);
}

/* The sentence for what libcurl reports. */
static enum profd_status failure_describe(struct clickhouse *c, CURLcode code, struct profd_error *e)
{
    const char *why = c->why[0] ? c->why : curl_easy_strerror(code);
    curl_off_t sent = 0;
    (void)curl_easy_getinfo(c->curl, CURLINFO_PRETRANSFER_TIME_T, &sent);
    switch (code) {
    case CURLE_OUT_OF_MEMORY:
        return profd_no_memory(e);
    case CURLE_ABORTED_BY_CALLBACK:
        return profd_error_set(e, PROFD_STOPPING, "a statement to ClickHouse at %s was cancelled", c->place);
    case CURLE_PEER_FAILED_VERIFICATION:
        return profd_error_set(e, PROFD_UNTRUSTED, "the certificate of ClickHouse at %s is not accepted: %s", c->place,
                               why);
    case CURLE_SSL_CACERT_BADFILE:
        return profd_error_set(e, PROFD_NO_INPUT, "the certificates of the CAs for ClickHouse cannot be read: %s", why);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return profd_error_set(e, PROFD_PROTOCOL, "what answers at %s does not speak HTTP: %s", c->place, why);
    case CURLE_OPERATION_TIMEDOUT:
        FAIL_IF(sent, e, PROFD_TIMEOUT, "ClickHouse at %s does not answer in %u s: %s", c->place,
                (c->limits.answer_ms + 999) / 1000, why);
        __attribute__((fallthrough));
    default:
        c->code = sent ? c->code : NOT_SENT;
        return profd_error_set(e, PROFD_UNAVAILABLE, "cannot ask ClickHouse at %s: %s%s", c->place, why,
                               network_is_closed(c) ? "; the network is closed to this process: profd.service needs "
                                                      "the drop-in of \"Outgrowing one machine\" in profd(8)"
                                                    : "");
    }
}

/* ClickHouse may report an error behind data that it has sent with status 200. Returns where that begins in the reply,
 * or NULL: it is text up to the end, which is a line's end. Rows never end in such a text: their last column is a
 * number, or the digits of a build-id. */
static const char *find_late_error(const struct buffer *b)
{
    const char *end = b->data + b->size, *at = end;
    if (!b->size || end[-1] != '\n') {
        return NULL;
    }
    while (at > b->data && end - at < (ptrdiff_t)LATE_ERROR_BYTES &&
           ((unsigned char)at[-1] >= ' ' || strchr("\t\r\n", at[-1] ? at[-1] : ' '))) {
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
    FAIL_IF(!text && http >= 502 && http <= 504, e, PROFD_UNAVAILABLE,
            "a proxy at %s does not reach ClickHouse: HTTP status %ld", c->place, http);
    FAIL_IF(!text, e, PROFD_PROTOCOL,
            "what answers at %s is not ClickHouse, or is a proxy that refuses: HTTP status %ld", c->place, http);
    c->code = strtol(at + strlen("Code: "), NULL, 10);
    text += strlen("Exception: ");
    size_t n = strcspn(text, "\r\n");
    for (unsigned i = 0; i < 2; i++) {
        const char *end = memmem(text, n, i ? " (version " : ", e.what()", 10);
        n = end ? (size_t)(end - text) : n;
    }
    const bool lacks = c->code == 60 || c->code == 81; /* UNKNOWN_TABLE, UNKNOWN_DATABASE */
    return profd_error_set(e, status_of_code(c->code), "ClickHouse at %s: %.*s (code %ld)%s", c->place,
                           n < SENTENCE_BYTES ? (int)n : SENTENCE_BYTES, text, c->code,
                           lacks ? "; \"profctl tier init\" makes the tables" : "");
}

/* Sends a body to one server. url: of a buffer that this frees. The reply is then in c->reply, NUL-terminated. */
static enum profd_status perform(struct clickhouse *c, struct buffer *url, const void *body, size_t size,
                                 struct profd_error *e)
{
    long http = 0, made = 1;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    buffer_add_char(url, 0);
    buffer_done(&c->reply);
    buffer_init(&c->reply, c->limits.reply_bytes + 1);
    c->code = 0;
    c->answered = c->head_ended = c->framed = c->stopped = false;
    c->why[0] = 0;
    if (!url->failed) {
        code = curl_easy_setopt(c->curl, CURLOPT_URL, url->data);
    }
    buffer_done(url);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
    code = code ? code : curl_easy_perform(c->curl);
    /* The server has closed a kept connection when the statement came. libcurl itself repeats it, but only five times
     * in the life of a handle. */
    if ((code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING) && !c->answered &&
        !curl_easy_getinfo(c->curl, CURLINFO_NUM_CONNECTS, &made) && !made) {
        curl_easy_setopt(c->curl, CURLOPT_FRESH_CONNECT, 1L);
        c->why[0] = 0;
        code = curl_easy_perform(c->curl);
        curl_easy_setopt(c->curl, CURLOPT_FRESH_CONNECT, 0L);
    }
    FAIL_IF(c->reply.failed, e, PROFD_TOO_LARGE,
            "the reply of ClickHouse at %s needs more than the %zu bytes that it may have", c->place,
            c->limits.reply_bytes);
    buffer_add_char(&c->reply, 0);
    if (c->reply.failed) {
        return profd_no_memory(e);
    }
    c->reply.size--;
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &http);
    const char *late = http == 200 ? find_late_error(&c->reply) : NULL;
    if (code && !late) { /* newer servers cut the connection behind an error */
        return failure_describe(c, code, e);
    }
    FAIL_IF(!late && (!c->head_ended || !c->framed), e, PROFD_PROTOCOL,
            "what answers at %s does not say where its reply ends, so that it may be cut off", c->place);
    return http == 200 && !late ? PROFD_OK : refusal_describe(c, late ? late : c->reply.data, http, e);
}

static void url_begin(const struct clickhouse *c, struct buffer *url)
{
    buffer_init(url, URL_MAX);
    /* The reply is buffered by the server until the statement has ended, so that hardly ever an error is found behind
     * data: in memory, since without a size even the shortest reply goes through a file. */
    buffer_add_format(url, "%s/?wait_end_of_query=1&buffer_size=%u", c->place, REPLY_BUFFER);
    if (c->limits.memory_bytes) {
        buffer_add_format(url, "&max_memory_usage=%zu", c->limits.memory_bytes);
    }
    if (c->address.database[0]) {
        buffer_add_format(url, "&database=%s", c->address.database);
    }
    buffer_add_format(url, "&max_execution_time=%u", (c->limits.answer_ms + 999) / 1000);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* True if the connection of the latest statement is still open. */
static bool is_connected(const struct clickhouse *c)
{
    curl_socket_t s = CURL_SOCKET_BAD;
    char byte;
    return !curl_easy_getinfo(c->curl, CURLINFO_ACTIVESOCKET, &s) && s != CURL_SOCKET_BAD &&
           recv(s, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Learns which settings the server does not know: a statement with one of these would be refused. A server that another
 * release has replaced closed its connections, and was away for longer than LOOK_AGAIN_MS. */
static enum profd_status look(struct clickhouse *c, struct profd_error *e)
{
    static const char statement[] = "SELECT name FROM system.settings FORMAT TabSeparated";
    struct buffer url;
    if (c->looked && (is_connected(c) || now_ms() - c->looked < LOOK_AGAIN_MS)) {
        return PROFD_OK;
    }
    c->looked = 0;
    const size_t limit = c->limits.reply_bytes;
    c->limits.reply_bytes = 1u << 20;
    url_begin(c, &url);
    const enum profd_status status = perform(c, &url, statement, strlen(statement), e);
    c->limits.reply_bytes = limit;
    TRY(status);
    uint64_t known = 0;
    for (char *save, *name = strtok_r(c->reply.data, "\n", &save); name; name = strtok_r(NULL, "\n", &save)) {
        for (size_t i = 0; i < SETTING_COUNT; i++) {
            known |= (uint64_t)!strcmp(name, settings[i].name) << i;
        }
    }
    FAIL_IF(!known, e, PROFD_PROTOCOL, "what answers at %s is not ClickHouse: it has none of its settings", c->place);
    c->unknown = ~known;
    c->looked = now_ms();
    return PROFD_OK;
}

/* Ends a query whose connection was closed, on a server that does not end it by itself. */
static void kill_query(struct clickhouse *c, uint64_t id)
{
    const struct clickhouse_limits limits = c->limits;
    struct profd_error ignored;
    struct buffer url;
    char statement[80];
    c->limits.stopped = NULL;
    c->limits.reply_bytes = KILL_BYTES;
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, KILL_MS);
    (void)snprintf(statement, sizeof statement, "KILL QUERY WHERE query_id = '%" PRIx64 "' ASYNC", id);
    url_begin(c, &url);
    (void)perform(c, &url, statement, strlen(statement), &ignored);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)limits.answer_ms);
    c->limits = limits;
    c->stopped = true;
}

/* Runs a statement on the first server that can be connected to. query: the statement, escaped, if the body is data.
 * reads: it writes nothing, so that it can be ended at any time. */
static enum profd_status run(struct clickhouse *c, bool reads, const char *query, const void *body, size_t size,
                             struct profd_error *e)
{
    for (unsigned tried = 1;; tried++) {
        uint64_t id = 0;
        enum profd_status status = look(c, e);
        if (!status) {
            struct buffer url;
            url_begin(c, &url);
            for (size_t i = 0; i < SETTING_COUNT; i++) {
                if (!(c->unknown >> i & 1) && (c->address.replicated || !settings[i].replicated)) {
                    buffer_add_format(&url, "&%s=%s", settings[i].name, settings[i].value);
                }
            }
            /* ClickHouse ends only what is read-only when the connection is closed. */
            if (reads && !(c->unknown & 1)) {
                buffer_add_text(&url, "&readonly=2");
            } else if (reads && getrandom(&id, sizeof id, 0) == sizeof id) {
                buffer_add_format(&url, "&query_id=%" PRIx64, id);
            }
            if (query) {
                buffer_add_text(&url, "&query=");
                buffer_add_text(&url, query);
            }
            status = perform(c, &url, body, size, e);
        }
        if (status == PROFD_STOPPING) {
            if (id) {
                kill_query(c, id);
            }
            return status;
        }
        if (!status || c->code != NOT_SENT) {
            return status;
        }
        server_set(c, (c->server + 1) % c->address.server_count);
        if (tried >= c->address.server_count) {
            return status;
        }
    }
}

enum profd_status clickhouse_ask(struct clickhouse *c, const char *statement, char **reply, struct profd_error *e)
{
    TRY(run(c, false, NULL, statement, strlen(statement), e));
    *reply = c->reply.data;
    buffer_init(&c->reply, 0);
    return PROFD_OK;
}

enum profd_status clickhouse_do(struct clickhouse *c, struct buffer *statement, struct profd_error *e)
{
    const enum profd_status status =
        statement->failed ? profd_no_memory(e) : run(c, false, NULL, statement->data, statement->size, e);
    buffer_done(statement);
    return status;
}

enum profd_status clickhouse_take(struct clickhouse *c, const char *statement, struct row_reader *reply,
                                  struct profd_error *e)
{
    const char *type = NULL;
    TRY(run(c, true, NULL, statement, strlen(statement), e));
    curl_easy_getinfo(c->curl, CURLINFO_CONTENT_TYPE, &type);
    /* an acknowledgement looks like no rows */
    FAIL_IF(!type || strncasecmp(type, "application/octet-stream", 24), e, PROFD_PROTOCOL,
            "what answers a query at %s sends %.60s instead of rows", c->place, type ? type : "no type");
    rows_open(reply, (uint8_t *)c->reply.data, c->reply.size);
    buffer_init(&c->reply, 0);
    return PROFD_OK;
}

enum profd_status clickhouse_read(struct clickhouse *c, struct buffer *statement, struct row_reader *reply,
                                  struct profd_error *e)
{
    buffer_add(statement, " FORMAT RowBinary", sizeof " FORMAT RowBinary");
    const enum profd_status status =
        statement->failed ? profd_no_memory(e) : clickhouse_take(c, statement->data, reply, e);
    buffer_done(statement);
    return status;
}

enum profd_status clickhouse_take_number(struct clickhouse *c, const char *statement, uint64_t *out,
                                         struct profd_error *e)
{
    struct row_reader r;
    TRY(clickhouse_take(c, statement, &r, e));
    *out = rows_u64(&r);
    const bool cut = r.cut || rows_more(&r);
    rows_close(&r);
    return cut ? profd_error_set(e, PROFD_PROTOCOL, "what answers at %s sends no number", c->place) : PROFD_OK;
}

enum profd_status clickhouse_insert(struct clickhouse *c, const char *statement, const void *data, size_t size,
                                    struct profd_error *e)
{
    const uint64_t began = now_ms();
    enum profd_status status;
    char *query = curl_easy_escape(c->curl, statement, 0);
    TRY(query ? PROFD_OK : profd_no_memory(e));
    /* ClickHouse lets one insert at a time wait for a quorum of a table's replicas, and refuses others at once. */
    while ((status = run(c, false, query, data, size, e)) && c->code == 286 && !c->stopped &&
           now_ms() - began < c->limits.answer_ms) {
        uint8_t random = 0;
        (void)!getrandom(&random, sizeof random, 0);
        (void)poll(NULL, 0, 2 + random % 64);
    }
    curl_free(query);
    if (!status && c->reply.size) {
        status = profd_error_set(e, PROFD_PROTOCOL,
                                 "what answers an insert at %s is not the acknowledgement of ClickHouse, which is "
                                 "empty: it has %zu bytes",
                                 c->place, c->reply.size);
    }
    return status;
}

enum profd_status clickhouse_write(struct clickhouse *c, const char *statement, struct buffer *rows,
                                   struct profd_error *e)
{
    const enum profd_status status =
        rows->failed ? profd_no_memory(e) : clickhouse_insert(c, statement, rows->data, rows->size, e);
    buffer_done(rows);
    return status;
}
