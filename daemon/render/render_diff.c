#include "render/render_diff.h"

#include <math.h>
#include <string.h>

#include "render/json_write.h"

static void add_side(struct buffer *out, const struct render_diff *in, uint32_t s)
{
    const struct render_input *side = &in->sides[s];
    const struct diff_side *made = in->diff->sides[s];
    const struct provenance *p = side->provenance;
    JSON_ADD(out, "{\"build_id\":");
    render_json_string(out, side->build_id);
    json_add_text(out, "name", side->build_name);
    json_add_text(out, "scope", side->scope);
    json_add_text(out, "match", side->match);
    json_add_window(out, side->used_since, side->used_until);
    json_add_time(out, "first", p->first);
    json_add_time(out, "last", p->last);
    json_add_count(out, "uploads", p->uploads);
    json_add_count(out, "processes_started", p->processes);
    json_add_count(out, "hosts", p->hosts);
    json_add_count(out, "groups", diff_stat_count(made->groups));
    json_add_count(out, "ticks", made->ticks_total);
    json_add_number(out, "seconds", made->seconds[0]);
    json_add_count(out, "functions", made->function_count);
    json_add_exact(out, p->inexact);
    JSON_ADD(out, "}");
}

static double row_share(const struct diff *d, uint32_t s, uint32_t row, const double *times)
{
    double seconds = d->sides[s]->seconds[0];
    return seconds > 0 ? times[(size_t)row * DIFF_VALUES] / seconds : 0;
}

/* Where a function is on a side: the first of its clones. Null if the side does not have it. */
static void add_place(struct buffer *out, const struct diff *d, uint32_t row, uint32_t s)
{
    static const char *const BUILDS[] = {"build_id_a", "build_id_b"}, *const ADDRESSES[] = {"address_a", "address_b"};
    const struct diff_row *r = &d->match.rows[row];
    if (r->count[s] == 0) {
        json_add_text(out, BUILDS[s], NULL);
        json_add_text(out, ADDRESSES[s], NULL);
        return;
    }
    const struct report_function *f = &d->sides[s]->functions[d->match.member[s][r->first[s]]];
    json_add_text(out, BUILDS[s], d->sides[s]->builds[f->build]);
    json_add_address(out, ADDRESSES[s], f->address);
}

/* Begins the object of a function of the comparison, or of all together. */
static void add_function(struct buffer *out, const struct diff *d, uint32_t row)
{
    const struct report_function *f = diff_function(d, row);
    if (f == NULL) {
        static const char *const NONE[] = {"file",      "object",     "clones_a",  "clones_b",    "build_id_a",
                                           "address_a", "build_id_b", "address_b", "renamed_from"};
        JSON_ADD(out, "{\"function\":null");
        for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
            json_add_text(out, NONE[i], NULL);
        }
        return;
    }
    const struct diff_row *r = &d->match.rows[row];
    const struct diff_side *side = d->sides[r->count[1] > 0 ? 1 : 0];
    JSON_ADD(out, "{\"function\":");
    render_json_string(out, f->name);
    json_add_text(out, "file", f->file);
    json_add_text(out, "object", side->build_names[f->build]);
    json_add_count(out, "clones_a", r->count[0]);
    json_add_count(out, "clones_b", r->count[1]);
    add_place(out, d, row, 0);
    add_place(out, d, row, 1);
    json_add_text(out, "renamed_from",
                  r->renamed ? d->sides[0]->functions[d->match.member[0][r->first[0]]].name : NULL);
}

static void add_estimate(struct buffer *out, const struct diff_estimate *x, bool known)
{
    json_add_known(out, "change", expm1(x->log), known);
    json_add_known(out, "low", expm1(x->low), known);
    json_add_known(out, "high", expm1(x->high), known);
    json_add_known(out, "p", x->p, known && x->error > 0);
}

/* Which sides have inlined copies, of which no call is counted: it matters where numbers of calls changed, and on the
 * side that lacks a function. */
static void add_inlined(struct buffer *out, const struct render_diff *in, enum diff_metric metric,
                        const struct diff_item *x)
{
    static const char *const NAMES[] = {"inlined_a", "inlined_b"};
    const struct diff *d = in->diff;
    const bool calls = metric >= DIFF_TIME && x->verdict <= DIFF_ONLY_B && x->row < d->match.row_count;
    for (uint32_t s = 0; s < 2; s++) {
        if (calls) {
            json_add_flag(out, NAMES[s], diff_match_has_inlined(&d->match, d->sides, in->request->programs, x->row, s));
        } else if (x->row < d->match.row_count && d->match.rows[x->row].count[s] == 0) {
            json_add_flag(out, NAMES[s], d->match.rows[x->row].inlined);
        } else {
            json_add_text(out, NAMES[s], NULL);
        }
    }
}

/* Does a side have what the row speaks of? */
static bool is_there(const struct diff *d, const struct diff_item *x, uint32_t s)
{
    if (x->caller != DIFF_NONE || x->row == d->match.row_count) {
        return x->verdict != (s == 0 ? DIFF_ONLY_B : DIFF_ONLY_A);
    }
    return d->match.rows[x->row].count[s] > 0 || d->match.rows[x->row].idle;
}

/* An increase to more than twice is no sentence that helps. */
#define VISIBLE_MOST 1.0

