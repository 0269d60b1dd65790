#include "profctl/profctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEM_MAX 65536
#define ANSWER_MAX ((size_t)256 << 20)
#define PAGES_MAX 100000
#define ADMIN_MAX ((size_t)16 << 20)
#define ADMIN_MS 600000u /* a full disk may take its time to say so */

struct profd_options profctl_options(const struct profctl_call *call, unsigned answer_ms)
{
    return (struct profd_options){.server = call->server,
                                  .token_file = call->token_file ? call->token_file : secure_getenv("PROFD_TOKEN_FILE"),
                                  .name = "profctl " PROFD_VERSION,
                                  .connect_ms = 20000,
                                  .answer_ms = answer_ms,
                                  .http = https_ask,
                                  .http_context = (void *)(uintptr_t)call->ca_file};
}

static void target_put(struct ask_target *t, char c)
{
    if (t->size + 1 >= sizeof t->text) {
        t->too_long = true;
        return;
    }
    t->text[t->size++] = c;
    t->text[t->size] = '\0';
}

static void target_encode(struct ask_target *t, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                     strchr("-._~", *p) != NULL;
        if (plain) {
            target_put(t, (char)*p);
        } else {
            target_put(t, '%');
            target_put(t, digits[*p >> 4]);
            target_put(t, digits[*p & 15]);
        }
    }
}

void ask_target_init_two(struct ask_target *t, const char *route, const char *name, const char *second)
{
    *t = (struct ask_target){.size = 0};
    for (; *route; route++) {
        if (strncmp(route, "{}", 2) == 0) {
            target_encode(t, name);
            name = second;
            route++;
        } else {
            target_put(t, *route);
        }
    }
}

void ask_target_init(struct ask_target *t, const char *route, const char *name)
{
    ask_target_init_two(t, route, name, NULL);
}

void ask_target_add(struct ask_target *t, const char *name, const char *value)
{
    if (value) {
        target_put(t, t->has_parameters ? '&' : '?');
        t->has_parameters = true;
        target_encode(t, name);
        target_put(t, '=');
        target_encode(t, value);
    }
}

enum profd_status ask_target_add_label(struct ask_target *t, const struct profctl_call *call, const char *prefix,
                                       const char *text, struct profd_error *e)
{
    const char *equals = strchr(text, '=');
    char name[160];
    FAIL_IF(!equals || equals == text || (size_t)(equals - text) > 128, e, PROFD_USAGE, "%s: -l %s is not NAME=VALUE",
            call->verb->name, text);
    (void)snprintf(name, sizeof name, "%slabel.%.*s", prefix, (int)(equals - text), text);
    ask_target_add(t, name, equals + 1);
    return PROFD_OK;
}

enum profd_status ask_target_add_given(struct ask_target *t, const struct profctl_call *call, const char *names,
                                       struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    t->call = call;
    for (size_t i = 0; i < call->given_count && status == PROFD_OK; i++) {
        const char *name = call->given[i].option->name, *value = call->given[i].value;
        bool last = profctl_value(call, name) == value;
        if (strcmp(name, "label") == 0) {
            status = ask_target_add_label(t, call, "", value, e);
        } else if (strcmp(name, "match") == 0 || strcmp(name, "by") == 0 ||
                   (last && profctl_alternative(names, name) >= 0)) {
            ask_target_add(t, name, value);
        } else if (last && strcmp(name, "partial") == 0) {
            ask_target_add(t, name, "1");
        }
    }
    return status;
}

struct ask {
    profd_sink sink;
    void *context;
    int http_status;
    char problem[PROBLEM_MAX];
    size_t problem_size;
};

static enum profd_status answer_take(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                     struct profd_error *e)
{
    struct ask *a = context;
    a->http_status = answer->http_status;
    if (answer->http_status < 400) {
        return a->sink(a->context, answer, bytes, n, e);
    }
    size_t left = sizeof a->problem - 1 - a->problem_size, take = n < left ? n : left;
    if (take > 0) {
        memcpy(a->problem + a->problem_size, bytes, take);
        a->problem_size += take;
    }
    return PROFD_OK;
}

