#include "core/report_place.h"

#define PLACE_FEW 24u /* up to this many are sorted by insertion */

bool report_places_take(struct report_places *p, struct arena *a, uint32_t n)
{
    p->places = ARENA_ARRAY(a, n, struct report_place);
    p->sorted = ARENA_ARRAY(a, n, struct report_place);
    p->keys = ARENA_ARRAY(a, n, struct sort_item);
    p->scratch = ARENA_ARRAY(a, n, struct sort_item);
    return p->places != NULL && p->sorted != NULL && p->keys != NULL && p->scratch != NULL;
}

static void place_insert(struct report_place *places, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct report_place place = places[i];
        uint32_t k = i;
        for (; k > 0; k--) {
            const struct report_place *before = &places[k - 1];
            if (before->time < place.time || (before->time == place.time && before->calls <= place.calls)) {
                break;
            }
            places[k] = places[k - 1];
        }
        places[k] = place;
    }
}

const struct report_place *report_places_sort(struct report_places *p, uint32_t n)
{
    if (n <= PLACE_FEW) {
        place_insert(p->places, n);
        return p->places;
    }
    for (uint32_t i = 0; i < n; i++) {
        p->keys[i] = (struct sort_item){p->places[i].calls, i};
    }
    sort_radix(p->keys, p->scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        p->keys[i].key = p->places[p->keys[i].value].time;
    }
    sort_radix(p->keys, p->scratch, n);
    for (uint32_t i = 0; i < n; i++) {
        p->sorted[i] = p->places[p->keys[i].value];
    }
    return p->sorted;
}
