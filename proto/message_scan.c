#include "proto/message_scan.h"

#include <stdbool.h>
#include <string.h>

#include "proto/utf8.h"
#include "proto/varint.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct scan_field {
    uint32_t number;
    const ProtobufCFieldDescriptor *known; /* NULL if from a later version */
    const uint8_t *data;                   /* content of a WIRE_BYTES field, else NULL */
    size_t size;
};

/* Advances *at past the next field. */
static bool scan_next(const ProtobufCMessageDescriptor *d, const uint8_t **at, const uint8_t *end, struct scan_field *f)
{
    uint64_t key, size = 0;
    if (!varint_get(at, end, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) {
        return false;
    }
    *f = (struct scan_field){.number = (uint32_t)(key >> 3)};
    switch (key & 7) {
    case WIRE_VARINT:
        return varint_get(at, end, &size);
    case WIRE_FIXED64:
        size = 8;
        break;
    case WIRE_FIXED32:
        size = 4;
        break;
    case WIRE_BYTES:
        if (!varint_get(at, end, &size)) {
            return false;
        }
        f->data = *at;
        f->known = protobuf_c_message_descriptor_get_field(d, f->number);
        break;
    default:
        return false;
    }
    if (size > (uint64_t)(end - *at)) {
        return false;
    }
    f->size = (size_t)size;
    *at += size;
    return true;
}

static enum profd_status scan_judge_string(const ProtobufCMessageDescriptor *d, const struct scan_field *f,
                                           struct profd_error *e)
{
    if (f->known == NULL || f->known->type != PROTOBUF_C_TYPE_STRING || utf8_valid(f->data, f->size)) {
        return PROFD_OK;
    }
    if (memchr(f->data, 0, f->size) != NULL) {
        return profd_error_set(e, PROFD_MALFORMED, "%s of %s contains a NUL", f->known->name, d->short_name);
    }
    return profd_error_set(e, PROFD_MALFORMED, "%s of %s is not UTF-8", f->known->name, d->short_name);
}

static enum profd_status scan_broken(const ProtobufCMessageDescriptor *d, size_t offset, struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED, "%s is not protobuf: bad field at byte %zu", d->short_name, offset);
}

static enum profd_status scan_submessage(const struct scan_field *outer, struct message_scan *scan,
                                         struct profd_error *e)
{
    const ProtobufCMessageDescriptor *d = outer->known->descriptor;
    const uint8_t *at = outer->data, *end = outer->data + outer->size;
    while (at < end) {
        struct scan_field f;
        size_t offset = (size_t)(at - outer->data);
        if (!scan_next(d, &at, end, &f)) {
            return scan_broken(d, offset, e);
        }
        scan->fields++;
        enum profd_status status = scan_judge_string(d, &f, e);
        if (status != PROFD_OK) {
            return status;
        }
    }
    return PROFD_OK;
}

enum profd_status message_scan(const ProtobufCMessageDescriptor *descriptor, const uint8_t *in, size_t n,
                               struct message_scan *scan, struct profd_error *e)
{
    struct message_scan s = {0};
    const uint8_t *at = in, *end = n == 0 ? in : in + n;
    while (at < end) {
        struct scan_field f;
        size_t offset = (size_t)(at - in);
        if (!scan_next(descriptor, &at, end, &f)) {
            return scan_broken(descriptor, offset, e);
        }
        s.fields++;
        if (f.number < MESSAGE_SCAN_NUMBERS) {
            s.of_number[f.number]++;
        }
        enum profd_status status = scan_judge_string(descriptor, &f, e);
        if (status == PROFD_OK && f.known != NULL && f.known->type == PROTOBUF_C_TYPE_MESSAGE) {
            status = scan_submessage(&f, &s, e);
        }
        if (status != PROFD_OK) {
            return status;
        }
    }
    *scan = s;
    return PROFD_OK;
}
