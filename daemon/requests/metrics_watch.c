#include "requests/metrics_watch.h"

#include <string.h>

#include "requests/metrics_label.h"
#include "render/document.h"

static void add_label(struct buffer *out, const char *name, const json_t *document, const char *field)
{
    const char *text = json_string_value(json_object_get(document, field));

    buffer_add_text(out, name);
    buffer_add_text(out, "=\"");
    if (text) {
        char *to = buffer_open(out, 2 * strlen(text));
        if (to) {
            buffer_close(out, metrics_put_value(to, text));
        }
    }
    buffer_add_char(out, '"');
}

/* One family of metrics: a field of all documents. */
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

enum profd_status metrics_watch_format(struct store *store, struct buffer *out, struct profd_error *e)
{
    static const struct family families[] = {
        {"watch_self_seconds_total", "counter", "Self time of a watched function.", "self"},
        {"watch_calls_total", "counter",
         "Calls of a watched function; of programs that count none, ticks that found it below a caller.", "calls"},
        {"watch_removals_total", "counter",
         "Looks that found counts of a watched function removed: what arrived in between may be missing.", "removals"}};
    json_t *documents = json_array();
    enum profd_status status =
        documents ? store_each_watch_row(store, take_document, documents, e) : profd_no_memory(e);

    for (size_t i = 0; !status && i < sizeof families / sizeof *families; i++) {
        add_family(out, &families[i], documents);
    }
    json_decref(documents);
    return status;
}
