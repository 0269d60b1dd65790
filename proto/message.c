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

struct message_bytes message_upload_counts(const uint8_t *payload, size_t n)
{
    const uint8_t *at = payload, *end = n == 0 ? payload : payload + n;
    struct message_bytes counts = {NULL, 0};
    uint64_t key, size;
    for (unsigned fields = 0; at < end && fields < WEIGHT_FIELDS_MAX; fields++) { /* of more, nothing is unpacked */
        if (!varint_get(&at, end, &key) || !weight_field(&at, end, (unsigned)(key & 7), &size)) {
            break;
        }
        if (key == (WEIGHT_COUNTS << 3 | 2)) {
            counts = (struct message_bytes){at, (size_t)size};
        }
        at += size;
    }
    return counts;
}

size_t message_upload_weight(const uint8_t *payload, size_t n)
{
    const struct message_bytes counts = message_upload_counts(payload, n);
    const uint8_t *at = counts.data + (counts.size > 0); /* after the format byte */
    uint64_t stated;
    const bool fits =
        counts.size > 1 && varint_get(&at, counts.data + counts.size, &stated) && stated <= LIMIT_COUNTS_RAW;
    return n + (fits ? (size_t)stated : 0);
}

static const struct {
    uint32_t bit;
    const char *name, *meaning;
} reasons[] = {
    {INEXACT_THREADS_UNKNOWN, "threads-unknown", "a gmon.out does not say whether calls of several threads were lost"},
    {INEXACT_CALLER_BUCKET, "caller-bucket",
     "a gmon.out rounds callers down to 16 bytes: one may be taken for the function before it"},
    {INEXACT_BINS_16_BIT, "16-bit-bins", "a gmon.out counts at most 65,535 ticks in one place, then begins at 0 again"},
    {INEXACT_CLOCK, "clock", "a sender's clock was wrong: its counts are in the time range of their arrival"},
    {INEXACT_SATURATED, "saturated", "a sum reached 2^63-1 and is larger"},
    {INEXACT_CALLS_LOST, "calls-lost",
     "a program could not count all calls, an import says that counts were lost, or a sum has more arcs than fit: the "
     "calls of the rarest count in the total only"},
    {INEXACT_TICKS_LOST, "ticks-lost",
     "a program did not get all ticks (some take SIGPROF themselves), an import says that counts were lost, or a sum "
     "has more histograms than fit"},
    {INEXACT_PAUSED, "paused", "counting was paused for some time"},
    {INEXACT_TICKS_OUTSIDE, "ticks-outside", "an import left out ticks in no known build, such as those of the kernel"},
    {INEXACT_END_NOT_SEEN, "end-not-seen", "the end of a process was not seen: its last counts are missing"},
    {INEXACT_NOT_READ, "not-read", "a live process has not been read since the daemon was started"},
    {INEXACT_LABEL_LEFT_OUT, "label-left-out",
     "a label of a process was invalid: the process is not found by that label"},
    {INEXACT_SHARED_BINS, "shared-bins",
     "histogram bins hold code of several functions: self times marked ~ in the flat profile are estimates"},
    {INEXACT_SEGMENT_MISSING, "upload-missing",
     "counts of a host are missing: its upload could not be read, or the host does not have it any more"},
    {INEXACT_RESTORED, "restored", "a host was restored from a backup: counts of its live processes may be missing"},
    {INEXACT_HOST_TOTALS, "host-totals",
     "the centre stores only totals of this host, which groups shows: ask profd on the host for its functions"},
    {INEXACT_AMBIGUOUS_NAMES, "ambiguous-names",
     "an import names functions by a name that several have: the first of them got the counts of all"},
    {INEXACT_LEFT_OUT, "left-out",
     "functions were left out of counting on request (PROFD_LEAVE_OUT): calls into them are missing, all others are "
     "counted"},
    {INEXACT_SAMPLED, "sampled",
     "a program does not count its calls: where there is a number, it is how often a tick found the callee below its "
     "caller"},
};

const char *message_inexact_name(uint32_t bit)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].bit == bit) {
            return reasons[i].name;
        }
    }
    return NULL;
}

const char *message_inexact_meaning(uint32_t bit)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].bit == bit) {
            return reasons[i].meaning;
        }
    }
    return NULL;
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
