#include "store/block_keys.h"

#include "proto/varint.h"

#define TENANT_BYTES 256u /* of a tenant's name, with its NUL: more than any has */

static void add_number(struct buffer *b, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    buffer_add(b, bytes, (size_t)(varint_put(bytes, value) - bytes));
}

void block_keys_add(struct buffer *b, const char *tenant, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                    const struct block_keys_range *ranges, size_t n)
{
    uint64_t next = 1;
    add_number(b, strlen(tenant));
    buffer_add_text(b, tenant);
    buffer_add(b, epoch, SEGMENT_EPOCH_SIZE);
    add_number(b, n);
    for (size_t i = 0; i < n; i++) {
        add_number(b, ranges[i].low - next);
        add_number(b, ranges[i].high - ranges[i].low);
        next = ranges[i].high + 1;
    }
}

static enum profd_status spoiled(size_t at, struct profd_error *e)
{
    return profd_error_set(e, PROFD_PROTOCOL, "the keys of a block have a fault at byte %zu", at);
}

/* Reads one range behind the sequence *last. */
static bool take_range(const uint8_t **at, const uint8_t *end, uint64_t *last, struct block_keys_range *out)
{
    uint64_t gap, more;
    return varint_get(at, end, &gap) && varint_get(at, end, &more) && !__builtin_add_overflow(*last, 1, &out->low) &&
           !__builtin_add_overflow(out->low, gap, &out->low) && !__builtin_add_overflow(out->low, more, &out->high) &&
           (*last = out->high, true);
}

enum profd_status
block_keys_decode(const uint8_t *bytes, size_t size,
                  enum profd_status (*each)(void *context, const char *tenant, const uint8_t epoch[SEGMENT_EPOCH_SIZE],
                                            const struct block_keys_range *range, struct profd_error *e),
                  void *context, struct profd_error *e)
{
    const uint8_t *at = bytes, *const end = bytes + size;
    while (at < end) {
        char tenant[TENANT_BYTES];
        uint8_t epoch[SEGMENT_EPOCH_SIZE];
        uint64_t length, ranges, last = 0;
        if (!varint_get(&at, end, &length) || length >= sizeof tenant ||
            (size_t)(end - at) < length + SEGMENT_EPOCH_SIZE || memchr(at, '\0', length)) {
            return spoiled((size_t)(at - bytes), e);
        }
        memcpy(tenant, at, length);
        tenant[length] = '\0';
        memcpy(epoch, at + length, sizeof epoch);
        at += length + sizeof epoch;
        if (!varint_get(&at, end, &ranges) || ranges == 0) {
            return spoiled((size_t)(at - bytes), e);
        }
        for (; ranges > 0; ranges--) {
            struct block_keys_range range;
            if (!take_range(&at, end, &last, &range)) {
                return spoiled((size_t)(at - bytes), e);
            }
            TRY(each(context, tenant, epoch, &range, e));
        }
    }
    return PROFD_OK;
}
