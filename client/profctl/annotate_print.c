#include "profctl/annotate_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_find.h"
#include "profctl/profctl_list.h"
#include "proto/noun.h"

/* The source text of a line; NULL if it is not known. */
static const char *line_of(const struct annotate_print *p, size_t place, unsigned line)
{
    const struct source *s = &p->sources[place];
    return s->lines && line >= 1 && line <= s->count ? s->lines[line - 1] : NULL;
}

static void print_clean(const char *text)
{
    char clean[1024];
    profctl_clean(text, clean, sizeof clean);
    fputs(clean, stdout);
}

/* Source text with its tabs as spaces. */
static void print_source(const char *text)
{
    char plain[1024];
    size_t n = 0;
    for (; *text && n + 9 < sizeof plain; text++) {
        if (*text == '\t') {
            do {
                plain[n++] = ' ';
            } while (n % 8 != 0);
        } else if (*text != '\r') {
            plain[n++] = *text;
        }
    }
    plain[n] = '\0';
    print_clean(plain);
}

static void print_amount(const struct annotate_print *p, const struct annotate_amount *a)
{
    char interval[48] = "", ticks[32] = "", percent[16] = "", calls[32] = "";
    if (a && a->possible > 0) {
        (void)snprintf(ticks, sizeof ticks, "%s%.0f", a->estimated ? "~" : "", a->ticks);
        (void)snprintf(percent, sizeof percent, "%.1f", p->sum->ticks > 0 ? 100 * a->ticks / p->sum->ticks : 0);
        (void)snprintf(interval, sizeof interval, "%.0f to %.0f", floor(a->low), ceil(a->high));
    }
    if (a && a->calls > 0) {
        (void)snprintf(calls, sizeof calls, "%s%" PRIu64, row_is_sampled(p->answer) ? "~" : "", a->calls);
    }
    printf("%8s %5s %14s %12s ", ticks, percent, interval, calls);
}

static void print_head(const struct annotate_print *p)
{
    const json_t *f = json_object_get(p->answer, "function");
    const double ticks = p->sum->ticks, all = json_number_value(json_object_get(p->answer, "ticks"));
    print_clean(row_raw(f, "name"));
    printf(" in ");
    print_clean(row_raw(f, "object"));
    printf(": %.0f of %.0f ticks, ", ticks, all);
    function_print_calls(p->answer);
    for (size_t i = 0; i < p->code->place_count; i++) {
        bool said = p->sources[i].note[0] == '\0';
        for (size_t k = 0; k < i; k++) {
            said = said || strcmp(p->sources[i].note, p->sources[k].note) == 0;
        }
        if (!said) {
            printf("No source: ");
            print_clean(p->sources[i].note);
            printf("\n");
        }
    }
    if (ticks > 0 && strcmp(row_raw(p->answer, "dimension"), "seconds") == 0) {
        printf("A tick stands at the instruction that was to run next: those of a slow one stand behind it.\n");
    }
    printf("%8s %5s %14s %12s %s\n", "TICKS", "%", "95% INTERVAL", "CALLS", p->instructions ? "INSTRUCTION" : "LINE");
}

static void print_place(const struct code_place *place)
{
    if (place->file[0]) {
        print_clean(place->file);
        printf(":%u", place->line);
    } else {
        printf("?");
    }
    if (place->chain[0]) {
        printf(" (");
        print_clean(place->chain);
        printf(")");
    }
}

static void print_instructions(const struct annotate_print *p)
{
    size_t covered = 0;
    for (size_t i = 0; i < p->code->count; i++) {
        const struct code_instruction *in = &p->code->instructions[i];
        if (i == 0 || in->place != p->code->instructions[i - 1].place) {
            const char *source = line_of(p, in->place, p->code->places[in->place].line);
            printf("%42s ", "");
            print_place(&p->code->places[in->place]);
            printf("%s", source ? "  " : "");
            print_source(source ? source : "");
            printf("\n");
        }
        print_amount(p, &p->sum->instructions[i]);
        printf("%s%8" PRIx64 "  ", covered > 0 ? "+" : p->sum->span[i] > 1 ? "/" : " ", in->address);
        print_clean(in->text);
        printf("\n");
        covered = p->sum->span[i] > 1 ? p->sum->span[i] - 1 : covered > 0 ? covered - 1 : 0;
    }
    for (size_t i = 0; i < p->code->count; i++) {
        if (p->sum->span[i] > 1) {
            printf("/ and +: a bin of the histogram holds several instructions; its ticks stand at the first.\n");
            return;
        }
    }
}

/* Lines of one file and one chain of inlined calls. */
static bool same_part(const struct code_place *a, const struct code_place *b)
{
    return strcmp(a->file, b->file) == 0 && strcmp(a->chain, b->chain) == 0;
}

static const struct annotate_amount *find_line(const struct annotate_print *p, size_t part, unsigned line)
{
    const struct code *c = p->code;
    for (size_t i = part; i < c->place_count; i++) {
        if (c->places[i].line == line && same_part(&c->places[i], &c->places[part])) {
            return &p->sum->places[i];
        }
    }
    return NULL;
}

