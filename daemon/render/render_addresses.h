/* Ticks and calls of one function by address, as JSON. */
#ifndef PROFD_RENDER_RENDER_ADDRESSES_H
#define PROFD_RENDER_RENDER_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/object.h"
#include "core/object_instructions.h"
#include "core/report.h"
#include "render/render.h"

/* A bin: bytes from address on, at least one. */
struct address_ticks {
    uint64_t address, bytes, ticks;
    double seconds;
    bool shared; /* some of its bytes are outside the function */
};

/* Calls that return to address. */
struct address_calls {
    uint64_t address, calls;
    const struct report_function *callee; /* NULL: it is not in the report */
};

struct render_addresses {
    const struct report_function *function;
    uint32_t tick_count, call_count, line_count, instruction_count;
    const struct address_ticks *ticks;             /* ascending by address, then bytes */
    const struct address_calls *calls;             /* ascending by address */
    const struct object *object;                   /* that lines and instructions are of; NULL: there are none */
    const struct object_line *lines;               /* ascending by low, cut at the function's ends */
    const struct object_instruction *instructions; /* ascending by address */
    const char *const *target_names;               /* one for each of them; NULL: it has no target with a name */
    double overdispersion;                         /* variance of a number of ticks over that of independent ones */
};

void render_addresses(const struct render_input *in, const struct render_addresses *what, struct buffer *out);

#endif
