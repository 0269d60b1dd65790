/* Functions in columns: format=csv, and view=flat of format=json. */
#include <string.h>

#include "proto/message.h"
#include "proto/sum.h"
#include "render/render_internal.h"

struct column {
    const char *key;
    enum {
        NAME,
        SHORT_NAME,
        RAW_NAME,
        BUILD_NUMBER,
        BUILD_ID,
        BUILD_NAME,
        SOURCE_FILE,
        ADDRESS,
        CALLER_CALLS,
        ALL_CALLS,
        CALLS_SAMPLED,
        TOTAL,
        NUMBER,
        BOUND,
        COUNT,
        SMALL,
        MEASURED,
        SAMPLES,
        DIFFERS
    } kind;
    size_t at; /* of the member that NUMBER, BOUND, COUNT, SMALL and MEASURED show */
    enum { ALWAYS, SHORTENED, ESTIMATED, WITH_STACKS } condition; /* the column is there only in such a report */
};

#define F(member) offsetof(struct report_function, member)
#define M(member) offsetof(struct report_measured, member)
#define MEASURED_COLUMNS                                                                                               \
    {"measured_self", MEASURED, M(self), WITH_STACKS}, {"measured_total", MEASURED, M(total), WITH_STACKS},            \
        {"measured_low", MEASURED, M(low), WITH_STACKS}, {"measured_high", MEASURED, M(high), WITH_STACKS},            \
        {"measured_samples", SAMPLES, 0, WITH_STACKS},                                                                 \
    {                                                                                                                  \
        "measured_differs", DIFFERS, 0, WITH_STACKS                                                                    \
    }
static const struct column JSON_COLUMNS[] = {
    {"index", SMALL, F(index), ALWAYS},
    {"name", NAME, 0, ALWAYS},
    {"build", BUILD_NUMBER, 0, ALWAYS},
    {"address", ADDRESS, 0, ALWAYS},
    {"short_name", SHORT_NAME, 0, SHORTENED},
    {"self_seconds", NUMBER, F(self), ALWAYS},
    {"children_seconds", NUMBER, F(children), ALWAYS},
    {"total_seconds", TOTAL, 0, ALWAYS},
    {"percent", NUMBER, F(percent), ALWAYS},
    {"self_least", BOUND, F(self_least), ESTIMATED},
    {"self_most", BOUND, F(self_most), ESTIMATED},
    MEASURED_COLUMNS,
    {"calls", COUNT, F(calls), ALWAYS},
    {"self_calls", COUNT, F(self_calls), ALWAYS},
    {"caller_calls", CALLER_CALLS, 0, ALWAYS},
    {"cycle", SMALL, F(cycle), ALWAYS},
};

static const struct column CSV_COLUMNS[] = {
    {"index", SMALL, F(index), ALWAYS},
    {"name", NAME, 0, ALWAYS},
    {"raw_name", RAW_NAME, 0, ALWAYS},
    {"build_id", BUILD_ID, 0, ALWAYS},
    {"build", BUILD_NAME, 0, ALWAYS},
    {"address", ADDRESS, 0, ALWAYS},
    {"file", SOURCE_FILE, 0, ALWAYS},
    {"self_seconds", NUMBER, F(self), ALWAYS},
    {"children_seconds", NUMBER, F(children), ALWAYS},
    {"total_seconds", TOTAL, 0, ALWAYS},
    {"percent", NUMBER, F(percent), ALWAYS},
    {"calls", COUNT, F(calls), ALWAYS},
    {"self_calls", COUNT, F(self_calls), ALWAYS},
    {"calls_outside", COUNT, F(calls_outside), ALWAYS},
    {"calls_inside", COUNT, F(calls_inside), ALWAYS},
    {"cycle", SMALL, F(cycle), ALWAYS},
    {"all_calls", ALL_CALLS, 0, ALWAYS},
    {"self_least", BOUND, F(self_least), ALWAYS},
    {"self_most", BOUND, F(self_most), ALWAYS},
    {"calls_sampled", CALLS_SAMPLED, 0, ALWAYS},
    MEASURED_COLUMNS,
};
#undef F
#undef M
#define COLUMN_COUNT(columns) (sizeof(columns) / sizeof *(columns))

