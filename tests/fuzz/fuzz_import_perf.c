/* Laws: what is refused has a sentence; what parses refers to nothing that is not there; each place adds one node at
 * most, and each sample one for outer frames that are left out. */
#include <stdint.h>

#include "import/import_any_internal.h"
#include "tests/fuzz/import_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(16u << 20);
    struct import_perf *perf;
    struct profd_error e = {""};
    const char *at = (const char *)data, *end = at + size;
    uint32_t count = 0;
    uint64_t lines = 0, nodes = 0;
    enum profd_status status = import_perf_new(a, NULL, &perf, &e);
    for (uint64_t number = 1; status == PROFD_OK && at < end; number++, lines++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        status = import_perf_line(perf, at, (size_t)(stop - at), number, &e);
        at = stop < end ? stop + 1 : end;
    }
    if (status == PROFD_OK) {
        status = import_perf_finish(perf, UINT64_C(1700000000000000000), &count, &e);
    }
    if ((status != PROFD_OK) != (e.sentence[0] != '\0') || (status == PROFD_OK) != (count > 0)) {
        abort();
    }
    for (uint32_t i = 0; status == PROFD_OK && i < count; i++) {
        const struct import_profile *p = import_perf_process(perf, i);
        import_fuzz_check(p);
        if (p->start > p->end) {
            abort();
        }
        nodes += p->node_count;
    }
    if (nodes > lines || (status == PROFD_OK && strlen(import_perf_words(perf)) > 4096)) {
        abort();
    }
    arena_free(a);
    return 0;
}