static void print_part(const struct annotate_print *p, size_t part)
{
    const struct code *c = p->code;
    const struct code_place *place = &c->places[part];
    unsigned first = place->line, last = place->line;
    for (size_t i = part; i < c->place_count; i++) {
        if (same_part(&c->places[i], place)) {
            first = c->places[i].line < first ? c->places[i].line : first;
            last = c->places[i].line > last ? c->places[i].line : last;
        }
    }
    printf("%42s ", "");
    print_clean(place->file[0] ? place->file : "no line is known");
    printf("%s", place->chain[0] ? ": " : "");
    print_clean(place->chain);
    printf("\n");
    for (unsigned line = first; line <= last; line++) {
        const struct annotate_amount *a = find_line(p, part, line);
        const char *source = line_of(p, part, line);
        if (a || (source && place->chain[0] == '\0')) {
            print_amount(p, a);
            printf("%6u  ", line);
            print_source(source ? source : "");
            printf("\n");
        }
    }
}

void annotate_print_text(const struct annotate_print *p)
{
    const struct code *c = p->code;
    print_head(p);
    if (p->instructions) {
        print_instructions(p);
    }
    for (size_t i = 0; !p->instructions && i < c->place_count; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++) {
            again = again || same_part(&c->places[k], &c->places[i]);
        }
        if (!again) {
            print_part(p, i);
        }
    }
    const struct annotate_sum *s = p->sum;
    if (s->shared > 0) {
        printf("%.0f more ticks are in bins that other functions share.\n", s->shared);
    }
    if (!s->call_sites && s->calls_no_site > 0) {
        printf("A gmon.out rounds the addresses of callers: %" PRIu64 " %s from here %s no line.\n", s->calls_no_site,
               noun_for(s->calls_no_site, "call", "calls"), noun_for(s->calls_no_site, "has", "have"));
    } else if (s->calls_no_site > 0) {
        printf("%" PRIu64 " %s %s no call instruction here: a jump at the end of a function counts as a call by its "
               "caller.\n",
               s->calls_no_site, noun_for(s->calls_no_site, "call", "calls"),
               noun_for(s->calls_no_site, "has", "have"));
    }
}

static size_t row_count(const struct annotate_print *p)
{
    return p->instructions ? p->code->count : p->code->place_count;
}

static const struct annotate_amount *row_at(const struct annotate_print *p, size_t i, const struct code_place **place)
{
    *place = &p->code->places[p->instructions ? p->code->instructions[i].place : i];
    return p->instructions ? &p->sum->instructions[i] : &p->sum->places[i];
}

void annotate_print_csv(const struct annotate_print *p)
{
    printf("%sfile,line,inlined,ticks,low,high,estimated,calls,%s\r\n", p->instructions ? "address," : "",
           p->instructions ? "instruction" : "source");
    for (size_t i = 0; i < row_count(p); i++) {
        const struct code_place *place;
        const struct annotate_amount *a = row_at(p, i, &place);
        const char *source = p->instructions ? p->code->instructions[i].text : line_of(p, i, place->line);
        if (p->instructions) {
            printf("0x%" PRIx64 ",", p->code->instructions[i].address);
        }
        csv_print_text(place->file);
        printf(",%u,", place->line);
        csv_print_text(place->chain);
        printf(",%.17g,%.17g,%.17g,%d,%" PRIu64 ",", a->ticks, a->low, a->high,
               a->estimated || (p->instructions && p->sum->span[i] > 1), a->calls);
        csv_print_text(source ? source : "");
        printf("\r\n");
    }
}

static json_t *make_row(const struct annotate_print *p, size_t i)
{
    const struct code_place *place;
    const struct annotate_amount *a = row_at(p, i, &place);
    const char *source = p->instructions ? p->code->instructions[i].text : line_of(p, i, place->line);
    char address[24] = "";
    json_t *row = json_pack("{sssIsssfsfsfsbsI}", "file", place->file, "line", json_count(place->line), "inlined",
                            place->chain, "ticks", a->ticks, "low", a->low, "high", a->high, "estimated",
                            (int)a->estimated, "calls", json_count(a->calls));
    if (row && p->instructions) {
        (void)snprintf(address, sizeof address, "0x%" PRIx64, p->code->instructions[i].address);
        (void)json_object_set_new(row, "address", json_string(address));
        (void)json_object_set_new(row, "bin_instructions", json_integer(json_count(p->sum->span[i])));
    }
    if (row) { /* source text may be no UTF-8 */
        json_t *text = source ? json_string(source) : NULL;
        (void)json_object_set_new(row, p->instructions ? "instruction" : "source", text ? text : json_null());
    }
    return row;
}

json_t *annotate_print_json(const struct annotate_print *p)
{
    json_t *rows = json_array(), *notes = json_array();
    for (size_t i = 0; i < row_count(p); i++) {
        (void)json_array_append_new(rows, make_row(p, i));
    }
    for (size_t i = 0; i < p->code->place_count; i++) {
        if (p->sources[i].note[0]) {
            (void)json_array_append_new(notes, json_string(p->sources[i].note));
        }
    }
    return json_pack("{sosOsOsOsOsfsfsIsbso}", "rows", rows, "function", json_object_get(p->answer, "function"),
                     "dimension", json_object_get(p->answer, "dimension"), "calls_exact",
                     json_object_get(p->answer, "calls_exact"), "inexact_reasons",
                     json_object_get(p->answer, "inexact_reasons"), "ticks", p->sum->ticks, "shared_ticks",
                     p->sum->shared, "calls_without_site", json_count(p->sum->calls_no_site), "call_sites",
                     (int)p->sum->call_sites, "notes", notes);
}
