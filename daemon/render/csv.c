/* format=csv: one row a function, fields and line ends as RFC 4180 has them. */
#include <string.h>

#include "render/formats.h"
#include "render/json_function.h"
#include "render/name.h"
#include "render/select.h"

static void add_field(struct buffer *out, const char *text)
{
    buffer_add_char(out, ',');
    if (strpbrk(text, ",\"\r\n") == NULL) {
        buffer_add_text(out, text);
        return;
    }
    buffer_add_char(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            buffer_add_char(out, '"');
        }
        buffer_add_char(out, *text);
    }
    buffer_add_char(out, '"');
}

static void add_number(struct buffer *out, double value)
{
    buffer_add_char(out, ',');
    buffer_add_shortest(out, value);
}

static void add_count(struct buffer *out, uint64_t value)
{
    buffer_add_char(out, ',');
    buffer_add_u64(out, value, 0);
}

enum profd_status csv_render_functions(const struct render_input *in, struct arena *a, struct buffer *out,
                                       struct profd_error *e)
{
    struct selection s;
    enum profd_status status = selection_make(in, a, &s, e);
    if (status != PROFD_OK) {
        return status;
    }
    buffer_add_text(
        out, "index,name,raw_name,build_id,build,address,file,self_seconds,children_seconds,total_seconds,percent,"
             "calls,self_calls,calls_outside,calls_inside,cycle\r\n");
    for (uint32_t i = 0; i < s.entry_count && !out->failed; i++) {
        if (s.entries[i] & REPORT_CYCLE) {
            continue;
        }
        const struct report_function *f = &in->report->functions[s.entries[i]];
        const char *name = name_make_safe(a, f->name), *raw = name_make_safe(a, f->raw);
        const char *build = f->build < in->report->build_count ? in->report->build_names[f->build] : "";
        const char *safe_build = name_make_safe(a, build), *file = name_make_safe(a, f->file != NULL ? f->file : "");
        if (name == NULL || raw == NULL || safe_build == NULL || file == NULL) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory to write %u rows", s.function_count);
        }
        buffer_add_u64(out, f->index, 0);
        add_field(out, name);
        add_field(out, raw);
        add_field(out, json_find_build(in->report, f->build));
        add_field(out, safe_build);
        buffer_add_format(out, ",0x%llx", (unsigned long long)f->address);
        add_field(out, file);
        add_number(out, f->self);
        add_number(out, f->children);
        add_number(out, f->self + f->children);
        add_number(out, f->percent);
        add_count(out, f->calls);
        add_count(out, f->self_calls);
        add_count(out, f->calls_outside);
        add_count(out, f->calls_inside);
        add_count(out, f->cycle);
        buffer_add_text(out, "\r\n");
    }
    return status;
}
