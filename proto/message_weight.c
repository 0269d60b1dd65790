#include "proto/limits.h"
#include "proto/message.h"
#include "proto/varint.h"

enum { WEIGHT_COUNTS = 8, WEIGHT_FIELDS_MAX = 8192 }; /* number of Upload's counts; fields that are looked at */

/* Bytes after the key of a field; advances *at to its content. False: not protobuf. */
static bool weight_field(const uint8_t **at, const uint8_t *end, unsigned wire, uint64_t *size)
{
    uint64_t ignored;
    switch (wire) {
    case 0:
        *size = 0;
        return varint_get(at, end, &ignored);
    case 1:
        *size = 8;
        break;
    case 2:
        if (!varint_get(at, end, size)) {
            return false;
        }
        break;
    case 5:
        *size = 4;
        break;
    default:
        return false;
    }
    return *size <= (uint64_t)(end - *at);
}

size_t message_upload_weight(const uint8_t *payload, size_t n)
{
    const uint8_t *at = payload, *end = n == 0 ? payload : payload + n;
    size_t weight = n;
    for (unsigned fields = 0; at < end; fields++) {
        uint64_t key, size, stated;
        if (fields == WEIGHT_FIELDS_MAX) {
            return weight + LIMIT_COUNTS_RAW;
        }
        if (!varint_get(&at, end, &key) || !weight_field(&at, end, (unsigned)(key & 7), &size)) {
            return weight; /* refused without being unpacked */
        }
        const uint8_t *inside = at + 1; /* after the format byte */
        if (key == (WEIGHT_COUNTS << 3 | 2) && size > 1 && varint_get(&inside, at + size, &stated) &&
            stated <= LIMIT_COUNTS_RAW) {
            weight += (size_t)stated;
        }
        at += size;
    }
    return weight;
}
