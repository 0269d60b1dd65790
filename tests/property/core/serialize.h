/* Every field of a report as bytes, so that two reports can be compared whole. */
#ifndef PROFD_TESTS_CORE_SERIALIZE_H
#define PROFD_TESTS_CORE_SERIALIZE_H

#include "core/buffer.h"
#include "core/report.h"

static inline void serialize_rows(struct buffer *b, const struct report *r, const char *title,
                                  const struct report_arc *rows, uint32_t n)
{
    buffer_add_format(b, " %s %u\n", title, n);
    for (uint32_t i = 0; i < n; i++) {
        buffer_add_format(b, "  %u %s %llu/%llu %a %a %d %d\n", rows[i].other, r->functions[rows[i].other].raw,
                          (unsigned long long)rows[i].calls, (unsigned long long)rows[i].of_calls, rows[i].self,
                          rows[i].children, rows[i].inside, rows[i].by_name);
    }
}

static inline void serialize_function(struct buffer *b, const struct report *r, const struct report_function *f)
{
    buffer_add_format(
        b, "[%u] %d %s %s %u %s %llx+%llx %s ticks %llu %a %a %a calls %llu %llu %llu +%llu cycle %u %d\n", f->index,
        (int)f->kind, f->name, f->raw, f->build, r->builds[f->build], (unsigned long long)f->address,
        (unsigned long long)f->size, f->file, (unsigned long long)f->ticks_total, f->self, f->children, f->percent,
        (unsigned long long)f->calls, (unsigned long long)f->calls_outside, (unsigned long long)f->calls_inside,
        (unsigned long long)f->self_calls, f->cycle, f->spontaneous);
    for (uint32_t i = 0; i < f->alias_count; i++) {
        buffer_add_format(b, " = %s\n", f->aliases[i]);
    }
    serialize_rows(b, r, "callers", f->callers, f->caller_count);
    serialize_rows(b, r, "callees", f->callees, f->callee_count);
    serialize_rows(b, r, "static callees", f->static_callees, f->static_callee_count);
    serialize_rows(b, r, "static callers", f->static_callers, f->static_caller_count);
}

static inline void serialize_report(struct buffer *b, const struct report *r)
{
    buffer_add_format(b, "%u functions, %u cycles, total %a, ticks %llu, calls %llu, %s, unnamed %u, saturated %d\n",
                      r->function_count, r->cycle_count, r->total, (unsigned long long)r->ticks,
                      (unsigned long long)r->calls, r->dimension, r->unnamed_builds, r->saturated);
    for (uint32_t i = 0; i < r->build_count; i++) {
        buffer_add_format(b, "build %s %s\n", r->builds[i], r->build_names[i]);
    }
    for (uint32_t i = 0; i < r->rate_count; i++) {
        buffer_add_format(b, "rate %u\n", r->rates[i]);
    }
    for (uint32_t i = 0; i < r->order_count; i++) {
        buffer_add_format(b, "%x ", r->order[i]);
    }
    for (uint32_t i = 0; i < r->function_count; i++) {
        serialize_function(b, r, &r->functions[i]);
    }
    for (uint32_t i = 0; i < r->cycle_count; i++) {
        const struct report_cycle *c = &r->cycles[i];
        buffer_add_format(b, "<%u> [%u] %a %a %a %llu+%llu\n", c->number, c->index, c->self, c->children, c->percent,
                          (unsigned long long)c->calls_outside, (unsigned long long)c->calls_inside);
        serialize_rows(b, r, "members", c->members, c->member_count);
        serialize_rows(b, r, "callers", c->callers, c->caller_count);
        serialize_rows(b, r, "callees", c->callees, c->callee_count);
    }
}

#endif
