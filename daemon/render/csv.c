#include <string.h>

#include "proto/message.h"
#include "render/render_internal.h"

/* format=csv: one row a function, fields and line ends as RFC 4180 has them. */

/* Spreadsheets run a cell that begins with = + - or @, or their full-width forms, as a formula, in quotes too. */
static bool begins_formula(const char *text)
{
    static const char *const WIDE[] = {"\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
    for (size_t i = 0; i < sizeof WIDE / sizeof *WIDE; i++) {
        if (strncmp(text, WIDE[i], 3) == 0) {
            return true;
        }
    }
    return *text != '\0' && strchr("=+-@", *text) != NULL;
}

/* A text that begins with one of these, or with ', gets an additional leading '; a reader removes one ' to get the
 * text. */
static void add_field(struct buffer *out, const char *text)
{
    const char *mark = begins_formula(text) || *text == '\'' ? "'" : "";
    buffer_add_char(out, ',');
    if (strpbrk(text, ",;\"\t\r\n") == NULL) { /* ; and tab separate cells in some countries */
        buffer_add_text(out, mark);
        buffer_add_text(out, text);
        return;
    }
    buffer_add_char(out, '"');
    buffer_add_text(out, mark);
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

static void add_measured(struct buffer *out, const struct report_measured *m)
{
    add_number(out, m->self);
    add_number(out, m->total);
    add_number(out, m->low);
    add_number(out, m->high);
    add_count(out, m->samples);
    add_count(out, m->differs);
}

enum profd_status csv_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    struct selection s;
    selection_make(in, a, &s);
    buffer_add_text(
        out, "index,name,raw_name,build_id,build,address,file,self_seconds,children_seconds,total_seconds,percent,"
             "calls,self_calls,calls_outside,calls_inside,cycle,all_calls,self_least,self_most,calls_sampled");
    buffer_add_text(out, !in->report->stacks ? "\r\n"
                                             : ",measured_self,measured_total,measured_low,measured_high,"
                                               "measured_samples,measured_differs\r\n");
    for (uint32_t i = 0; i < s.entry_count && !out->failed; i++) {
        if (s.entries[i] & REPORT_CYCLE) {
            continue;
        }
        const struct report_function *f = &in->report->functions[s.entries[i]];
        const char *name = name_make_safe(a, f->name), *raw = name_make_safe(a, f->raw);
        const char *build = f->build < in->report->build_count ? in->report->build_names[f->build] : "";
        const char *safe_build = name_make_safe(a, build), *file = name_make_safe(a, f->file ? f->file : "");
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
        add_count(out, f->calls + f->self_calls); /* no overflow: both are at most 2^63-1 */
        if (f->self_estimated) {
            add_number(out, f->self_least);
            add_number(out, f->self_most);
        } else {
            buffer_add_text(out, ",,");
        }
        add_count(out, (in->provenance->inexact & INEXACT_SAMPLED) != 0);
        if (f->measured) {
            add_measured(out, f->measured);
        }
        buffer_add_text(out, "\r\n");
    }
    return PROFD_OK;
}
