/* First byte: 1 takes the rest as gzip. Laws: what is refused has a sentence; what parses refers to nothing that is not
 * there, and parses again to the same. */
#include <stdint.h>

#include "import/import_any_internal.h"
#include "proto/deflate.h"
#include "tests/fuzz/import_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(16u << 20);
    struct import_profile *p, *q;
    struct profd_error e = {""};
    if (import_pprof_parse(data, size, NULL, a, &p, &e) == PROFD_OK) {
        import_fuzz_check(p);
        if (import_pprof_parse(data, size, "cpu", a, &q, NULL) == PROFD_OK && q->frame_count != p->frame_count) {
            abort();
        }
    } else if (e.sentence[0] == '\0') {
        abort();
    }
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *out;
    size_t n;
    struct profd_error e = {""};
    if (size < 1) {
        return 0;
    }
    if (data[0] != 1) {
        parse(data + 1, size - 1);
    } else if (deflate_gunzip(data + 1, size - 1, 1u << 20, &out, &n, &e) == PROFD_OK) {
        if (n > 1u << 20) {
            abort();
        }
        parse(out, n);
        free(out);
    } else if (e.sentence[0] == '\0') {
        abort();
    }
    return 0;
}