/* The status and sentence of a problem document (RFC 9457); of the HTTP status alone where it cannot be read. */
static enum profd_status problem_parse(const char *text, size_t n, int http_status, struct profd_error *e)
{
    json_t *problem = json_loadb(text, n, 0, NULL);
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *code = json_string_value(json_object_get(problem, "code"));
    enum profd_status status = PROFD_OK;
    for (unsigned i = 1; code && profd_status_known(i); i++) {
        if (strcmp(profd_status_name((enum profd_status)i), code) == 0) {
            status = (enum profd_status)i;
        }
    }
    for (unsigned i = 1; status == PROFD_OK && profd_status_known(i); i++) { /* an older or newer daemon */
        if (profd_status_http((enum profd_status)i) == http_status) {
            status = (enum profd_status)i;
        }
    }
    status = status ? status : PROFD_INTERNAL;
    if (detail) {
        (void)profd_error_set(e, status, "%s", detail);
    } else if (http_status == 401) {
        (void)profd_error_set(e, status,
                              "the server requires a token, or another one (HTTP status 401); "
                              "--token-file FILE names the file with it");
    } else if (http_status >= 502 && http_status <= 504) { /* a proxy's own answer */
        status = profd_error_set(e, PROFD_UNAVAILABLE,
                                 "the proxy answers with HTTP status %d: its daemon does not answer", http_status);
    } else {
        (void)profd_error_set(e, status, "the server answers with HTTP status %d", http_status);
    }
    json_decref(problem);
    return status;
}

enum profd_status ask_by(struct profd_conn *c, ask_request request, void *what, profd_sink sink, void *context,
                         struct profd_error *e)
{
    struct ask *a = calloc(1, sizeof *a);
    FAIL_IF(!a, e, PROFD_NO_MEMORY, "no memory to ask");
    a->sink = sink;
    a->context = context;
    enum profd_status status = request(c, what, answer_take, a, e);
    if (status == PROFD_OK && a->http_status >= 400) {
        status = problem_parse(a->problem, a->problem_size, a->http_status, e);
    }
    free(a);
    return status;
}

static enum profd_status target_query(struct profd_conn *c, void *target, profd_sink sink, void *context,
                                      struct profd_error *e)
{
    const struct ask_target *t = target;
    return profd_query(c, t->text, t->if_none_match, sink, context, e);
}

enum profd_status ask_run(struct profd_conn *c, const struct ask_target *t, profd_sink sink, void *context,
                          struct profd_error *e)
{
    struct ask_target target = *t;
    FAIL_IF(t->too_long, e, PROFD_BAD_QUERY, "the query has more than %d bytes", ASK_TARGET_SIZE - 1);
    enum profd_status status = ask_by(c, target_query, &target, sink, context, e);
    if (!e || !t->call || (status != PROFD_BAD_QUERY && status != PROFD_USAGE)) {
        return status;
    }

    /* The daemon's sentences name parameters, "since=yesterday is …"; the user gave options, "--since yesterday". */
    for (size_t i = 0; i < t->call->given_count; i++) {
        const char *name = t->call->given[i].option->name, *value = t->call->given[i].value;
        char parameter[64];
        size_t n = (size_t)snprintf(parameter, sizeof parameter, "%s=", name);
        const size_t side = name[1] == '-' ? 2 : 0; /* "a-since" is the parameter since of one side of a comparison */
        const char *at = value[0] && n < sizeof parameter ? strstr(e->sentence, parameter + side) : NULL;
        n -= side;
        if (at && strncmp(at + n, value, strlen(value)) == 0) {
            const struct profd_error said = *e;
            const size_t before = (size_t)(at - e->sentence);
            (void)snprintf(e->sentence, sizeof e->sentence, "%.*s--%s %s", (int)before, said.sentence, name,
                           said.sentence + before + n);
        }
    }
    return status;
}

struct whole {
    char *bytes;
    size_t size, capacity, max;
    struct profd_answer answer;
};

static enum profd_status whole_take(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                    struct profd_error *e)
{
    struct whole *w = context;
    w->answer = *answer;
    FAIL_IF(n > w->max - w->size, e, PROFD_TOO_LARGE, "the answer has more than %zu bytes", w->max);
    if (w->size + n + 1 > w->capacity) {
        size_t capacity = 2 * (w->size + n + 1);
        char *grown = realloc(w->bytes, capacity);
        FAIL_IF(!grown, e, PROFD_NO_MEMORY, "no memory for an answer of %zu bytes", w->size + n);
        w->bytes = grown;
        w->capacity = capacity;
    }
    if (n > 0) {
        memcpy(w->bytes + w->size, bytes, n);
    }
    w->size += n;
    w->bytes[w->size] = '\0';
    return PROFD_OK;
}

