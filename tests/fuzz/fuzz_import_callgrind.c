/* Laws: what is refused has a sentence; what parses refers to nothing that is not there; a comment behind every line
 * that no cost line must follow changes nothing. */
#include <stdint.h>
#include <stdio.h>

#include "import/import_any_internal.h"
#include "tests/fuzz/import_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum profd_status parse(struct arena *a, const uint8_t *data, size_t size, bool comments,
                               struct import_profile **out, struct profd_error *e)
{
    struct import_callgrind *c;
    const char *at = (const char *)data, *end = at + size;
    enum profd_status status = import_callgrind_new(a, NULL, &c, e);
    for (uint64_t number = 1; status == PROFD_OK && at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        status = import_callgrind_line(c, at, (size_t)(stop - at), number, e);
        if (status == PROFD_OK && comments) {
            status = import_callgrind_line(c, "# nothing", 9, number, e);
        }
        at = stop < end ? stop + 1 : end;
    }
    return status == PROFD_OK ? import_callgrind_finish(c, out, e) : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(16u << 20), *b = arena_new(16u << 20);
    struct import_profile *p, *q;
    struct profd_error e = {""}, f = {""};
    enum profd_status first = parse(a, data, size, false, &p, &e), second = parse(b, data, size, true, &q, &f);
    if (first != second || (first != PROFD_OK && (e.sentence[0] == '\0' || strcmp(e.sentence, f.sentence) != 0))) {
        abort();
    }
    if (first == PROFD_OK) {
        import_fuzz_check(p);
        if (p->frame_count != q->frame_count || p->pair_count != q->pair_count) {
            abort();
        }
        for (uint32_t i = 0; i < p->frame_count; i++) {
            if (p->frames[i].ticks != q->frames[i].ticks || p->frames[i].address != q->frames[i].address) {
                abort();
            }
        }
    }
    arena_free(a);
    arena_free(b);
    return 0;
}
