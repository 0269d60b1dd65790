#include "gate/frames.h"

#include <string.h>

#include "proto/varint.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
enum {
    FIELD_HOST = 1,
    FIELD_ARRIVE_NAME = 2,
    FIELD_ARRIVE_KEY = 7,
    FIELD_ARRIVE_TENANT = 8,
    FIELD_ARRIVE_NOT_AFTER = 11
};

/* Bytes of a payload; 0: the type does not pass. */
static uint32_t frames_most(unsigned type)
{
    switch (type) {
    case FRAME_HELLO:
    case FRAME_ATTEST:
        return FRAMES_HELLO_MAX;
    case FRAME_OBJECT_BYTES:
        return LIMIT_ATTEST_PIECE + FRAMES_HELLO_MAX;
    case FRAME_ARRIVE:
    case FRAME_DELIVER:
        return FRAMES_PAYLOAD_MAX;
    case FRAME_ENROLL:
    case FRAME_RENEW:
        return FRAMES_ENROLL_MAX;
    default:
        return 0;
    }
}

static enum profd_status frames_check_enrolment(unsigned type, enum frames_stage stage, struct profd_error *e)
{
    if (stage == FRAMES_BEFORE_ENROLL && type != FRAME_ENROLL) {
        return profd_error_set(e, PROFD_UNAUTHORIZED,
                               "a host without a certificate may only send ENROLL: enrol it (profctl enroll)");
    }
    if (stage == FRAMES_BEFORE_RENEW && type != FRAME_RENEW) {
        return profd_error_set(e, PROFD_UNAUTHORIZED, "the certificate has expired: the host may only send RENEW");
    }
    return stage == FRAMES_BEFORE_ENROLL || stage == FRAMES_BEFORE_RENEW ||
                   (stage == FRAMES_BEFORE_ARRIVE && type == FRAME_RENEW)
               ? PROFD_OK
               : profd_error_set(e, PROFD_PROTOCOL, "%s is not allowed here", frame_type_name(type));
}

enum profd_status frames_check(const struct frame *f, enum frames_stage stage, struct profd_error *e)
{
    const bool hello = f->type == FRAME_HELLO, arrive = f->type == FRAME_ARRIVE;
    const uint32_t most = frames_most(f->type);
    enum profd_status status = PROFD_OK;

    if (!most) {
        return profd_error_set(e, PROFD_FORBIDDEN,
                               "%s does not pass the gate: only HELLO, ARRIVE, DELIVER, ATTEST, OBJECT_BYTES, ENROLL "
                               "and RENEW do",
                               frame_type_name(f->type));
    }
    if (hello != (stage == FRAMES_BEFORE_HELLO)) {
        return profd_error_set(e, PROFD_PROTOCOL, hello ? "a second HELLO" : "%s before HELLO",
                               frame_type_name(f->type));
    }
    if (stage >= FRAMES_BEFORE_ENROLL || f->type == FRAME_ENROLL || f->type == FRAME_RENEW) {
        status = frames_check_enrolment(f->type, stage, e);
    } else if (!hello && arrive != (stage == FRAMES_BEFORE_ARRIVE)) {
        return profd_error_set(e, PROFD_PROTOCOL, arrive ? "a second ARRIVE" : "%s before ARRIVE",
                               frame_type_name(f->type));
    }
    if (status) {
        return status;
    }
    if (frame_fds(f)) {
        return profd_error_set(e, PROFD_PROTOCOL, "descriptors cannot be sent through the gate");
    }
    if (f->flags & FRAME_FLAG_COMPRESSED) {
        return profd_error_set(e, PROFD_FORBIDDEN, "compressed frames do not pass the gate; segments are compressed");
    }
    if (!f->length) {
        return profd_error_set(e, PROFD_MALFORMED, "%s without a payload", frame_type_name(f->type));
    }
    if (f->length > most) {
        return profd_error_set(e, PROFD_TOO_LARGE, "the payload of %s has %u bytes, at the gate at most %u",
                               frame_type_name(f->type), f->length, most);
    }
    return PROFD_OK;
}

/* Skips the value of a field. False if the payload ends in it. */
static bool frames_skip(unsigned wire, const uint8_t **at, const uint8_t *end)
{
    uint64_t size = wire == WIRE_FIXED64 ? 8 : wire == WIRE_FIXED32 ? 4 : 0;

    if (wire == WIRE_VARINT) {
        return varint_get(at, end, &size);
    }
    if (wire == WIRE_BYTES ? !varint_get(at, end, &size) : !size) {
        return false;
    }
    if (size > (uint64_t)(end - *at)) {
        return false;
    }
    *at += size;
    return true;
}

static bool frames_is_added(uint64_t field)
{
    return field == FIELD_ARRIVE_NAME || field == FIELD_ARRIVE_KEY || field == FIELD_ARRIVE_TENANT ||
           field == FIELD_ARRIVE_NOT_AFTER;
}

enum profd_status frames_check_fields(unsigned type, const uint8_t *payload, size_t n, struct profd_error *e)
{
    const uint8_t *at = payload, *end = payload + n;

    while (at < end) {
        const size_t offset = (size_t)(at - payload);
        uint64_t key;

        if (!varint_get(&at, end, &key) || !frames_skip(key & 7, &at, end)) {
            return profd_error_set(e, PROFD_MALFORMED, "%s is not protobuf: bad field at byte %zu",
                                   frame_type_name(type), offset);
        }
        if (key >> 3 == FIELD_HOST || (type == FRAME_ARRIVE && frames_is_added(key >> 3))) {
            return profd_error_set(e, PROFD_FORBIDDEN,
                                   "%s states the host: that is for the gate, which takes it from the certificate",
                                   frame_type_name(type));
        }
    }
    return PROFD_OK;
}

/* One field of at most 16383 bytes. */
static size_t frames_add_bytes(unsigned number, const void *data, size_t n, uint8_t *out)
{
    size_t at = 0;

    out[at++] = (uint8_t)(number << 3 | WIRE_BYTES);
    if (n > 127) {
        out[at++] = (uint8_t)(n & 127) | 128;
    }
    out[at++] = (uint8_t)(n > 127 ? n >> 7 : n);
    memcpy(out + at, data, n);
    return at + n;
}

size_t frames_add(unsigned type, const struct tls_identity *host, uint8_t *out)
{
    size_t n = frames_add_bytes(FIELD_HOST, host->host, sizeof host->host, out);

    if (type == FRAME_ARRIVE) {
        n += frames_add_bytes(FIELD_ARRIVE_NAME, host->name, strlen(host->name), out + n);
        n += frames_add_bytes(FIELD_ARRIVE_KEY, host->key, sizeof host->key, out + n);
        n += frames_add_bytes(FIELD_ARRIVE_TENANT, host->tenant, strlen(host->tenant), out + n);
        out[n++] = FIELD_ARRIVE_NOT_AFTER << 3 | WIRE_FIXED64;
        for (unsigned i = 0; i < 8; i++) {
            out[n++] = (uint8_t)((uint64_t)host->not_after >> 8 * i);
        }
    }
    return n;
}

bool frames_may_answer(unsigned type)
{
    return type == FRAME_ADMIT || type == FRAME_ACKNOWLEDGE || type == FRAME_ATTESTED || type == FRAME_ENROLLED ||
           type == FRAME_REVOKED || type == FRAME_NACK;
}
