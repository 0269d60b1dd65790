/* Assigns frames to addresses of builds: by their addresses if these can be trusted, otherwise by the names of their
 * functions. */
#include "import/import_place_internal.h"

#define PAGE 4096u
#define VOTES 4096u     /* frames of an object that are used to determine how far it was moved */
#define CANDIDATES 256u /* answers that are tried */
#define WIDE 64u        /* pages; a frame that allows more offsets is not used */

/* One frame allows that the object was moved by [low, high] (modulo 2^64). */
struct vote {
    uint64_t low, high;
};

static bool vote_take(const struct import_binary *b, const struct import_frame *f, struct vote *out)
{
    struct import_function function;
    if (!f->has_address || !f->name || !import_binary_find(b, f->name, f->file, &function) || function.ambiguous) {
        return false;
    }
    if (f->offset != IMPORT_NO_OFFSET) {
        out->low = out->high = f->address - f->offset - function.address;
    } else {
        out->high = f->address - function.address;
        out->low = out->high - (function.size - 1);
    }
    return true;
}

static bool vote_allows(const struct vote *v, uint64_t bias)
{
    return bias - v->low <= v->high - v->low;
}

/* Returns the multiple of a page that most frames allow, if more than half of them do and no other is as frequent. */
static void find_bias(const struct vote *votes, uint32_t n, struct place_object *k)
{
    uint64_t tried[CANDIDATES];
    uint32_t tried_count = 0, best = 0;
    bool tie = false;
    for (uint32_t i = 0; i < n && tried_count < CANDIDATES; i++) {
        uint64_t first = (votes[i].low + PAGE - 1) & ~(uint64_t)(PAGE - 1);
        for (uint64_t bias = first;
             vote_allows(&votes[i], bias) && (bias - first) / PAGE < WIDE && tried_count < CANDIDATES; bias += PAGE) {
            bool known = false;
            for (uint32_t t = 0; t < tried_count && !known; t++) {
                known = tried[t] == bias;
            }
            if (known) {
                continue;
            }
            uint32_t allowed = 0;
            for (uint32_t v = 0; v < n; v++) {
                allowed += vote_allows(&votes[v], bias);
            }
            tried[tried_count++] = bias;
            tie = allowed == best || (tie && allowed < best);
            if (allowed > best) {
                best = allowed;
                k->bias = bias;
            }
        }
    }
    k->has_bias = best > n / 2 && !tie;
}

static bool place_in_file(const struct import_binary *b, uint64_t address, uint64_t *at)
{
    return import_binary_load(b, address, at) && import_binary_holds(b, *at);
}

/* Frames of a stripped object have no names to look up. Tools then write file offsets or, for objects that cannot be
 * relocated, addresses. They are accepted if nine in ten of them are in code (stack walks contain errors). first is a
 * frame's number plus 1, and next links the other frames of the same object. */
static void find_unnamed(const struct place *w, uint32_t first, const uint32_t *next, struct place_object *k)
{
    uint64_t all = 0, in_file = 0, here = 0, at;
    for (uint32_t f = first; f != 0; f = next[f - 1]) {
        const uint64_t address = w->profile->frames[f - 1].address;
        all++;
        in_file += place_in_file(k->binary, address, &at);
        here += import_binary_holds(k->binary, address);
    }
    k->in_file = all > 0 && in_file * 10 >= all * 9;
    k->has_bias = all > 0 && here * 10 >= all * 9 && !k->in_file;
    k->bias = 0;
}

/* Determines how far each object was moved. */
static enum profd_status find_biases(struct place *w, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    struct vote *votes = ARENA_ARRAY(w->arena, VOTES, struct vote);
    uint32_t *next =
        ARENA_ARRAY(w->arena, (size_t)p->frame_count + 1, uint32_t); /* next frame of the same object, plus 1 */
    uint32_t *first = ARENA_ARRAY(w->arena, (size_t)p->object_count + 1, uint32_t);
    if (!votes || !next || !first) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to place %u frames", p->frame_count);
    }
    for (uint32_t i = p->frame_count; i-- > 0;) {
        if (p->frames[i].object != IMPORT_NONE && p->frames[i].has_address) {
            next[i] = first[p->frames[i].object];
            first[p->frames[i].object] = i + 1;
        }
    }
    for (uint32_t i = 0; i < p->object_count; i++) {
        uint32_t n = 0;
        if (p->objects[i].addressing != IMPORT_MOVED || !w->objects[i].binary) {
            continue;
        }
        for (uint32_t f = first[i]; f != 0 && n < VOTES; f = next[f - 1]) {
            n += vote_take(w->objects[i].binary, &p->frames[f - 1], &votes[n]);
        }
        if (n > 0) {
            find_bias(votes, n, &w->objects[i]);
        } else {
            find_unnamed(w, first[i], next, &w->objects[i]);
        }
    }
    return PROFD_OK;
}

/* Places a frame by its address. False if the address has no meaning, or is not code. */
static bool place_by_address(const struct import_object *o, const struct place_object *k, const struct import_frame *f,
                             uint64_t *at)
{
    if (!f->has_address) {
        return false;
    }
    switch (o->addressing) {
    case IMPORT_LINK_TIME:
        *at = f->address;
        break;
    case IMPORT_IN_FILE:
        *at = f->address;
        if (k->binary && !import_binary_load(k->binary, f->address, at)) {
            return false;
        }
        break;
    default:
        if (k->in_file) {
            return place_in_file(k->binary, f->address, at);
        }
        if (!k->has_bias) {
            return false;
        }
        *at = f->address - k->bias;
        break;
    }
    return !k->binary || import_binary_holds(k->binary, *at);
}

static bool place_by_name(struct place *w, const struct place_object *k, const struct import_frame *f, uint64_t *at)
{
    struct import_function function;
    if (!f->name || !k->binary || !import_binary_find(k->binary, f->name, f->file, &function)) {
        w->notes->nameless += f->name != NULL;
        return false;
    }
    w->notes->ambiguous += function.ambiguous;
    *at = function.address + (f->offset != IMPORT_NO_OFFSET && f->offset < function.size ? f->offset : 0);
    return true;
}

enum profd_status place_frames_find(struct place *w, struct profd_error *e)
{
    const struct import_profile *p = w->profile;
    enum profd_status status = find_biases(w, e);
    for (uint32_t i = 0; i < p->frame_count && status == PROFD_OK; i++) {
        const struct import_frame *f = &p->frames[i];
        struct place_frame *place = &w->frames[i];
        place->build = PROFD_NOWHERE;
        if (f->object == IMPORT_NONE || w->objects[f->object].build == PROFD_NOWHERE) {
            continue;
        }
        const struct import_object *o = &p->objects[f->object];
        struct place_object *k = &w->objects[f->object];
        k->frames++;
        bool by_name = o->addressing == IMPORT_MOVED || !f->has_address;
        if (place_by_address(o, k, f, &place->at) || (by_name && place_by_name(w, k, f, &place->at))) {
            place->build = k->build;
            place->entry = k->binary ? import_binary_entry(k->binary, place->at) : place->at;
            k->placed++;
        } else {
            w->lost = true;
        }
    }
    return status;
}
