#include <math.h>
#include <string.h>

#include "proto/message.h"
#include "proto/noun.h"
#include "render/render_internal.h"

/* format=dot: the call graph for Graphviz. Functions with most time, cycles as clusters, edges as wide as their time
 * and labelled with call counts. */

struct dot {
    const struct report *report;
    const struct name_list *names;
    struct buffer *out;
    const char *unit; /* "s", or what else was sampled */
    const char *mark; /* "~" before calls that were sampled */
};

/* Between double quotes; Graphviz reads \n and \l in labels, so that a backslash is doubled. */
static void add_quoted(struct buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            buffer_add_char(out, '\\');
        }
        buffer_add_char(out, *text);
    }
}

#define LABEL_MAX 72 /* characters of a name in a box; the tooltip has it whole */

static size_t bytes_of_characters(const char *text, size_t n)
{
    size_t i = 0;
    for (; text[i] != '\0'; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80 && n-- == 0) {
            break;
        }
    }
    return i;
}

/* A name with its middle left out if it is long: boxes of thousands of points show nothing else. */
static void add_label(struct buffer *out, const char *text)
{
    size_t length = 0;
    char head[4 * LABEL_MAX];
    for (const char *p = text; *p != '\0'; p++) {
        length += ((unsigned char)*p & 0xc0) != 0x80;
    }
    if (length <= LABEL_MAX) {
        add_quoted(out, text);
        return;
    }
    size_t n = bytes_of_characters(text, LABEL_MAX / 2);
    n = n < sizeof head ? n : sizeof head - 1;
    memcpy(head, text, n);
    head[n] = '\0';
    add_quoted(out, head);
    buffer_add_text(out, "…");
    add_quoted(out, text + bytes_of_characters(text, length - (LABEL_MAX - LABEL_MAX / 2 - 1)));
}

static void add_node(const struct dot *d, uint32_t position)
{
    const struct report_function *f = &d->report->functions[position];
    double weight = d->report->total > 0 ? (f->self + f->children) / d->report->total : 0;
    /* From white to a warm red by share of the time: readable in grey, too. */
    unsigned fade = 255 - (unsigned)(150 * (weight < 1 ? weight : 1));
    buffer_add_format(d->out, "  f%u [tooltip=\"", position);
    add_quoted(d->out, d->names->text[position]);
    buffer_add_text(d->out, "\", label=\"");
    add_label(d->out, d->names->text[position]);
    buffer_add_text(d->out, "\\n");
    amount_add(d->out, f->percent, 0);
    buffer_add_text(d->out, "% (self ");
    amount_add(d->out, f->self, 0);
    buffer_add_char(d->out, ' ');
    add_quoted(d->out, d->unit);
    buffer_add_format(d->out, ")\\n%s%llu %s\", fillcolor=\"#ff%02x%02x\", fontsize=%u];\n", d->mark,
                      (unsigned long long)(f->calls + f->self_calls),
                      noun_for(f->calls + f->self_calls, "call", "calls"), fade, fade,
                      10 + (unsigned)(10 * sqrt(weight)));
}

enum profd_status dot_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    const struct report *r = in->report;
    struct selection s;
    struct name_list names;
    bool *shown;
    name_list_make(r, in->show.short_names, a, &names);
    selection_make_picture(in, a, &s, &shown);
    const char *unit = r->in_seconds ? "s" : name_make_safe(a, r->dimension);
    struct dot d = {r, &names, out, unit, (in->provenance->inexact & INEXACT_SAMPLED) != 0 ? "~" : ""};
    buffer_add_text(out, "digraph \"");
    const char *title = name_make_safe(a, in->build_name ? in->build_name : "");
    add_quoted(out, title);
    buffer_add_format(out, "\" {\n  // %u %s not shown, ", s.hidden, noun_for(s.hidden, "function", "functions"));
    amount_add(out, s.hidden_seconds, 0);
    buffer_add_format(out, " %s\n", d.unit);
    if (d.mark[0] != '\0') {
        buffer_add_text(out, "  // ~: calls were sampled, at least in part\n");
    }
    buffer_add_text(out, "  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\"];\n"
                         "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (uint32_t i = 0; i < s.entry_count && !out->failed; i++) {
        if (!(s.entries[i] & REPORT_CYCLE)) {
            add_node(&d, s.entries[i]);
        }
    }

    /* The percentage of a cycle is that of all members, so the picture says if some are not shown. */
    for (uint32_t i = 0; i < r->cycle_count && !out->failed; i++) {
        const struct report_cycle *c = &r->cycles[i];
        uint32_t members = 0;
        for (uint32_t m = 0; m < c->member_count; m++) {
            members += shown[c->members[m].other];
        }
        if (members == 0) {
            continue;
        }
        buffer_add_format(out, "  subgraph cluster_%u { label=\"cycle %u: ", c->number, c->number);
        amount_add(out, c->percent, 0);
        buffer_add_char(out, '%');
        if (members < c->member_count) {
            buffer_add_format(out, ", %u of %u functions shown", members, c->member_count);
        }
        buffer_add_text(out, "\"; style=\"rounded,dashed\"; ");
        for (uint32_t m = 0; m < c->member_count; m++) {
            if (shown[c->members[m].other]) {
                buffer_add_format(out, "f%u; ", c->members[m].other);
            }
        }
        buffer_add_text(out, "}\n");
    }

    for (uint32_t i = 0; i < r->function_count && !out->failed; i++) {
        for (uint32_t k = 0; shown[i] && k < r->functions[i].callee_count; k++) {
            const struct report_arc *arc = &r->functions[i].callees[k];
            const double seconds = arc->self + arc->children, share = r->total > 0 ? seconds / r->total : 0;
            if (!shown[arc->other]) {
                continue;
            }
            buffer_add_format(out, "  f%u -> f%u [label=\"%s%llu\", penwidth=%.2f, tooltip=\"%.6g ", i, arc->other,
                              d.mark, (unsigned long long)arc->calls, 1 + 6 * share, seconds);
            add_quoted(out, d.unit);
            buffer_add_format(out, "\"%s];\n",
                              arc->calls == 0 ? ", style=dotted"
                              : arc->inside   ? ", style=dashed"
                                              : "");
        }
    }
    buffer_add_text(out, "}\n");
    return PROFD_OK;
}
