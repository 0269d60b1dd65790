/* The answer of a comparison in words: one sentence for the whole, and a few words for each row. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/diff.h"
#include "proto/noun.h"
#include "render/render_internal.h"

#define FACTOR_LEAST 1.5 /* from which a change is a factor, and no percentage */

/* A share changes, too, because the time of others did. The sentence names one only if the function's own time for each
 * process moved by this part of the time of a process, and by this many standard errors of the latter. */
#define EFFECT_LEAST 0.01
#define ERRORS 2.0

#define CLAUSES_MOST 10u /* of each side: of three kinds of functions, and of other code; and of both directions */

/* What less and more of a metric are called. */
static const char *const DIRECTIONS[DIFF_METRIC_COUNT][2] = {
    [DIFF_PROCESS_TIME] = {"less", "more"},
    [DIFF_PROCESS_CALLS] = {"less", "more"},
    [DIFF_SELF] = {"smaller share", "larger share"},
    [DIFF_TOTAL] = {"smaller share", "larger share"},
    [DIFF_TIME] = {"faster", "slower"},
    [DIFF_CALLS] = {"called less often", "called more often"},
    [DIFF_PARENT] = {"called less often", "called more often"},
};

static bool is_share(enum diff_metric metric)
{
    return metric == DIFF_SELF || metric == DIFF_TOTAL;
}

/* Why a row is on one side only. */
enum alone { ALONE_NEW, ALONE_IDLE, ALONE_INLINED, ALONE_KINDS };
static enum alone find_alone(const struct render_diff *in, const struct diff_row *r)
{
    const char *const *programs = in->request->programs; /* one build has no new functions */
    return r->idle || strcmp(programs[0], programs[1]) == 0 ? ALONE_IDLE : r->inlined ? ALONE_INLINED : ALONE_NEW;
}

const char *diff_words(const struct render_diff *in, enum diff_metric metric, const struct diff_item *x)
{
    static const char *const ALONE[ALONE_KINDS + 1][2] = {{"gone", "new"},
                                                          {"not seen in B", "not seen in A"},
                                                          {"inlined in B", "inlined in A"},
                                                          {"no ticks in B", "no ticks in A"}};
    const bool is_new = x->verdict == DIFF_ONLY_B, calls = metric >= DIFF_CALLS;
    const char *word = DIRECTIONS[metric][x->estimate.log > 0];
    switch (x->verdict) {
    case DIFF_CHANGED:
    case DIFF_CONSTANT_CHANGED:
        return word;
    case DIFF_ONLY_A:
    case DIFF_ONLY_B:
        if (x->caller != DIFF_NONE) {
            return is_new ? "newly called" : "no longer called";
        }
        const struct diff_row *r = &in->diff->match.rows[x->row];
        return ALONE[r->count[!is_new] == 0 ? find_alone(in, r) : ALONE_KINDS][is_new];
    case DIFF_UNCERTAIN:
        return x->estimated                                             ? arena_format(in->arena, "probably %s", word)
               : x->few[0] && (!x->few[1] || x->ratio[0] > x->ratio[1]) ? "in too few processes of A"
                                                                        : "in too few processes of B";
    case DIFF_SAME:
        return x->needs == DIFF_NEEDS_NOTHING ? "no change" : "cannot tell yet";
    case DIFF_CONSTANT:
        return "exactly as before";
    default:
        return calls || (x->testable > 0 && x->testable <= 1) ? "in too few processes" : "too few ticks";
    }
}

/* A clause, and the share of the time that it speaks of. */
struct clause {
    double size;
    const char *text;
};

/* The sentence while it is made. */
struct sentence {
    const struct render_diff *in;
    const char *names[2];                /* of the sides */
    struct buffer text;                  /* of a clause, then of the sentence */
    struct clause clauses[CLAUSES_MOST]; /* largest first */
    unsigned count;
    unsigned parts; /* behind what a process needs in all */
};

/* Ends a clause and puts it behind those that are not smaller. */
static void end_clause(struct sentence *s, double size)
{
    unsigned at = s->count++;
    buffer_add(&s->text, "", 1);
    for (; at > 0 && s->clauses[at - 1].size < size; at--) {
        s->clauses[at] = s->clauses[at - 1];
    }
    s->clauses[at] = (struct clause){size, s->text.data};
    buffer_init_arena(&s->text, s->in->arena);
}

static void next_part(struct sentence *s)
{
    buffer_add_text(&s->text, s->parts++ > 0 ? "; " : s->text.size > 0 ? ": " : "");
}

/* "53 %", "6.1 %", "0.25 %". */
static void add_share(struct sentence *s, double share)
{
    const double percent = 100 * share;
    buffer_add_format(&s->text, percent >= 9.95 ? "%.0f %%" : percent >= 0.995 ? "%.1f %%" : "%.2g %%", percent);
}

