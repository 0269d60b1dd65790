#include "profctl/annotate_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NORMAL 1.959963984540054 /* of 95 % */

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static uint64_t address_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? strtoull(text, NULL, 16) : 0;
}

/* Bytes that an instruction has of [low, high). */
static uint64_t overlap(const struct code_instruction *i, uint64_t low, uint64_t high)
{
    uint64_t first = i->address > low ? i->address : low, end = i->address + i->bytes;
    uint64_t last = end < high ? end : high;
    return last > first ? last - first : 0;
}

static void add_ticks(struct annotate_sum *s, const struct code *code, uint64_t low, uint64_t high, double ticks)
{
    size_t first = 0, count = 0;
    uint64_t bytes = 0;
    bool one_place = true;
    for (size_t i = 0; i < code->count; i++) {
        const uint64_t own = overlap(&code->instructions[i], low, high);
        if (own > 0) {
            first = count++ == 0 ? i : first;
            one_place = one_place && code->instructions[i].place == code->instructions[first].place;
            bytes += own;
        }
    }
    if (count == 0) {
        s->shared += ticks;
        return;
    }
    s->ticks += ticks;
    s->instructions[first].ticks += ticks;
    s->instructions[first].sure += ticks;
    s->instructions[first].possible += ticks;
    s->span[first] = count > s->span[first] ? count : s->span[first];
    for (size_t i = first; i < first + count; i++) {
        struct annotate_amount *place = &s->places[code->instructions[i].place];
        place->ticks += ticks * (double)overlap(&code->instructions[i], low, high) / (double)bytes;
        if (one_place) {
            place->sure += i == first ? ticks : 0;
            place->possible += i == first ? ticks : 0;
        } else {
            bool again = false; /* a line may have several instructions in the bin */
            for (size_t k = first; k < i; k++) {
                again = again || code->instructions[k].place == code->instructions[i].place;
            }
            place->possible += again ? 0 : ticks;
            place->estimated = true;
        }
    }
}

/* The call instruction of a return address; count if there is none. A return address stands behind the call; profiles
 * of other tools name the call itself. */
static size_t find_site(const struct code *code, uint64_t address)
{
    size_t at = code_find(code, address - 1);
    if (at == code->count || code->instructions[at].address + code->instructions[at].bytes != address ||
        !code_is_call(&code->instructions[at])) {
        at = code_find(code, address);
    }
    return at < code->count && code_is_call(&code->instructions[at]) ? at : code->count;
}

/* Does the call instruction name the callee of the row? Another callee was jumped to by that one. */
static bool is_named(const json_t *answer, const struct code_instruction *i, const json_t *row)
{
    const char *own = json_string_value(json_object_get(json_object_get(answer, "function"), "build_id")),
               *build = json_string_value(json_object_get(row, "build_id"));
    uint64_t target;
    return own && build && strcmp(own, build) == 0 && code_find_target(i, &target) &&
           target == address_of(row, "callee_address");
}

/* named: of each instruction, whether it names a callee. */
static void add_calls(struct annotate_sum *s, const json_t *answer, const struct code *code, const bool *named)
{
    const json_t *row;
    size_t k;
    json_array_foreach(json_object_get(answer, "calls"), k, row)
    {
        const uint64_t calls = (uint64_t)json_integer_value(json_object_get(row, "calls"));
        const size_t at = s->call_sites ? find_site(code, address_of(row, "address")) : code->count;
        if (at == code->count || (named[at] && !is_named(answer, &code->instructions[at], row))) {
            s->calls_no_site += calls;
        } else {
            s->instructions[at].calls += calls;
            s->places[code->instructions[at].place].calls += calls;
        }
    }
}

static bool find_calls(struct annotate_sum *s, const json_t *answer, const struct code *code)
{
    bool *named = calloc(code->count + 1, sizeof *named);
    const json_t *row;
    size_t k;
    if (!named) {
        return false;
    }
    json_array_foreach(json_object_get(answer, "calls"), k, row)
    {
        const size_t at = find_site(code, address_of(row, "address"));
        named[at] = named[at] || (at < code->count && is_named(answer, &code->instructions[at], row));
    }
    add_calls(s, answer, code, named);
    free(named);
    return true;
}

/* Wilson's score interval of x of n samples of which n/overdispersion are independent. */
static double bound(double x, double n, double overdispersion, double sign)
{
    const double m = n / overdispersion, p = x / n, z = NORMAL;
    const double middle = p + z * z / (2 * m), half = z * sqrt(p * (1 - p) / m + z * z / (4 * m * m));
    const double at = (middle + sign * half) / (1 + z * z / m);
    return n * (at > 0 ? at : 0);
}

static void find_interval(struct annotate_amount *a, double n, double overdispersion)
{
    if (a->possible > 0 && n > 0) {
        const double low = bound(a->sure, n, overdispersion, -1),
                     high = bound(fmin(a->possible, n), n, overdispersion, 1);
        a->low = fmin(low, a->ticks); /* where all ticks are here, rounding could put them outside */
        a->high = fmax(high, a->ticks);
    }
}

bool annotate_sum_make(const json_t *answer, const struct code *code, struct annotate_sum *out)
{
    const json_t *row;
    size_t k;
    const double all = number(answer, "ticks"), overdispersion = number(answer, "overdispersion");
    *out = (struct annotate_sum){.instructions = calloc(code->count + 1, sizeof *out->instructions),
                                 .span = calloc(code->count + 1, sizeof *out->span),
                                 .places = calloc(code->place_count + 1, sizeof *out->places),
                                 .call_sites = json_is_true(json_object_get(answer, "call_sites"))};
    if (!out->instructions || !out->span || !out->places) {
        return false;
    }
    json_array_foreach(json_object_get(answer, "rows"), k, row)
    {
        const uint64_t low = address_of(row, "address"), bytes = (uint64_t)number(row, "bytes");
        if (json_is_true(json_object_get(row, "shared"))) {
            out->shared += number(row, "ticks");
        } else {
            add_ticks(out, code, low, low + bytes, number(row, "ticks"));
        }
    }
    if (!find_calls(out, answer, code)) {
        return false;
    }
    for (size_t i = 0; i < code->count; i++) {
        find_interval(&out->instructions[i], all, overdispersion);
    }
    for (size_t i = 0; i < code->place_count; i++) {
        find_interval(&out->places[i], all, overdispersion);
    }
    return true;
}

void annotate_sum_done(struct annotate_sum *s)
{
    free(s->instructions);
    free(s->span);
    free(s->places);
}