struct cell {
    enum { CELL_NONE, CELL_TEXT, CELL_COUNT, CELL_NUMBER, CELL_ADDRESS, CELL_FLAG } is;
    const char *text;
    uint64_t count;
    double number;
};

/* The value of a column for the function at a position. shorts: short names by position. */
static struct cell find_cell(const struct render_input *in, const char *const *shorts, const struct column *c,
                             uint32_t position)
{
    const struct report *r = in->report;
    const struct report_function *f = &r->functions[position];
    const void *member = (const char *)f + c->at, *measured = f->measured ? (const char *)f->measured + c->at : NULL;
    uint64_t calls = 0;
    switch (c->kind) {
    case NAME:
        return (struct cell){CELL_TEXT, .text = f->name};
    case SHORT_NAME: /* none where the name is short already */
        return (struct cell){shorts[position] == f->name ? CELL_NONE : CELL_TEXT, .text = shorts[position]};
    case RAW_NAME:
        return (struct cell){CELL_TEXT, .text = f->raw};
    case BUILD_NUMBER:
        return (struct cell){f->build < r->build_count ? CELL_COUNT : CELL_NONE, .count = f->build};
    case BUILD_ID:
        return (struct cell){CELL_TEXT, .text = json_find_build(r, f->build)};
    case BUILD_NAME:
        return (struct cell){CELL_TEXT, .text = f->build < r->build_count ? r->build_names[f->build] : ""};
    case SOURCE_FILE:
        return (struct cell){CELL_TEXT, .text = f->file ? f->file : ""};
    case ADDRESS:
        return (struct cell){CELL_ADDRESS, .count = f->address};
    case CALLER_CALLS: /* of all callers, each once: the divisor for the calls in one call of a caller */
        for (uint32_t i = 0; i < f->caller_count; i++) {
            if (f->callers[i].other != position && f->callers[i].calls > 0) {
                sum_saturate(&calls, r->functions[f->callers[i].other].calls);
                sum_saturate(&calls, r->functions[f->callers[i].other].self_calls);
            }
        }
        return (struct cell){CELL_COUNT, .count = calls};
    case ALL_CALLS: /* no overflow: both are at most 2^63-1 */
        return (struct cell){CELL_COUNT, .count = f->calls + f->self_calls};
    case CALLS_SAMPLED:
        return (struct cell){CELL_COUNT, .count = (in->provenance->inexact & INEXACT_SAMPLED) != 0};
    case TOTAL:
        return (struct cell){CELL_NUMBER, .number = f->self + f->children};
    case BOUND:
        return (struct cell){f->self_estimated ? CELL_NUMBER : CELL_NONE, .number = *(const double *)member};
    case NUMBER:
        return (struct cell){CELL_NUMBER, .number = *(const double *)member};
    case COUNT:
        return (struct cell){CELL_COUNT, .count = *(const uint64_t *)member};
    case SMALL:
        return (struct cell){CELL_COUNT, .count = *(const uint32_t *)member};
    case MEASURED:
        return (struct cell){measured ? CELL_NUMBER : CELL_NONE, .number = measured ? *(const double *)measured : 0};
    case SAMPLES:
        return (struct cell){measured ? CELL_COUNT : CELL_NONE, .count = measured ? f->measured->samples : 0};
    case DIFFERS:
        return (struct cell){measured ? CELL_FLAG : CELL_NONE, .count = measured ? f->measured->differs : 0};
    }
    return (struct cell){.is = CELL_NONE};
}

