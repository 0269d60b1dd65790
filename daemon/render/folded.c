#include <math.h>

#include "render/render_internal.h"

/* format=folded: one stack a line, root first, with its own time in microseconds, or what else was sampled
 * (Brendan Gregg's flamegraph.pl and everything that reads its input). Where stacks are derived, the
 * first frame says that they are synthetic: the format has no comments. */

/* Names may hold neither ';' nor a line's end, and the count follows the last space. */
static void add_frame(struct buffer *out, const char *name)
{
    for (; *name != '\0'; name++) {
        buffer_add_char(out, *name == ';' ? ':' : *name);
    }
}

enum profd_status folded_render(const struct render_input *in, struct arena *a, struct buffer *out,
                                struct profd_error *e)
{
    (void)e;
    struct name_list names;
    struct stacks s;
    uint32_t path[STACKS_DEPTH + 2];
    double exact = 0, said = 0, scale = in->report->in_seconds ? 1e6 : 1;
    name_list_make(in->report, in->show.short_names, a, &names);
    stacks_make(in->report, a, &s);
    for (uint32_t i = 0; i < s.count && !out->failed; i++) {
        const struct stack_node *n = &s.nodes[i];
        path[n->depth] = n->frame;
        /* Rounding errors are carried over, so that the whole comes out right. */
        exact += n->self * scale;
        double count = floor(exact - said + 0.5);
        if (count < 1) {
            continue;
        }
        said += count;
        const char *mark = stacks_mark(&s);
        buffer_add_text(out, mark ? mark : "");
        for (uint32_t d = 0; d <= n->depth; d++) {
            const char *name = stacks_frame_name(&names, in->report, path[d], a);
            buffer_add_text(out, d > 0 || mark ? ";" : "");
            add_frame(out, name);
        }
        buffer_add_char(out, ' ');
        buffer_add_u64(out, (uint64_t)count, 0);
        buffer_add_char(out, '\n');
    }
    return PROFD_OK;
}