enum profd_status ask_read(struct profd_conn *c, const struct ask_target *t, size_t max, char **out, size_t *size,
                           struct profd_answer *answer, struct profd_error *e)
{
    struct whole w = {.max = max};
    enum profd_status status = ask_run(c, t, whole_take, &w, e);
    if (status != PROFD_OK) {
        free(w.bytes);
        return status;
    }
    *out = w.bytes;
    *size = w.size;
    if (answer) {
        *answer = w.answer;
    }
    return PROFD_OK;
}

/* The answers of this run. */
static struct kept {
    struct answer answer;
    struct kept *before;
} * kept;

static void answer_drop(struct answer *a)
{
    json_decref(a->whole);
    if (a->text) {
        explicit_bzero(a->text, a->size); /* it may hold a token */
    }
    free(a->text);
    *a = (struct answer){.whole = NULL};
}

void answers_free(void)
{
    for (struct kept *k; (k = kept) != NULL; free(k)) {
        kept = k->before;
        answer_drop(&k->answer);
    }
}

/* Keeps an answer until answers_free. */
static enum profd_status answer_keep(struct answer *a, struct profd_error *e)
{
    struct kept *k = malloc(sizeof *k);
    if (!k) {
        answer_drop(a);
        return profd_no_memory(e);
    }
    *k = (struct kept){*a, kept};
    kept = k;
    return PROFD_OK;
}

/* Parses the text, which becomes the answer's. kind is the word for it in a sentence. */
static enum profd_status answer_parse(char *text, size_t size, const char *kind, struct answer *out,
                                      struct profd_error *e)
{
    json_error_t where;
    json_t *whole = json_loadb(text ? text : "", size, JSON_REJECT_DUPLICATES, &where);
    *out = (struct answer){.whole = whole, .text = text, .size = size};
    if (!json_is_object(whole)) {
        answer_drop(out);
        return profd_error_set(e, PROFD_MALFORMED, "malformed %s from the daemon: %s", kind,
                               whole ? "no object" : where.text);
    }
    out->rows = json_object_get(whole, "rows");
    return PROFD_OK;
}

static enum profd_status ask_kind(struct profd_conn *c, const struct ask_target *t, const char *kind,
                                  struct answer *out, struct profd_error *e)
{
    char *text = NULL;
    size_t size = 0;
    TRY(ask_read(c, t, ANSWER_MAX, &text, &size, NULL, e));
    return answer_parse(text, size, kind, out, e);
}

enum profd_status ask_object(struct profd_conn *c, const struct ask_target *t, struct answer *out,
                             struct profd_error *e)
{
    TRY(ask_kind(c, t, "answer", out, e));
    return answer_keep(out, e);
}

enum profd_status ask_rows(struct profd_conn *c, const struct ask_target *t, struct answer *out, struct profd_error *e)
{
    struct answer all = {.whole = NULL}, page;
    char next[512] = "";
    enum profd_status status = PROFD_OK;
    for (int i = 0; status == PROFD_OK && (i == 0 || next[0]) && i < PAGES_MAX; i++) {
        struct ask_target target = *t;
        ask_target_add(&target, "cursor", next[0] ? next : NULL);
        status = ask_kind(c, &target, "list", &page, e);
        if (status == PROFD_OK && !json_is_array(page.rows)) {
            answer_drop(&page);
            status = profd_error_set(e, PROFD_MALFORMED, "malformed list from the daemon: no rows");
        }
        if (status != PROFD_OK) {
            break;
        }
        const char *cursor = json_string_value(json_object_get(page.whole, "next"));
        /* A cursor after no rows leads nowhere. */
        (void)snprintf(next, sizeof next, "%s", cursor && json_array_size(page.rows) > 0 ? cursor : "");
        if (i == 0) {
            all = page;
            continue;
        }
        free(all.text);
        all.text = NULL;
        if (json_array_extend(all.rows, page.rows) != 0) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu rows", json_array_size(page.rows));
        }
        answer_drop(&page);
    }
    if (status != PROFD_OK) {
        answer_drop(&all);
    }
    *out = all;
    return status ? status : answer_keep(out, e);
}

