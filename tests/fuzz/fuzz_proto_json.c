/* Input: a byte that chooses a message, then JSON.
 * Law: it is refused with a sentence; or what was read is written as JSON, which is read again and packs to the same
 * bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json_message.h"
#include "proto/profd.pb-c.h"
#include "proto/pyroscope.pb-c.h"

#define REQUIRE(condition) ((condition) ? (void)0 : abort())
#define VALUES_MOST 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ProtobufCMessageDescriptor *const MESSAGES[] = {
        &profd__pyroscope__select_merge_stacktraces_request__descriptor,
        &profd__pyroscope__diff_request__descriptor,
        &profd__pyroscope__select_series_request__descriptor,
        &profd__pyroscope__profile__descriptor,
        &profd__pyroscope__flame_graph__descriptor,
        &profd__wire__upload__descriptor,
    };
    struct profd_error e = {""};
    ProtobufCMessage *m = NULL, *again = NULL;
    char *text = NULL;
    size_t n = 0;
    if (size == 0) {
        return 0;
    }
    const ProtobufCMessageDescriptor *d = MESSAGES[data[0] % (sizeof MESSAGES / sizeof *MESSAGES)];
    if (json_message_decode(d, (const char *)data + 1, size - 1, VALUES_MOST, &m, &e)) {
        REQUIRE(e.sentence[0] && !m);
        return 0;
    }
    REQUIRE(json_message_encode(m, &text, &n, &e) == PROFD_OK && strlen(text) == n);
    REQUIRE(json_message_decode(d, text, n, SIZE_MAX, &again, &e) == PROFD_OK);
    const size_t packed = protobuf_c_message_get_packed_size(m);
    REQUIRE(packed == protobuf_c_message_get_packed_size(again));
    uint8_t *bytes = malloc(2 * packed + 1);
    REQUIRE(bytes);
    protobuf_c_message_pack(m, bytes);
    protobuf_c_message_pack(again, bytes + packed);
    REQUIRE(memcmp(bytes, bytes + packed, packed) == 0);
    free(bytes);
    free(text);
    protobuf_c_message_free_unpacked(m, NULL);
    protobuf_c_message_free_unpacked(again, NULL);
    return 0;
}
