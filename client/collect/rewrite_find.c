/* Finds the one call of the collector in each function of the unwinder's table. */
#include "client/collect/rewrite_find.h"

#include "client/collect/rewrite_decode.h"

#if defined __x86_64__

#define LINE_MAX 1024u /* bytes of a function that are decoded, with the probes of a large frame */

extern const char __start_profd_collect_text[]
    __attribute__((visibility("hidden"))); /* defined by the linker: the collector's code has no sites */
extern const char __stop_profd_collect_text[] __attribute__((visibility("hidden")));

struct walk {
    const struct rewrite_image *image;
    const struct rewrite_slots *slots;
};

static uint32_t read32(uintptr_t at)
{
    const uint8_t *b = (const uint8_t *)at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uintptr_t relative32(uintptr_t at)
{
    return at + (uintptr_t)(intptr_t)(int32_t)read32(at);
}

/* The form of a call to `target`, or -1 if it is not a function of the collector. */
static int arrival(const struct walk *w, uintptr_t target)
{
    if (target == w->slots->entry[0] || target == w->slots->entry[REWRITE_FENTRY]) {
        return target == w->slots->entry[0] ? 0 : REWRITE_FENTRY;
    }
    if (!rewrite_image_has_code(w->image, target, 16)) {
        return -1;
    }
    /* An entry of a PLT: [endbr64] [bnd] jmp *slot(%rip) */
    const uint8_t *b = (const uint8_t *)target;
    if (b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e && b[3] == 0xfa) {
        b += 4;
    }
    if (b[0] == 0xf2) {
        b++;
    }
    if (b[0] != 0xff || b[1] != 0x25) {
        return -1;
    }
    uintptr_t slot = relative32((uintptr_t)b + 2) + 4;
    for (unsigned i = 0; i < w->slots->count; i++) {
        if (w->slots->at[i] == slot) {
            return (int)w->slots->form[i];
        }
    }
    return -1;
}

/* True if there is a call of the collector at `at`; end is at least 6 bytes further. */
static bool site_read(const struct walk *w, uintptr_t at, struct rewrite_site *out)
{
    const uint8_t *b = (const uint8_t *)at;
    int form = -1;
    uint32_t extra = 0;
    if (b[0] == 0xff && b[1] == 0x15) {
        uintptr_t slot = relative32(at + 2) + 4;
        for (unsigned i = 0; i < w->slots->count; i++) {
            if (w->slots->at[i] == slot) {
                form = (int)w->slots->form[i];
            }
        }
        extra = REWRITE_LONG;
    } else if (b[0] == 0xe8) {
        form = arrival(w, relative32(at + 1) + 4);
    } else if (b[0] == 0x67 && b[1] == 0xe8) {
        form = arrival(w, relative32(at + 2) + 4);
        extra = REWRITE_LONG;
    }
    if (form < 0) {
        return false;
    }
    out->at = (uint32_t)(at - w->image->low) + (extra ? 1 : 0);
    out->form = (uint32_t)form | extra;
    return true;
}

static bool function_search(const struct walk *w, uintptr_t begin, uint32_t size, struct rewrite_site *out)
{
    uintptr_t end = begin + (size < LINE_MAX ? size : LINE_MAX);
    if (begin >= (uintptr_t)__start_profd_collect_text && begin < (uintptr_t)__stop_profd_collect_text) {
        return false;
    }
    for (uintptr_t at = begin; end - at >= 6;) {
        if (site_read(w, at, out)) {
            return true;
        }
        unsigned n = rewrite_decode_length((const uint8_t *)at, (const uint8_t *)end);
        if (n == 0) {
            return false;
        }
        at += n;
    }
    return false;
}

/* Heap sort: sinks sites[at] among the first n. */
static void site_sink(struct rewrite_site *sites, uint32_t at, uint32_t n)
{
    struct rewrite_site held = sites[at];
    for (uint32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && sites[child + 1].at > sites[child].at) {
            child++;
        }
        if (sites[child].at <= held.at) {
            break;
        }
        sites[at] = sites[child];
        at = child;
    }
    sites[at] = held;
}

uint32_t rewrite_find_sites(const struct rewrite_image *image, const struct rewrite_frames *frames,
                            const struct rewrite_slots *slots, struct rewrite_site *out, uint32_t most)
{
    struct rewrite_frames f = *frames;
    struct walk w = {image, slots};
    uintptr_t function;
    uint32_t n = 0, kept = 0, size;
    bool ordered = true;
    while (n < most && rewrite_frames_next(&f, &function, &size)) {
        if (!function_search(&w, function, size, &out[n])) {
            continue;
        }
        ordered = ordered && (n == 0 || out[n].at > out[n - 1].at);
        n++;
    }
    if (!ordered) {
        for (uint32_t i = n / 2; i > 0; i--) {
            site_sink(out, i - 1, n);
        }
        for (uint32_t i = n; i > 1; i--) {
            struct rewrite_site largest = out[0];
            out[0] = out[i - 1];
            out[i - 1] = largest;
            site_sink(out, 0, i - 1);
        }
    }
    for (uint32_t i = 0; i < n; i++) { /* two frames may describe one function */
        if (i == 0 || out[i].at != out[kept - 1].at) {
            out[kept++] = out[i];
        }
    }
    return kept;
}

#endif