enum profd_status ask_builds(struct profd_conn *c, struct answer *out, struct profd_error *e)
{
    struct ask_target target;
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    return ask_rows(c, &target, out, e);
}

static enum profd_status fetch(const struct profctl_call *call, const struct ask_target *t,
                               enum profd_status (*ask)(struct profd_conn *c, const struct ask_target *t,
                                                        struct answer *out, struct profd_error *e),
                               struct answer *out, struct profd_error *e)
{
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct profd_conn *conn;
    TRY(profd_conn_open(&o, &conn, e));
    enum profd_status status = ask(conn, t, out, e);
    profd_conn_close(conn);
    return status;
}

enum profd_status ask_fetch_object(const struct profctl_call *call, const struct ask_target *t, struct answer *out,
                                   struct profd_error *e)
{
    return fetch(call, t, ask_object, out, e);
}

enum profd_status ask_fetch_rows(const struct profctl_call *call, const struct ask_target *t, struct answer *out,
                                 struct profd_error *e)
{
    return fetch(call, t, ask_rows, out, e);
}

struct command {
    struct progress progress;
    const char *word;
    struct whole answer;
};

static enum profd_status command_take(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                      struct profd_error *e)
{
    struct command *c = context;
    if (n == 0) {
        progress_show(&c->progress, c->word, answer->done, answer->total, "");
        return PROFD_OK;
    }
    return whole_take(&c->answer, answer, bytes, n, e);
}

enum profd_status ask_admin(const struct profctl_call *call, const char *verb, const char *const *arguments, size_t n,
                            const char *word, struct answer *out, struct profd_error *e)
{
    struct profd_conn *conn;
    struct command c = {.word = word, .answer = {.max = ADMIN_MAX}};
    const struct profd_options o = profctl_options(call, ADMIN_MS);
    TRY(profd_conn_open(&o, &conn, e));
    enum profd_status status = profd_admin(conn, verb, arguments, n, command_take, &c, e);
    progress_end(&c.progress);
    profd_conn_close(conn);
    if (status == PROFD_OK && !c.answer.bytes) {
        status = profd_error_set(e, PROFD_PROTOCOL, "empty answer of the daemon to %s", verb);
    }
    if (status != PROFD_OK) {
        free(c.answer.bytes);
        return status;
    }
    TRY(answer_parse(c.answer.bytes, c.answer.size, "answer", out, e));
    return answer_keep(out, e);
}

enum profd_status ask_admin_text(const struct profctl_call *call, const char *verb, const char *const *arguments,
                                 size_t n, const char *word, struct answer *out, struct profd_error *e)
{
    TRY(ask_admin(call, verb, arguments, n, word, out, e));
    if (call->json) {
        (void)fwrite(out->text, 1, out->size, stdout);
        *out = (struct answer){.whole = NULL};
    }
    return PROFD_OK;
}

enum profd_status answer_print_json(const struct answer *a, struct profd_error *e)
{
    struct output out;
    json_t *list = a->text ? NULL : json_pack("{s:O,s:n}", "rows", a->rows, "next");
    char *text = list ? json_dumps(list, JSON_COMPACT) : NULL;
    json_decref(list);
    FAIL_IF(!a->text && !text, e, PROFD_NO_MEMORY, "no memory for %zu rows", json_array_size(a->rows));
    enum profd_status status = output_open(NULL, &out, e);
    if (status == PROFD_OK) {
        status = a->text ? output_write(&out, a->text, a->size, e) : output_write(&out, text, strlen(text), e);
        if (status == PROFD_OK && !a->text) {
            status = output_write(&out, "\n", 1, e);
        }
        enum profd_status closed = output_close(&out, true, e);
        status = status ? status : closed;
    }
    free(text);
    return status;
}

struct sort_key {
    json_t *row;
    size_t place;
    const char *field;
    bool descending;
};

static int key_compare(const void *left, const void *right)
{
    const struct sort_key *a = left, *b = right;
    json_t *x = json_object_get(a->row, a->field), *y = json_object_get(b->row, b->field);
    int order;
    if (json_is_string(x) && json_is_string(y)) {
        const char *p = json_string_value(x), *q = json_string_value(y);
        const bool path = strcmp(a->field, "name") == 0; /* its last part is shown */
        order = path ? strcmp(basename(p), basename(q)) : strcmp(p, q);
    } else {
        double p = json_number_value(x), q = json_number_value(y);
        order = (p > q) - (p < q);
    }
    order = a->descending ? -order : order;
    return order ? order : (a->place > b->place) - (a->place < b->place);
}

