#include "pages/metrics_watch.h"

#include <string.h>

#include "pages/metrics_label.h"
#include "render/document.h"

static void add_label(struct buffer *out, const char *name, const json_t *document, const char *field)
{
    const char *text = json_string_value(json_object_get(document, field));

    buffer_add_text(out, name);
    buffer_add_text(out, "=\"");
    if (text != NULL) {
        char *to = buffer_open(out, 2 * strlen(text));
        if (to != NULL) {
            buffer_close(out, metrics_put_value(to, text));
        }
    }
    buffer_add_char(out, '"');
}

/* One family of metrics: a field of all documents of a kind. */
struct family {
    const char *name, *type, *help, *field;
};

static bool take_document(void *context, const struct store_watch_row *row)
{
    json_t *document = json_loads(row->document, 0, NULL);

    return !document || !json_array_append_new(context, document);
}

static void add_number(struct buffer *out, const json_t *value)
{
    if (json_is_integer(value)) {
        buffer_add_u64(out, (uint64_t)json_integer_value(value), 0);
    } else {
        buffer_add_shortest(out, json_number_value(value));
    }
    buffer_add_char(out, '\n');
}

static void add_family(struct buffer *out, const struct family *f, const json_t *documents)
{
    buffer_add_format(out, "# HELP profd_%s %s\n# TYPE profd_%s %s\n", f->name, f->help, f->name, f->type);
    for (size_t i = 0; i < json_array_size(documents); i++) {
        const json_t *document = json_array_get(documents, i);

        buffer_add_format(out, "profd_%s{", f->name);
        add_label(out, "watch", document, "watch");
        add_label(out, ",function", document, "function");
        buffer_add_text(out, "} ");
        add_number(out, json_object_get(document, f->field));
    }
}

/* What a verdict is of: its watch, program and function. */
static json_t *make_key(const json_t *d)
{
    return json_sprintf("%s\n%s\n%s", json_string_value(json_object_get(d, "watch")),
                        json_string_value(json_object_get(d, "program")),
                        json_string_value(json_object_get(d, "function")));
}

/* The time of the latest verdict by key; NULL: no memory. */
static json_t *find_latest(const json_t *documents)
{
    json_t *latest = json_object();
    bool good = latest != NULL;

    for (size_t i = 0; good && i < json_array_size(documents); i++) {
        json_t *d = json_array_get(documents, i), *key = make_key(d), *decided = json_object_get(d, "decided");
        const char *text = json_string_value(key);

        good = text != NULL;
        if (good && json_integer_value(decided) > json_integer_value(json_object_get(latest, text))) {
            good = json_object_set(latest, text, decided) == 0;
        }
        json_decref(key);
    }
    if (!good) {
        json_decref(latest);
        return NULL;
    }
    return latest;
}

static bool is_latest(const json_t *latest, const json_t *d)
{
    json_t *key = make_key(d);
    const int64_t decided = json_integer_value(json_object_get(d, "decided"));
    const bool is =
        decided > 0 && key && decided == json_integer_value(json_object_get(latest, json_string_value(key)));

    json_decref(key);
    return is;
}

/* The latest verdict of each function that has one: the change as a part, and whether it is an increase. */
static void add_verdict_family(struct buffer *out, const char *name, const char *help, bool change,
                               const json_t *documents, const json_t *latest)
{
    buffer_add_format(out, "# HELP profd_%s %s\n# TYPE profd_%s gauge\n", name, help, name);
    for (size_t i = 0; i < json_array_size(documents); i++) {
        const json_t *d = json_array_get(documents, i);
        const char *verdict = json_string_value(json_object_get(d, "verdict"));

        if (!json_is_number(json_object_get(d, "change")) || !is_latest(latest, d)) {
            continue;
        }
        buffer_add_format(out, "profd_%s{", name);
        add_label(out, "watch", d, "watch");
        add_label(out, ",program", d, "program");
        add_label(out, ",function", d, "function");
        add_label(out, ",metric", d, "metric");
        add_label(out, ",version", d, "after");
        add_label(out, ",before", d, "before");
        buffer_add_text(out, "} ");
        if (change) {
            add_number(out, json_object_get(d, "change"));
        } else {
            buffer_add_text(out, verdict && !strcmp(verdict, "increased") ? "1\n" : "0\n");
        }
    }
}

static enum profd_status add_verdicts(struct store *store, struct buffer *out, struct profd_error *e)
{
    json_t *documents = json_array();
    enum profd_status status =
        documents ? store_each_watch_row(store, STORE_WATCH_VERDICT, take_document, documents, e) : profd_no_memory(e);

    json_t *latest = status == PROFD_OK ? find_latest(documents) : NULL;

    if (status == PROFD_OK && latest == NULL) {
        status = profd_no_memory(e);
    }
    if (status == PROFD_OK) {
        add_verdict_family(out, "regression",
                           "1: a watched function takes more in the newest version that has a verdict.", false,
                           documents, latest);
        add_verdict_family(out, "verdict_change_ratio", "Change of that function: 0.05 is 5 % more.", true, documents,
                           latest);
    }
    json_decref(latest);
    json_decref(documents);
    return status;
}

enum profd_status metrics_watch_format(struct store *store, struct buffer *out, struct profd_error *e)
{
    static const struct family families[] = {
        {"watch_self_seconds_total", "counter", "Self time of a watched function.", "self"},
        {"watch_total_seconds_total", "counter", "Time of a watched function and of what it called.", "total"},
        {"watch_calls_total", "counter",
         "Calls of a watched function; of programs that count none, ticks that found it below a caller.", "calls"},
        {"watch_removals_total", "counter",
         "Looks that found counts of a watched function removed: what arrived in between may be missing.", "removals"}};
    json_t *documents = json_array();
    enum profd_status status =
        documents ? store_each_watch_row(store, STORE_WATCH_COUNT, take_document, documents, e) : profd_no_memory(e);

    for (size_t i = 0; status == PROFD_OK && i < sizeof families / sizeof *families; i++) {
        add_family(out, &families[i], documents);
    }
    json_decref(documents);
    return status != PROFD_OK ? status : add_verdicts(store, out, e);
}