void json_add_columns(struct buffer *out, const struct render_input *in, const struct selection *s, struct arena *a)
{
    const struct report *r = in->report;
    const char *const *shorts = in->show.short_names ? name_short_functions(r, a) : NULL;
    const bool has[] = {[ALWAYS] = true, [SHORTENED] = shorts, [ESTIMATED] = r->estimated, [WITH_STACKS] = r->stacks};
    json_begin(out, "columns");
    for (size_t k = 0; k < COLUMN_COUNT(JSON_COLUMNS); k++) {
        if (!has[JSON_COLUMNS[k].condition]) {
            continue;
        }
        json_list(out, JSON_COLUMNS[k].key);
        for (uint32_t i = 0; i < s->entry_count && !out->failed; i++) {
            if (s->entries[i] & REPORT_CYCLE) {
                continue;
            }
            const struct cell cell = find_cell(in, shorts, &JSON_COLUMNS[k], s->entries[i]);
            /* A column has one value for each row, so that counts beyond 2^53 are strings alone. */
            const char *quote = cell.is == CELL_COUNT && cell.count > UINT64_C(1) << 53 ? "\"" : "";
            json_next(out);
            switch (cell.is) {
            case CELL_NONE:
                JSON_ADD(out, "null");
                break;
            case CELL_TEXT:
                render_json_string(out, cell.text);
                break;
            case CELL_COUNT:
                buffer_add_text(out, quote);
                buffer_add_u64(out, cell.count, 0);
                buffer_add_text(out, quote);
                break;
            case CELL_NUMBER:
                buffer_add_shortest(out, cell.number);
                break;
            case CELL_ADDRESS:
                buffer_add_format(out, "\"0x%llx\"", (unsigned long long)cell.count);
                break;
            case CELL_FLAG:
                buffer_add_text(out, cell.count ? "true" : "false");
                break;
            }
        }
        JSON_ADD(out, "]");
    }
    JSON_ADD(out, "}");
}

/* A text as a field of RFC 4180. Spreadsheets execute a cell that begins with = + - or @, or their full-width forms, as
 * a formula, in quotes too. Such a text, and one that begins with ', gets a leading '; a reader that removes one ' has
 * the text. */
static void add_field(struct buffer *out, const char *text)
{
    static const char *const MARKED[] = {
        "=", "+", "-", "@", "'", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
    const char *mark = "";
    for (size_t i = 0; i < sizeof MARKED / sizeof *MARKED; i++) {
        mark = strncmp(text, MARKED[i], strlen(MARKED[i])) == 0 ? "'" : mark;
    }
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

enum profd_status csv_render(const struct render_input *in, struct arena *a, struct buffer *out, struct profd_error *e)
{
    (void)e;
    struct selection s;
    size_t columns = 0;
    selection_make(in, a, &s);
    /* Columns with a condition are the last. */
    for (; columns < COLUMN_COUNT(CSV_COLUMNS) && (CSV_COLUMNS[columns].condition == ALWAYS || in->report->stacks);
         columns++) {
        buffer_add_text(out, columns > 0 ? "," : "");
        buffer_add_text(out, CSV_COLUMNS[columns].key);
    }
    buffer_add_text(out, "\r\n");
    for (uint32_t i = 0; i < s.entry_count && !out->failed; i++) {
        for (size_t k = 0; k < columns && !(s.entries[i] & REPORT_CYCLE); k++) {
            const struct cell cell = find_cell(in, NULL, &CSV_COLUMNS[k], s.entries[i]);
            buffer_add_text(out, k > 0 ? "," : "");
            switch (cell.is) {
            case CELL_NONE:
                break;
            case CELL_TEXT:
                add_field(out, name_make_safe(a, cell.text));
                break;
            case CELL_COUNT:
            case CELL_FLAG:
                buffer_add_u64(out, cell.count, 0);
                break;
            case CELL_NUMBER:
                buffer_add_shortest(out, cell.number);
                break;
            case CELL_ADDRESS:
                buffer_add_format(out, "0x%llx", (unsigned long long)cell.count);
                break;
            }
        }
        buffer_add_text(out, s.entries[i] & REPORT_CYCLE ? "" : "\r\n");
    }
    return PROFD_OK;
}
