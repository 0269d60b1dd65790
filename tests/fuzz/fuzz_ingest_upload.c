/* Payloads of UPLOAD frames from strangers, into a store that knows the executable of build "aaaa…": whatever comes
 * gets a status, refusals get a sentence, and what was stored once is a duplicate the second time. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/object.h"
#include "ingest/ingest.h"
#include "tests/scratch_store.h"

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static struct store *open_store(void)
{
    struct store *s;
    struct object_range range = {0x1000, 0x2000, OBJECT_RANGE_TEXT};
    struct object o = {.bits = 64,
                       .has_executable_start = true,
                       .has_etext = true,
                       .executable_start = 0x1000,
                       .etext = 0x2000,
                       .range_count = 1,
                       .ranges = &range,
                       .name_bytes = 1,
                       .names = "",
                       .note = ""};
    uint8_t *bytes;
    size_t n;
    memset(o.id.text, 'a', 40);
    memset(o.variant, 'b', 64);
    require(scratch_store_open(&s, NULL) == PROFD_OK);
    require(object_encode(&o, &bytes, &n, NULL) == PROFD_OK);
    struct ingest_object object = {.trusted = true, .build_id = "", .name = "x", .answer = bytes, .answer_size = n};
    require(ingest_object_store(s, &object, NULL) == PROFD_OK);
    free(bytes);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct store *s = open_store();
    struct store_totals t;
    struct ingest_item items[2];
    struct build_cache *cache;
    for (int i = 0; i < 2; i++) {
        items[i] = (struct ingest_item){.uid = 1, .received = INT64_C(1760000000000000000), .payload = data, .size = n};
    }
    require(build_cache_new(s, &cache, NULL) == PROFD_OK);
    ingest_check(cache, 0, &items[0]);
    ingest_check(cache, 0, &items[1]);
    ingest_batch(s, 0, (struct ingest_item *[]){&items[0], &items[1]}, 2);
    build_cache_free(cache);
    require(store_get_totals(s, &t, NULL) == PROFD_OK);
    for (int i = 0; i < 2; i++) {
        require(items[i].status == items[0].status);
        require((items[i].status == PROFD_OK) == (items[i].error.sentence[0] == 0));
        require(items[i].duplicate == (i == 1 && items[i].status == PROFD_OK));
        ingest_item_done(&items[i]);
    }
    require(t.uploads == (items[0].status == PROFD_OK));
    store_close(s);
    return 0;
}
