#include "render/json_collector.h"

#include <string.h>

#include "render/json_write.h"

static void add_share(struct buffer *out, bool known, double share)
{
    if (known) {
        buffer_add_shortest(out, share);
    } else {
        JSON_ADD(out, "null");
    }
}

void json_add_collector(struct buffer *out, const struct render_input *in)
{
    const struct coverage *c = in->coverage;
    double share = 0;
    bool known;
    if (c == NULL || !c->any) {
        return;
    }
    JSON_ADD(out, ",\"collector\":{\"coverage\":");
    known = coverage_share(c, &share);
    add_share(out, known, share);
    JSON_ADD(out, ",\"overhead\":");
    known = coverage_overhead(c, &share);
    add_share(out, known, share);
    json_add_number(out, "attributed_seconds", (double)coverage_attributed(c) / 1e9);
    for (uint32_t i = 0; i < COLLECTOR_COUNTERS_MAX; i++) {
        const char *name = collector_counter_name(i);
        if (name != NULL && collector_counter_is_time(i)) {
            json_add_number(out, name, (double)c->counters[i] / 1e9);
        } else if (name != NULL) {
            json_add_count(out, name, c->counters[i]);
        }
    }
    json_add_flag(out, "wider_than_report", strcmp(in->scope, "program") != 0);
    json_add_flag(out, "saturated", c->saturated);
    JSON_ADD(out, "}");
}
