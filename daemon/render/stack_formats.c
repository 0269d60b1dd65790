/* Formats that list one stack after another: format=folded and format=speedscope. */
#include <math.h>

#include "render/render_internal.h"

/* format=folded: one stack a line, root first, with its own time in microseconds, or in the unit of what else was
 * sampled: the input of Brendan Gregg's flamegraph.pl. Where stacks are derived, the first frame says that they are
 * synthetic, because the format has no comments. */
enum profd_status folded_render(const struct render_input *in, struct arena *a, struct buffer *out,
                                struct profd_error *e)
{
    (void)e;
    struct name_list names;
    struct stack_tree s;
    uint32_t path[STACKS_DEPTH + 2];
    double exact = 0, said = 0, scale = in->report->in_seconds ? 1e6 : 1;
    name_list_make(in->report, in->show.short_names, a, &names);
    stacks_make(in->report, a, &s);
    for (uint32_t i = 0; i < s.count && !out->failed; i++) {
        const struct stack_node *n = &s.nodes[i];
        path[n->depth] = n->frame;
        /* Rounding errors are carried over, so that the counts add up to the whole. */
        exact += n->self * scale;
        double count = floor(exact - said + 0.5);
        if (count < 1) {
            continue;
        }
        said += count;
        const char *mark = stacks_mark(&s);
        buffer_add_text(out, mark ? mark : "");
        for (uint32_t d = 0; d <= n->depth; d++) {
            buffer_add_text(out, d > 0 || mark ? ";" : "");
            /* ';' separates frames. Names have no line ends, and the count follows the last blank. */
            for (const char *c = stacks_frame_name(&names, in->report, path[d], a); *c != '\0'; c++) {
                buffer_add_char(out, *c == ';' ? ':' : *c);
            }
        }
        buffer_add_char(out, ' ');
        buffer_add_u64(out, (uint64_t)count, 0);
        buffer_add_char(out, '\n');
    }
    return PROFD_OK;
}

/* format=speedscope: the file format of www.speedscope.app, one profile of type "sampled" over stacks. */

/* Frames are numbered in order of first use. */
struct frame_numbers {
    uint32_t *functions, *cycles, cut; /* number + 1; 0: none yet */
    uint32_t count;
};

static uint32_t *frame_find(struct frame_numbers *f, uint32_t frame)
{
    return frame == STACKS_CUT    ? &f->cut
           : frame & REPORT_CYCLE ? &f->cycles[frame & ~REPORT_CYCLE]
                                  : &f->functions[frame];
}

enum profd_status speedscope_render(const struct render_input *in, struct arena *a, struct buffer *out,
                                    struct profd_error *e)
{
    (void)e;
    const struct report *r = in->report;
    struct name_list names;
    struct stack_tree s;
    uint32_t path[STACKS_DEPTH + 2];
    double total = 0;
    struct frame_numbers f = {.functions = ARENA_ARRAY(a, (size_t)r->function_count + 1, uint32_t),
                              .cycles = ARENA_ARRAY(a, (size_t)r->cycle_count + 1, uint32_t)};
    name_list_make(r, in->show.short_names, a, &names);
    stacks_make(r, a, &s);
    JSON_ADD(out,
             "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"profd@" PROFD_VERSION
             "\",\"activeProfileIndex\":0");
    json_add_text(out, "name", in->build_name);
    JSON_ADD(out, ",\"shared\":{\"frames\":[");
    for (uint32_t i = 0; i < s.count; i++) {
        uint32_t frame = s.nodes[i].frame, *number = frame_find(&f, frame);
        if (*number != 0) {
            continue;
        }
        *number = ++f.count;
        json_begin(out, NULL);
        json_add_text(out, "name", stacks_frame_name(&names, r, frame, a));
        bool function = frame != STACKS_CUT && !(frame & REPORT_CYCLE);
        const char *file = function ? r->functions[frame].file : NULL;
        if (file && file[0] != '\0') {
            json_add_text(out, "file", file);
            if (r->functions[frame].line > 0) {
                json_add_count(out, "line", r->functions[frame].line);
            }
        }
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]},\"profiles\":[{\"type\":\"sampled\",\"name\":\"");
    buffer_add_text(out, s.synthetic ? "synthetic: stacks derived from call counts, never observed\"" : "stacks\"");
    json_add_text(out, "unit", r->in_seconds ? "seconds" : "none");

    JSON_ADD(out, ",\"startValue\":0,\"samples\":[");
    for (uint32_t i = 0; i < s.count && !out->failed; i++) {
        const struct stack_node *n = &s.nodes[i];
        path[n->depth] = *frame_find(&f, n->frame) - 1;
        if (!(n->self > 0)) {
            continue;
        }
        json_next(out);
        for (uint32_t d = 0; d <= n->depth; d++) {
            buffer_add_char(out, d == 0 ? '[' : ',');
            buffer_add_u64(out, path[d], 0);
        }
        JSON_ADD(out, "]");
    }
    JSON_ADD(out, "],\"weights\":[");
    for (uint32_t i = 0; i < s.count; i++) {
        if (s.nodes[i].self > 0) {
            json_next(out);
            buffer_add_shortest(out, s.nodes[i].self);
            total += s.nodes[i].self;
        }
    }
    JSON_ADD(out, "]");
    json_add_number(out, "endValue", total);
    JSON_ADD(out, "}]}\n");
    return PROFD_OK;
}
