#include "render/render_callers.h"

#include "proto/message.h"
#include "render/json_function.h"
#include "render/json_write.h"

static const char *const METHODS[] = {"none", "stacks", "calls"};

static void add_identity(struct buffer *out, const struct report *r, const struct report_function *f)
{
    render_json_string(out, f->name);
    json_add_text(out, "raw_name", f->raw);
    json_add_text(out, "build_id", json_find_build(r, f->build));
    json_add_address(out, "address", f->address);
    json_add_text(out, "file", f->file == NULL ? "" : f->file);
}

/* inexact: of sampled calls, a ratio says nothing. */
static void add_row(struct buffer *out, const struct report *r, const struct callers_row *row, uint32_t inexact)
{
    const struct report_arc *arc = row->arc;
    const bool timed = row->method != CALLERS_NONE, interval = timed && row->low <= row->high;
    JSON_ADD(out, "{\"caller\":");
    add_identity(out, r, &r->functions[arc->other]);
    json_add_count(out, "calls", arc->calls);
    json_add_known(out, "calls_per_caller_call", row->per_caller,
                   row->per_caller >= 0 && (inexact & INEXACT_SAMPLED) == 0);
    json_add_text(out, "method", METHODS[row->method]);
    json_add_known(out, "total_seconds", row->seconds, timed);
    json_add_known(out, "low", row->low, interval);
    json_add_known(out, "high", row->high, interval);
    json_add_known(out, "seconds_per_call", arc->calls > 0 ? row->seconds / (double)arc->calls : 0,
                   timed && row->seconds > 0 && arc->calls > 0 && (inexact & INEXACT_CALLS) == 0);
    json_add_known(out, "seconds_by_calls", arc->self + arc->children, timed);
    json_add_flag(out, "inside", arc->inside);
    JSON_ADD(out, "}");
}

void render_callers(const struct render_input *in, const struct callers *c, size_t limit, struct buffer *out)
{
    const uint32_t inexact = in->provenance->inexact;
    const struct report_function *f = c->function;
    JSON_ADD(out, "{\"rows\":[");
    for (uint32_t i = 0; i < c->row_count && i < limit; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_row(out, in->report, &c->rows[i], inexact);
    }
    JSON_ADD(out, "],\"function\":{\"name\":");
    add_identity(out, in->report, f);
    json_add_count(out, "calls", f->calls);
    json_add_count(out, "self_calls", f->self_calls);
    json_add_count(out, "cycle", f->cycle);
    json_add_times(out, f->self, f->children);
    json_add_known(out, "measured_total", f->measured != NULL ? f->measured->total : 0, f->measured != NULL);
    JSON_ADD(out, "}");
    json_add_count(out, "row_count", c->row_count);
    json_add_text(out, "method", METHODS[c->method]);
    json_add_text(out, "stacks_refused", c->stacks_refused);
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_text(out, "dimension", in->report->dimension);
    json_add_exact_parts(out, inexact);
    json_add_exact(out, inexact);
    json_add_meanings(out, inexact);
    json_add_window(out, in->used_since, in->used_until);
    JSON_ADD(out, "}\n");
}
