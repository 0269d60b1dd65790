/* What every profile must be that a parser of foreign formats gives out. */
#ifndef PROFD_TESTS_IMPORT_FUZZ_H
#define PROFD_TESTS_IMPORT_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "import/import_any_internal.h"
#include "proto/sum.h"

/* Reads everything that place and render would read. */
static inline void import_fuzz_check(const struct import_profile *p)
{
    size_t bytes = strlen(p->process) + strlen(p->program) + strnlen(p->dimension, sizeof p->dimension);
    if (p->dimension[sizeof p->dimension - 1] != '\0' || p->rate == 0 || p->rate > 1000000000u) {
        abort();
    }
    if (p->program_object != IMPORT_NONE && p->program_object >= p->object_count) {
        abort();
    }
    for (uint32_t i = 0; i < p->object_count; i++) {
        bytes += strlen(p->objects[i].path) + (p->objects[i].build_id ? strlen(p->objects[i].build_id) : 0);
    }
    for (uint32_t i = 0; i < p->frame_count; i++) {
        const struct import_frame *f = &p->frames[i];
        bytes += (f->name ? strlen(f->name) : 0) + (f->file ? strlen(f->file) : 0);
        if ((f->object != IMPORT_NONE && f->object >= p->object_count) || f->ticks > SUM_MAX ||
            (!f->has_address && f->address != 0)) {
            abort();
        }
    }
    for (uint32_t i = 0; i < p->pair_count; i++) {
        if (p->pairs[i].from >= p->frame_count || p->pairs[i].to >= p->frame_count || p->pairs[i].calls > SUM_MAX) {
            abort();
        }
    }
    for (uint32_t i = 0; i < p->node_count; i++) {
        const struct import_node *n = &p->nodes[i];
        bool cut = n->frame == IMPORT_CUT, top = n->parent == IMPORT_NONE;
        if ((!top && (n->parent >= i || p->nodes[n->parent].leaf)) ||
            (cut ? !top || n->leaf : n->frame >= p->frame_count) || n->ticks > SUM_MAX || (n->ticks > 0 && !n->leaf)) {
            abort();
        }
    }
    if (bytes == SIZE_MAX) {
        abort();
    }
}

#endif
