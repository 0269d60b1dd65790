#include "render/render_internal.h"

/* format=speedscope: the file format of www.speedscope.app, one profile of type "sampled" over stacks. */

/* Frames get numbers in order of first use. */
struct frame_numbers {
    uint32_t *functions, *cycles, cut; /* number + 1 */
    uint32_t count;
};

static uint32_t *frame_find(struct frame_numbers *f, uint32_t frame)
{
    return frame == STACKS_CUT    ? &f->cut
           : frame & REPORT_CYCLE ? &f->cycles[frame & ~REPORT_CYCLE]
                                  : &f->functions[frame];
}

static void add_frames(struct buffer *out, const struct render_input *in, const struct stacks *s,
                       const struct name_list *names, struct frame_numbers *f, struct arena *a)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t frame = s->nodes[i].frame, *number = frame_find(f, frame);
        if (*number != 0) {
            continue;
        }
        *number = ++f->count;
        json_begin(out, NULL);
        json_add_text(out, "name", stacks_frame_name(names, in->report, frame, a));
        bool function = frame != STACKS_CUT && !(frame & REPORT_CYCLE);
        const char *file = function ? in->report->functions[frame].file : NULL;
        if (file && file[0] != '\0') {
            json_add_text(out, "file", file);
            if (in->report->functions[frame].line > 0) {
                json_add_count(out, "line", in->report->functions[frame].line);
            }
        }
        JSON_ADD(out, "}");
    }
}

static void add_samples(struct buffer *out, const struct stacks *s, struct frame_numbers *f)
{
    uint32_t path[STACKS_DEPTH + 2];
    for (uint32_t i = 0; i < s->count && !out->failed; i++) {
        const struct stack_node *n = &s->nodes[i];
        path[n->depth] = *frame_find(f, n->frame) - 1;
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
}

static void add_weights(struct buffer *out, const struct stacks *s, double *total)
{
    *total = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->nodes[i].self > 0) {
            json_next(out);
            buffer_add_shortest(out, s->nodes[i].self);
            *total += s->nodes[i].self;
        }
    }
}

enum profd_status speedscope_render(const struct render_input *in, struct arena *a, struct buffer *out,
                                    struct profd_error *e)
{
    (void)e;
    struct name_list names;
    struct stacks s;
    double total;
    struct frame_numbers f = {.functions = ARENA_ARRAY(a, (size_t)in->report->function_count + 1, uint32_t),
                              .cycles = ARENA_ARRAY(a, (size_t)in->report->cycle_count + 1, uint32_t)};
    name_list_make(in->report, in->show.short_names, a, &names);
    stacks_make(in->report, a, &s);
    JSON_ADD(out,
             "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"profd@" PROFD_VERSION
             "\",\"activeProfileIndex\":0");
    json_add_text(out, "name", in->build_name);
    JSON_ADD(out, ",\"shared\":{\"frames\":[");
    add_frames(out, in, &s, &names, &f, a);
    JSON_ADD(out, "]},\"profiles\":[{\"type\":\"sampled\",\"name\":\"");
    buffer_add_text(out, s.synthetic ? "synthetic: stacks derived from call counts, never observed\"" : "stacks\"");
    json_add_text(out, "unit", in->report->in_seconds ? "seconds" : "none");
    JSON_ADD(out, ",\"startValue\":0,\"samples\":[");
    add_samples(out, &s, &f);
    JSON_ADD(out, "],\"weights\":[");
    add_weights(out, &s, &total);
    JSON_ADD(out, "]");
    json_add_number(out, "endValue", total);
    JSON_ADD(out, "}]}\n");
    return PROFD_OK;
}