/* A function's name, shortened if it is one of C++. */
static void add_name(struct sentence *s, uint32_t row)
{
    const struct report_function *f = diff_function(s->in->diff, row);
    const bool cplusplus = f->raw && strncmp(f->raw, "_Z", 2) == 0;
    buffer_add_text(&s->text, name_short_list(&f->name, &cplusplus, 1, s->in->arena)[0]);
}

/* What each process needs in all, if that is known. */
static void add_whole(struct sentence *s, const struct diff_table *t)
{
    if (!t->made || t->count == 0 || !t->items[0].estimated) {
        return;
    }
    const struct diff_item *x = &t->items[0];
    const char *dimension = s->in->diff->sides[0]->dimension,
               *what = strcmp(dimension, "seconds") == 0 ? "CPU time" : dimension,
               *probably = x->verdict == DIFF_UNCERTAIN ? "probably " : "";
    const double ratio = exp(x->estimate.log), percent = 100 * fabs(ratio - 1);
    if (x->verdict == DIFF_SAME || x->verdict == DIFF_CONSTANT) {
        buffer_add_format(&s->text, "A process of %s may use as much %s as one of %s (%+.0f %% to %+.0f %%)",
                          s->names[1], what, s->names[0], 100 * expm1(x->estimate.low), 100 * expm1(x->estimate.high));
    } else if (ratio >= FACTOR_LEAST) {
        buffer_add_format(&s->text, "%s %suses %.*f × the %s of %s for each process", s->names[1], probably,
                          ratio < 9.95, ratio, what, s->names[0]);
    } else {
        buffer_add_format(&s->text, "%s %suses %.*f %% %s %s than %s for each process", s->names[1], probably,
                          percent<9.95, percent, ratio> 1 ? "more" : "less", what, s->names[0]);
    }
}

/* Functions of one side, of one kind: "1 new function, validate_coupon, takes 53 %". */
static void add_alone(struct sentence *s, uint32_t side, enum alone kind)
{
    const struct diff *d = s->in->diff;
    const double seconds = d->sides[side]->seconds[0];
    uint32_t n = 0, first = 0;
    double share = 0;
    for (uint32_t i = 0; i < d->only_count[side]; i++) {
        const uint32_t row = d->only[side][i];
        if (find_alone(s->in, &d->match.rows[row]) == kind) {
            first = n++ == 0 ? row : first;
            share += seconds > 0 ? d->row_self[side][(size_t)row * DIFF_VALUES] / seconds : 0;
        }
    }
    if (n == 0) {
        return;
    }
    const char *is = noun_for(n, "is", "are"), *other = s->names[1 - side];
    buffer_add_format(&s->text, "%" PRIu32 " %s%s", n, kind == ALONE_NEW && side == 1 ? "new " : "",
                      noun_for(n, "function", "functions"));
    if (kind == ALONE_IDLE) {
        buffer_add_format(&s->text, " that %s not seen in %s", noun_for(n, "was", "were"), other);
    } else if (kind == ALONE_INLINED) {
        buffer_add_format(&s->text, " that %s inlined in %s", is, other);
    } else if (side == 0) {
        buffer_add_format(&s->text, " that %s gone", is);
    }
    if (n == 1) {
        buffer_add_text(&s->text, ", ");
        add_name(s, first);
        buffer_add_text(&s->text, share > 0 ? "," : "");
    }
    if (share > 0) {
        buffer_add_text(&s->text, side == 0 ? " took " : noun_for(n, " takes ", " take "));
        add_share(s, share);
    }
    if (share > 0 && n > 1) {
        buffer_add_text(&s->text, ", most of it ");
        add_name(s, first);
    }
    end_clause(s, share >= DIFF_ALONE_LEAST ? 1 + share : share); /* before all changes: as the rows stand */
}

/* The largest class of addresses that only one side has ticks of, enough for a test: "[plt], which was not seen in 1,
 * takes 3.1 %". */
static void add_class(struct sentence *s, const struct diff_table *t, uint32_t side)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_item *x = &t->items[i];
        if (x->verdict == (side == 0 ? DIFF_ONLY_A : DIFF_ONLY_B) && x->caller == DIFF_NONE &&
            report_kind_is_class(diff_function(s->in->diff, x->row)->kind)) {
            add_name(s, x->row);
            buffer_add_format(&s->text, ", which was not seen in %s, %s ", s->names[1 - side],
                              side == 0 ? "took" : "takes");
            add_share(s, x->ratio[side]);
            end_clause(s, x->ratio[side]);
            return;
        }
    }
}