static void add_item(struct buffer *out, const struct render_diff *in, enum diff_metric metric,
                     const struct diff_item *x)
{
    const struct diff *d = in->diff;
    const bool tested = x->estimated && x->estimate.error > 0;
    add_function(out, d, x->row);
    json_add_text(out, "caller", x->caller == DIFF_NONE ? NULL : diff_function(d, x->caller)->name);
    json_add_text(out, "verdict", diff_verdict_name(x->verdict));
    json_add_known(out, "a", x->ratio[0], is_there(d, x, 0));
    json_add_known(out, "b", x->ratio[1], is_there(d, x, 1));
    add_estimate(out, &x->estimate, x->estimated);
    json_add_known(out, "q", x->q, tested);
    const double visible = expm1(x->estimate.visible), needed = tested ? x->needed : x->testable;
    json_add_known(out, "visible", visible, tested && visible <= VISIBLE_MOST);
    json_add_text(out, "needs", diff_needs_name(x->needs));
    json_add_known(out, "data_needed", needed,
                   x->needs == DIFF_NEEDS_DATA || (tested && x->needs == DIFF_NEEDS_NOTHING));
    json_add_number(out, "ticks_a", x->ticks[0]);
    json_add_number(out, "ticks_b", x->ticks[1]);
    json_add_number(out, "share", x->share);
    add_inlined(out, in, metric, x);
    JSON_ADD(out, "}");
}

static void add_table(struct buffer *out, const struct render_diff *in, enum diff_metric metric)
{
    const struct diff_table *t = &in->diff->tables[metric];
    JSON_ADD(out, "{\"metric\":");
    render_json_string(out, diff_metric_name(metric));
    json_add_text(out, "not_computed", t->made ? NULL : t->why_not);
    JSON_ADD(out, ",\"counts\":{\"rows\":");
    buffer_add_u64(out, t->count, 0);
    for (unsigned i = 0; i < DIFF_VERDICTS; i++) {
        json_add_count(out, diff_verdict_name((enum diff_verdict)i), t->counts[i]);
    }
    JSON_ADD(out, "}");
    json_add_count(out, "tests", t->tests);
    if (t->common.functions > 0) {
        JSON_ADD(out, ",\"common\":{\"functions\":");
        buffer_add_u64(out, t->common.functions, 0);
        add_estimate(out, &t->common.estimate, true);
        JSON_ADD(out, "}");
    } else {
        json_add_text(out, "common", NULL);
    }
    json_add_known(out, "visible", expm1(t->visible), t->visible > 0 && expm1(t->visible) <= VISIBLE_MOST);
    JSON_ADD(out, ",\"rows\":[");
    for (uint32_t i = 0; i < t->count && i < in->limit; i++) {
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_item(out, in, metric, &t->items[i]);
    }
    JSON_ADD(out, "]}");
}

static void add_only(struct buffer *out, const struct render_diff *in, uint32_t s)
{
    const struct diff *d = in->diff;
    buffer_add_format(out, ",\"only_in_%c\":{\"count\":%u,\"rows\":[", s == 0 ? 'a' : 'b', d->only_count[s]);
    for (uint32_t i = 0; i < d->only_count[s] && i < in->limit; i++) {
        uint32_t row = d->only[s][i];
        buffer_add_text(out, i > 0 ? ",\n" : "\n");
        add_function(out, d, row);
        json_add_number(out, "self_share", row_share(d, s, row, d->row_self[s]));
        json_add_number(out, "total_share", row_share(d, s, row, d->row_total[s]));
        json_add_number(out, "calls", d->row_calls[s][(size_t)row * DIFF_VALUES]);
        json_add_flag(out, "idle", d->match.rows[row].idle);
        json_add_flag(out, "inlined", d->match.rows[row].inlined);
        JSON_ADD(out, "}");
    }
    JSON_ADD(out, "]}");
}

static void add_judgement(struct buffer *out, const struct render_diff *in)
{
    static const char *const WORDS[] = {"below", "above", "cannot-tell"};
    const struct diff_request *r = in->request;
    if (!r->judge) {
        json_add_text(out, "judgement", NULL);
        return;
    }
    JSON_ADD(out, ",\"judgement\":{\"verdict\":");
    render_json_string(out, WORDS[in->diff->judgement]);
    json_add_text(out, "metric", diff_metric_name(r->judge_metric));
    json_add_number(out, "threshold", r->threshold);
    json_add_count(out, "above", in->diff->above);
    json_add_count(out, "cannot_tell", in->diff->unknown);
    JSON_ADD(out, "}");
}

static void add_missing(struct buffer *out, const struct render_diff *in)
{
    bool any = false;
    JSON_ADD(out, ",\"watch_missing\":[");
    for (uint32_t i = 0; i < in->request->watch_count; i++) {
        if (!in->diff->watched[i]) {
            buffer_add_text(out, any ? "," : "");
            render_json_string(out, in->request->watch[i]);
            any = true;
        }
    }
    JSON_ADD(out, "]");
}

void render_diff(const struct render_diff *in, struct buffer *out)
{
    bool any = false;
    JSON_ADD(out, "{\"a\":");
    add_side(out, in, 0);
    JSON_ADD(out, ",\"b\":");
    add_side(out, in, 1);
    json_add_text(out, "dimension", in->diff->sides[0]->dimension);
    json_add_text(out, "time", in->diff->measured[0] && in->diff->measured[1] ? "measured" : "calls");
    json_add_flag(out, "paired", in->request->paired);
    json_add_number(out, "fdr", in->request->fdr);
    json_add_number(out, "confidence", in->request->confidence > 0 ? in->request->confidence : DIFF_CONFIDENCE);
    json_add_number(out, "planned", in->request->threshold);
    add_judgement(out, in);
    add_missing(out, in);
    JSON_ADD(out, ",\"metrics\":[");
    for (unsigned i = 0; i < DIFF_METRIC_COUNT; i++) {
        if (in->request->metrics[i]) {
            buffer_add_text(out, any ? ",\n" : "\n");
            add_table(out, in, (enum diff_metric)i);
            any = true;
        }
    }
    JSON_ADD(out, "]");
    add_only(out, in, 0);
    add_only(out, in, 1);
    JSON_ADD(out, "}\n");
}
