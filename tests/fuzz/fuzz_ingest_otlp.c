/* Requests of OTLP. First byte: 0 is protobuf, 1 JSON. Laws: what is refused has a sentence, and so has the first
 * rejected profile; a profile that was read is validated or refused with a sentence. */
#include <stdint.h>
#include <stdlib.h>

#include "ingest/otlp.h"
#include "tests/scratch_store.h"

#define REQUIRE(condition) ((condition) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct foreign_names *names;
    static struct build_cache *cache;
    static struct store *store;
    struct profd_error e = {""};
    struct otlp_rejected rejected = {0};
    struct foreign_list list = TAILQ_HEAD_INITIALIZER(list);
    struct foreign *f;
    if (!names) {
        REQUIRE(scratch_store_open(&store, NULL) == PROFD_OK && build_cache_new(store, &cache, NULL) == PROFD_OK &&
                foreign_names_new(&names, NULL) == PROFD_OK);
    }
    if (size == 0) {
        return 0;
    }
    const struct foreign_request r = {.names = names,
                                      .uid = 1,
                                      .received = INT64_C(1760000000000000000),
                                      .target = OTLP_PATH,
                                      .content_type = data[0] & 1 ? "application/json" : "application/x-protobuf",
                                      .body = data + 1,
                                      .size = size - 1};
    const enum profd_status status = otlp_read(&r, &list, &rejected, &e);
    REQUIRE(!status || e.sentence[0]);
    REQUIRE(rejected.count == 0 || rejected.why.sentence[0]);
    while ((f = TAILQ_FIRST(&list))) {
        foreign_check(f, cache, 0);
        REQUIRE(!f->item.status == !f->item.error.sentence[0]);
        TAILQ_REMOVE(&list, f, next);
        foreign_free(f);
    }
    return 0;
}