/* Changed items of one direction, the first one by name: "parse has a larger share (29 % → 33 %)". */
static void add_changed(struct sentence *s, enum diff_metric metric, bool up)
{
    const struct diff *d = s->in->diff;
    const struct diff_table *t = &d->tables[metric], *whole = &d->tables[DIFF_PROCESS_TIME];
    const struct diff_side *const *sides = d->sides;
    const bool timed = is_share(metric) && sides[0]->processes[0] > 0 && sides[1]->processes[0] > 0;
    const double least = timed ? EFFECT_LEAST * sides[0]->seconds[0] / sides[0]->processes[0] : 0,
                 error = whole->made && whole->count > 0 ? whole->items[0].estimate.error : 0;
    const struct diff_item *first = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_item *x = &t->items[i];
        const double effect = (x->seconds[1] - x->seconds[0]) * (up ? 1 : -1);
        const bool moved = effect >= least && effect >= ERRORS * error * x->seconds[0];
        if ((x->verdict == DIFF_CHANGED || x->verdict == DIFF_CONSTANT_CHANGED) && (x->estimate.log > 0) == up &&
            (!timed || moved)) {
            first = n++ == 0 ? x : first;
        }
    }
    if (!first) {
        return;
    }
    const char *verb = is_share(metric) ? noun_for(n, "has a", "have a") : noun_for(n, "is", "are");
    if (n > 1) {
        buffer_add_format(&s->text, "%" PRIu32 " functions %s %s, most ", n, verb, DIRECTIONS[metric][up]);
    }
    add_name(s, first->row);
    if (n == 1) {
        buffer_add_format(&s->text, " %s %s", verb, DIRECTIONS[metric][up]);
    }
    buffer_add_text(&s->text, " (");
    if (is_share(metric)) {
        add_share(s, first->ratio[0]);
        buffer_add_text(&s->text, " → ");
        add_share(s, first->ratio[1]);
    } else {
        buffer_add_format(&s->text, "%+.0f %%", 100 * expm1(first->estimate.log));
    }
    buffer_add_text(&s->text, ")");
    end_clause(s, is_share(metric) ? fabs(first->ratio[1] - first->ratio[0])
                                   : fabs(expm1(first->estimate.log)) * first->share);
}

enum diff_metric diff_lead(const struct render_diff *in)
{
    static const enum diff_metric ORDER[] = {DIFF_SELF, DIFF_TIME, DIFF_TOTAL, DIFF_CALLS, DIFF_PARENT};
    for (size_t i = 0; i < sizeof ORDER / sizeof *ORDER; i++) {
        const struct diff_table *t = &in->diff->tables[ORDER[i]];
        if (t->made || (ORDER[i] == DIFF_SELF && t->count > 0)) {
            return ORDER[i];
        }
    }
    return DIFF_SELF;
}

/* What is probable, and, where nothing else was said, that nothing changed or could be compared. */
static void add_rest(struct sentence *s, const struct diff_table *t)
{
    uint32_t probable = 0, open = 0, tested = t->tests + t->counts[DIFF_CONSTANT];
    const uint32_t changed = t->counts[DIFF_CHANGED] + t->counts[DIFF_CONSTANT_CHANGED];
    for (uint32_t i = 0; i < t->count; i++) {
        const struct diff_item *x = &t->items[i];
        probable += x->verdict == DIFF_UNCERTAIN && x->estimated;
        open += x->verdict == DIFF_TOO_FEW || (x->verdict == DIFF_SAME && x->needs != DIFF_NEEDS_NOTHING);
    }
    if (probable > 0) {
        next_part(s);
        buffer_add_format(&s->text, "%" PRIu32 " %s probably changed", probable,
                          noun_for(probable, "function", "functions"));
    }
    if (s->parts > 0) {
        return;
    }
    next_part(s);
    if (changed > 0) {
        buffer_add_format(&s->text, "%" PRIu32 " %s another share, but about the same time", changed,
                          noun_for(changed, "function has", "functions have"));
    } else if (t->why_not) {
        buffer_add_format(&s->text, "functions cannot be compared: %s", t->why_not);
    } else {
        buffer_add_text(&s->text, tested > 0 ? "no function changed measurably" : "no function can be tested yet");
    }
    if (open > 0 && tested > 0) {
        buffer_add_format(&s->text, "; %" PRIu32 " cannot be judged yet", open);
    }
}

const char *diff_sentence(const struct render_diff *in)
{
    struct sentence s = {.in = in, .names = {"A", "B"}};
    const enum diff_metric lead = diff_lead(in);
    if (in->versions[0] && in->versions[1] && strcmp(in->versions[0], in->versions[1]) != 0) {
        memcpy(s.names, in->versions, sizeof s.names);
    }
    buffer_init_arena(&s.text, in->arena);
    for (unsigned kind = 0; kind < ALONE_KINDS; kind++) {
        add_alone(&s, 1, (enum alone)kind);
        add_alone(&s, 0, (enum alone)kind);
    }
    for (uint32_t side = 0; side < 2; side++) {
        add_class(&s, &in->diff->tables[lead], side);
    }
    add_changed(&s, lead, true);
    add_changed(&s, lead, false);
    add_whole(&s, &in->diff->tables[DIFF_PROCESS_TIME]);
    for (unsigned i = 0; i < s.count; i++) {
        next_part(&s);
        buffer_add_text(&s.text, s.clauses[i].text);
    }
    add_rest(&s, &in->diff->tables[lead]);
    buffer_add(&s.text, ".", sizeof ".");
    return s.text.data;
}
