#include "render/render_never.h"

#include "proto/message.h"
#include "render/json_write.h"

void render_never(const struct render_input *in, const struct never_called *never, size_t limit, struct buffer *out)
{
    const struct provenance *p = in->provenance;
    JSON_ADD(out, "{\"rows\":[");
    for (uint32_t i = 0; i < never->count && i < limit; i++) {
        const struct never_row *row = &never->rows[i];
        buffer_add_text(out, i > 0 ? ",\n{\"function\":" : "\n{\"function\":");
        render_json_string(out, row->function->name);
        json_add_text(out, "raw_name", row->function->raw);
        json_add_text(out, "file", row->function->file);
        json_add_address(out, "address", row->function->address);
        json_add_count(out, "bytes", row->bytes);
        json_add_count(out, "copies", row->copies);
        json_add_flag(out, "entered_elsewhere", row->entered_elsewhere);
        json_add_flag(out, "inlined", row->inlined);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]");
    json_add_text(out, "build_id", in->build_id);
    json_add_text(out, "name", in->build_name);
    json_add_text(out, "scope", in->scope);
    json_add_count(out, "row_count", never->count);
    json_add_count(out, "functions", never->functions);
    json_add_count(out, "bytes", never->bytes);
    json_add_count(out, "copy_bytes", never->copy_bytes);
    json_add_text(out, "symbols", never->named);
    json_add_flag(out, "inlined_known", never->knows_inlined);
    json_add_count(out, "counted_functions", never->counted);
    json_add_count(out, "not_called", never->not_called);
    json_add_count(out, "processes_started", p->processes);
    /* With probability 95 %, fewer than this part of all processes enters a function that none of n entered ("rule of
     * three"). Only counts that lack nothing bound anything. */
    const bool known = p->processes >= 3 && (p->inexact & INEXACT_CALLS) == 0;
    json_add_known(out, "bound", known ? 3 / (double)p->processes : 0, known);
    json_add_exact_parts(out, p->inexact);
    json_add_exact(out, p->inexact);
    json_add_meanings(out, p->inexact);
    json_add_window(out, in->used_since, in->used_until);
    JSON_ADD(out, "}\n");
}
