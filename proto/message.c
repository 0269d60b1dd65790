#include "proto/message.h"

#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
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

const char *message_inexact_name(uint32_t bit)
{
    switch (bit) {
    case INEXACT_THREADS_UNKNOWN:
        return "threads-unknown";
    case INEXACT_CALLER_BUCKET:
        return "caller-bucket";
    case INEXACT_BINS_16_BIT:
        return "16-bit-bins";
    case INEXACT_CLOCK:
        return "clock";
    case INEXACT_SATURATED:
        return "saturated";
    case INEXACT_LOST:
        return "lost";
    case INEXACT_PAUSED:
        return "paused";
    case INEXACT_TICKS_OUTSIDE:
        return "ticks-outside";
    case INEXACT_END_NOT_SEEN:
        return "end-not-seen";
    case INEXACT_NOT_READ:
        return "not-read";
    case INEXACT_LABEL_LEFT_OUT:
        return "label-left-out";
    case INEXACT_SHARED_BINS:
        return "shared-bins";
    case INEXACT_SEGMENT_MISSING:
        return "segment-missing";
    case INEXACT_RESTORED:
        return "restored";
    case INEXACT_HOST_TOTALS:
        return "host-totals";
    case INEXACT_SAMPLED:
        return "sampled";
    default:
        return NULL;
    }
}

const char *message_inexact_meaning(uint32_t bit)
{
    switch (bit) {
    case INEXACT_THREADS_UNKNOWN:
        return "a gmon.out does not say whether calls of several threads were lost";
    case INEXACT_CALLER_BUCKET:
        return "a gmon.out rounds callers down to 16 bytes: one may be taken for the function before it";
    case INEXACT_BINS_16_BIT:
        return "a gmon.out counts at most 65,535 ticks in one place, then begins at 0 again";
    case INEXACT_CLOCK:
        return "a sender's clock was wrong: its counts are in the time range of their arrival";
    case INEXACT_SATURATED:
        return "a sum reached 2^63-1 and is larger";
    case INEXACT_LOST:
        return "a program could not count everything, or an import says that counts were lost";
    case INEXACT_END_NOT_SEEN:
        return "a process ended while it could not be read: its last counts are missing";
    case INEXACT_SAMPLED:
        return "a program does not count its calls: their number is how often a tick found the callee below its caller";
    case INEXACT_TICKS_OUTSIDE:
        return "an import left out ticks in no known build, such as those of the kernel";
    case INEXACT_PAUSED:
        return "counting was paused for some time";
    case INEXACT_NOT_READ:
        return "a live process has not been read since the daemon was started";
    case INEXACT_SEGMENT_MISSING:
        return "a host sent counts that could not be read, or does not have them any more: they are missing";
    case INEXACT_RESTORED:
        return "a host was restored from a backup: counts of its live processes may be missing";
    case INEXACT_HOST_TOTALS:
        return "of this host the centre keeps totals only, which groups shows: ask profd on the host for its functions";
    case INEXACT_LABEL_LEFT_OUT:
        return "a label of a process was invalid: the process is not found by that label";
    case INEXACT_SHARED_BINS:
        return "histogram bins hold code of several functions: self times marked ~ in the flat profile are estimates";
    default:
        return NULL;
    }
}

uint32_t message_inexact_parse(const char *text, size_t n)
{
    uint32_t bits = 0;
    for (size_t from = 0, to; from < n; from = to + 1) {
        for (to = from; to < n && text[to] != ',' && text[to] != ' '; to++) {
        }
        for (uint32_t bit = 1; bit <= INEXACT_ALL; bit <<= 1) {
            const char *name = message_inexact_name(bit);
            bits |= name && strlen(name) == to - from && memcmp(name, text + from, to - from) == 0 ? bit : 0;
        }
    }
    return bits;
}

void message_done(struct message *m)
{
    free(m->block);
    *m = (struct message){0};
}
