/* Verdicts of the watch list: as rows, and as annotations of Grafana. */
#include <stdio.h>

#include "core/rows.h"
#include "render/document.h"
#include "render/json_write.h"
#include "render/render.h"

static const char *text_of(const json_t *d, const char *field)
{
    return json_string_value(json_object_get(d, field));
}

static void add_row(struct buffer *out, const json_t *d, int64_t changed)
{
    static const char *const texts[] = {"program",         "function",       "metric",  "before", "after",
                                        "build_id_before", "build_id_after", "verdict", "why"};
    static const char *const numbers[] = {"a",       "b",         "change",     "low",     "high",    "p",
                                          "visible", "threshold", "confidence", "ticks_a", "ticks_b", "looks"};
    JSON_ADD(out, "{\"watch\":");
    render_json_string(out, text_of(d, "watch"));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_add_text(out, texts[i], text_of(d, texts[i]));
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const json_t *value = json_object_get(d, numbers[i]);
        json_add_known(out, numbers[i], json_number_value(value), json_is_number(value));
    }
    json_add_time(out, "decided", json_integer_value(json_object_get(d, "decided")));
    json_add_time(out, "changed", changed);
    JSON_ADD(out, "}");
}

void render_verdicts(const struct verdict_row *rows, size_t n, const char *next, struct buffer *out)
{
    bool any = false;
    JSON_ADD(out, "{\"rows\":[");
    for (size_t i = 0; i < n; i++) {
        json_t *d = json_loads(rows[i].document, 0, NULL);
        if (d != NULL) {
            buffer_add_text(out, any ? ",\n" : "\n");
            add_row(out, d, rows[i].changed);
            any = true;
        }
        json_decref(d);
    }
    json_add_end(out, next);
}

static void add_annotation(struct buffer *out, const json_t *d, int64_t decided)
{
    char text[512];
    const char *const tags[] = {"profd", text_of(d, "verdict"), text_of(d, "watch"), text_of(d, "function")};
    const double percent[] = {100 * json_number_value(json_object_get(d, "change")),
                              100 * json_number_value(json_object_get(d, "low")),
                              100 * json_number_value(json_object_get(d, "high"))};
    JSON_ADD(out, "{\"time\":");
    buffer_add_u64(out, (uint64_t)decided / 1000000u, 0);
    (void)snprintf(text, sizeof text, "%s of %.200s: %s", text_of(d, "metric"), text_of(d, "function"),
                   text_of(d, "verdict"));
    json_add_text(out, "title", text);
    (void)snprintf(text, sizeof text, "%.100s, version %.80s after %.80s: %+.2f %%, between %+.2f %% and %+.2f %%",
                   text_of(d, "program"), text_of(d, "after"), text_of(d, "before"), percent[0], percent[1],
                   percent[2]);
    json_add_text(out, "text", text);
    JSON_ADD(out, ",\"tags\":[");
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        buffer_add_text(out, i > 0 ? "," : "");
        render_json_string(out, tags[i]);
    }
    JSON_ADD(out, "]}");
}

void render_annotations(const struct verdict_row *rows, size_t n, struct buffer *out)
{
    bool any = false;
    JSON_ADD(out, "[");
    for (size_t i = 0; i < n; i++) {
        json_t *d = json_loads(rows[i].document, 0, NULL);
        const int64_t decided = json_integer_value(json_object_get(d, "decided"));
        if (decided > 0 && json_is_number(json_object_get(d, "change"))) {
            buffer_add_text(out, any ? ",\n" : "\n");
            add_annotation(out, d, decided);
            any = true;
        }
        json_decref(d);
    }
    JSON_ADD(out, "]\n");
}