enum profd_status answer_sort(struct answer *a, const char *field, bool descending, struct profd_error *e)
{
    const size_t n = json_array_size(a->rows);
    struct sort_key *keys = calloc(n + 1, sizeof *keys);
    FAIL_IF(!keys, e, PROFD_NO_MEMORY, "no memory for %zu rows", n);
    for (size_t i = 0; i < n; i++) {
        keys[i] = (struct sort_key){json_incref(json_array_get(a->rows, i)), i, field, descending};
    }
    qsort(keys, n, sizeof *keys, key_compare);
    for (size_t i = 0; i < n; i++) {
        (void)json_array_set_new(a->rows, i, keys[i].row);
    }
    free(keys);
    a->text = NULL; /* it has another order */
    return PROFD_OK;
}

/* Cleans the strings of a row in place, so that they can be printed. */
static void row_clean(json_t *row)
{
    const char *key;
    json_t *value;
    json_object_foreach(row, key, value)
    {
        const char *text = json_string_value(value);
        size_t n = json_string_length(value);
        char *clean = text && n > 0 ? malloc(TERMINAL_BOUND(n)) : NULL;
        if (clean) {
            struct terminal_filter f = {.one_line = true};
            size_t size = terminal_filter_run(&f, text, n, clean);
            (void)json_string_setn(value, clean, size);
            free(clean);
        }
    }
}

const char *row_text(json_t *row, const char *field)
{
    if (!json_object_get(row, "\ncleaned")) {
        row_clean(row);
        (void)json_object_set_new(row, "\ncleaned", json_true());
    }
    return row_raw(row, field);
}

const char *row_raw(const json_t *row, const char *field)
{
    const char *text = json_string_value(json_object_get(row, field));
    return text ? text : "";
}

const char *row_base(json_t *row, const char *field)
{
    return basename(row_text(row, field));
}

const char *row_pairs(json_t *row, const char *field)
{
    json_t *object = json_object_get(row, field), *value;
    char shown[256];
    const char *key;
    (void)snprintf(shown, sizeof shown, "\n%.200s", field); /* no field of the daemon's begins so */
    if (json_is_object(object) && !json_object_get(row, shown)) {
        char *text = NULL;
        size_t n = 0;
        FILE *stream = open_memstream(&text, &n);
        row_clean(object);
        json_object_foreach(object, key, value)
        {
            if (stream && json_is_string(value)) {
                (void)fprintf(stream, "%s%s=%s", ftell(stream) > 0 ? " " : "", key, json_string_value(value));
            }
        }
        if (stream && fclose(stream) == 0) {
            (void)json_object_set_new(row, shown, json_string(text));
        }
        free(text);
    }
    return row_text(row, shown);
}

void row_join(const json_t *row, const char *field, char *out, size_t size)
{
    const json_t *list = json_object_get(row, field);
    size_t used = 0;
    *out = '\0';
    for (size_t k = 0; k < json_array_size(list) && used < size; k++) {
        const char *text = json_string_value(json_array_get(list, k));
        used += (size_t)snprintf(out + used, size - used, "%s%s", k ? ", " : "", text ? text : "");
    }
}

uint64_t row_number(const json_t *row, const char *field)
{
    json_int_t value = json_integer_value(json_object_get(row, field));
    return value > 0 ? (uint64_t)value : 0;
}

double row_real(const json_t *row, const char *field)
{
    return json_number_value(json_object_get(row, field));
}

bool row_flag(const json_t *row, const char *field)
{
    return json_is_true(json_object_get(row, field));
}

bool row_has(const json_t *row, const char *field)
{
    return json_is_number(json_object_get(row, field));
}

bool row_is_sampled(const json_t *row)
{
    const json_t *reason;
    size_t i;
    json_array_foreach(json_object_get(row, "inexact_reasons"), i, reason)
    {
        const char *text = json_string_value(reason);
        if (text && strcmp(text, "sampled") == 0) {
            return true;
        }
    }
    return false;
}

enum profd_status json_print(json_t *value, struct profd_error *e)
{
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    FAIL_IF(!text, e, PROFD_NO_MEMORY, "no memory for the answer in JSON");
    puts(text);
    free(text);
    return PROFD_OK;
}
