#include "proto/json_message.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <nettle/base64.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/utf8.h"

#define NAME_MOST 64
#define DEPTH_MOST 64u /* of messages in one another */

/* The name of a field in JSON: each letter behind "_" is a capital, and "_" goes. */
static void name_make(const ProtobufCFieldDescriptor *f, char out[NAME_MOST])
{
    size_t n = 0;
    for (const char *c = f->name; *c && n + 1 < NAME_MOST; c++) {
        const bool next = *c == '_' && c[1] >= 'a' && c[1] <= 'z';
        c += next;
        out[n++] = (char)(next ? *c - 'a' + 'A' : *c);
    }
    out[n] = '\0';
}

/* --- From JSON --- */

static enum profd_status refuse(const ProtobufCFieldDescriptor *f, const char *wanted, struct profd_error *e)
{
    return profd_error_set(e, PROFD_MALFORMED, "the field %s is not %s", f->name, wanted);
}

/* Bytes of a value in the array of a field. */
static size_t value_size(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(double);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(uint32_t);
    }
}

/* Reads a whole number from low to high, which both are in int64_t or (low 0) in uint64_t, from a number or a text. */
static bool read_integer(const json_t *v, int64_t low, uint64_t high, uint64_t *out)
{
    const char *text = json_string_value(v);
    const double real = json_is_real(v) ? json_real_value(v) : 0;
    char digits[32];
    if (json_is_integer(v)) {
        (void)snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        text = digits;
    } else if (json_is_real(v) && fabs(real) <= 0x1p53 && floor(real) == real) {
        (void)snprintf(digits, sizeof digits, "%.0f", real);
        text = digits;
    }
    const bool negative = text && *text == '-';
    uint64_t value = 0;
    const char *c = text ? text + negative : "";
    bool good = *c != '\0';
    for (; good && *c; c++) {
        good = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(value, UINT64_C(10), &value) &&
               !__builtin_add_overflow(value, (uint64_t)(*c - '0'), &value);
    }
    if (!good || value > (negative ? 0 - (uint64_t)low : high)) {
        return false;
    }
    *out = negative ? 0 - value : value;
    return true;
}

static bool read_double(const json_t *v, double *out)
{
    const char *text = json_string_value(v);
    char *end = NULL;
    if (json_is_number(v)) {
        *out = json_number_value(v);
        return true;
    }
    *out = text ? strtod(text, &end) : 0;
    return text && *text && !*end;
}

static bool read_bytes(const json_t *v, ProtobufCBinaryData *out)
{
    const char *text = json_string_value(v);
    const size_t n = json_string_length(v);
    struct base64_decode_ctx decoding;
    size_t size = BASE64_DECODE_LENGTH(n);
    out->data = text ? malloc(size + 1) : NULL;
    if (!out->data) {
        return false;
    }
    (strpbrk(text, "-_") ? base64url_decode_init : base64_decode_init)(&decoding);
    const bool good = base64_decode_update(&decoding, &size, out->data, n, text) && base64_decode_final(&decoding);
    out->len = good ? size : 0;
    return good;
}

static enum profd_status read_message(const ProtobufCMessageDescriptor *d, const json_t *v, unsigned depth,
                                      ProtobufCMessage **out, struct profd_error *e);

/* Reads one value to its place in the message or the array. What it allocates belongs to the message even if it fails.
 */
static enum profd_status read_value(const ProtobufCFieldDescriptor *f, const json_t *v, unsigned depth, void *place,
                                    struct profd_error *e)
{
    uint64_t number = 0;
    double real = 0;
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_message(f->descriptor, v, depth + 1, place, e);
    case PROTOBUF_C_TYPE_STRING:
        if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v)) {
            return refuse(f, "a text", e);
        }
        *(char **)place = strdup(json_string_value(v));
        return *(char **)place ? PROFD_OK : profd_no_memory(e);
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(v, place) ? PROFD_OK : refuse(f, "base64", e);
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)place = json_is_true(v);
        return json_is_boolean(v) ? PROFD_OK : refuse(f, "true or false", e);
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_double(v, place) ? PROFD_OK : refuse(f, "a number", e);
    case PROTOBUF_C_TYPE_FLOAT:
        if (!read_double(v, &real)) {
            return refuse(f, "a number", e);
        }
        *(float *)place = (float)real;
        return PROFD_OK;
    case PROTOBUF_C_TYPE_ENUM: {
        const char *name = json_string_value(v);
        const ProtobufCEnumValue *named =
            name ? protobuf_c_enum_descriptor_get_value_by_name(f->descriptor, name) : NULL;
        if (!named && (name || !read_integer(v, INT32_MIN, INT32_MAX, &number))) {
            return refuse(f, "one of the names or numbers of its type", e);
        }
        *(int32_t *)place = named ? named->value : (int32_t)(int64_t)number;
        return PROFD_OK;
    }
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_integer(v, INT64_MIN, INT64_MAX, place) ? PROFD_OK : refuse(f, "a whole number of 64 bits", e);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_integer(v, 0, UINT64_MAX, place) ? PROFD_OK : refuse(f, "a whole number of 64 bits", e);
    default: {
        const bool is_signed = f->type == PROTOBUF_C_TYPE_INT32 || f->type == PROTOBUF_C_TYPE_SINT32 ||
                               f->type == PROTOBUF_C_TYPE_SFIXED32;
        if (!read_integer(v, is_signed ? INT32_MIN : 0, is_signed ? INT32_MAX : UINT32_MAX, &number)) {
            return refuse(f, "a whole number of 32 bits", e);
        }
        *(uint32_t *)place = (uint32_t)number;
        return PROFD_OK;
    }
    }
}

static enum profd_status read_array(const ProtobufCFieldDescriptor *f, const json_t *v, unsigned depth,
                                    ProtobufCMessage *m, struct profd_error *e)
{
    size_t *count = (size_t *)((char *)m + f->quantifier_offset);
    const size_t size = value_size(f), n = json_array_size(v);
    if (!json_is_array(v) || *count > 0) {
        return refuse(f, "one list", e);
    }
    char *values = calloc(n + 1, size);
    TRY(values ? PROFD_OK : profd_no_memory(e));
    *(void **)((char *)m + f->offset) = values;
    /* The count grows with the values, so that what is there is freed if one fails. */
    for (size_t i = 0; i < n; i++) {
        (*count)++;
        TRY(read_value(f, json_array_get(v, i), depth, values + i * size, e));
    }
    return PROFD_OK;
}

/* Reads a field that is not null into its message. */
static enum profd_status read_field(const ProtobufCFieldDescriptor *f, const json_t *v, unsigned depth,
                                    ProtobufCMessage *m, struct profd_error *e)
{
    void *place = (char *)m + f->offset, *quantifier = (char *)m + f->quantifier_offset;
    const bool is_oneof = f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        return read_array(f, v, depth, m, e);
    }
    if (is_oneof && *(uint32_t *)quantifier != 0) {
        return refuse(f, "the only one of its group", e);
    }
    const bool pointed = f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE;
    if (!is_oneof && pointed && *(void **)place != (f->type == PROTOBUF_C_TYPE_STRING ? f->default_value : NULL)) {
        return refuse(f, "there once", e);
    }
    if (is_oneof) {
        /* Its place holds nothing yet, and is freed as that of this field from now on. */
        memset(place, 0, value_size(f));
        *(uint32_t *)quantifier = f->id;
    } else if (f->label == PROTOBUF_C_LABEL_OPTIONAL && !pointed) {
        *(protobuf_c_boolean *)quantifier = 1;
    }
    return read_value(f, v, depth, place, e);
}

static enum profd_status read_message(const ProtobufCMessageDescriptor *d, const json_t *v, unsigned depth,
                                      ProtobufCMessage **out, struct profd_error *e)
{
    FAIL_IF(!json_is_object(v) || depth > DEPTH_MOST, e, PROFD_MALFORMED,
            "%s is not a JSON object, or lies deeper than %u others", d->short_name, DEPTH_MOST);
    *out = calloc(1, d->sizeof_message);
    TRY(*out ? PROFD_OK : profd_no_memory(e));
    protobuf_c_message_init(d, *out);
    for (unsigned i = 0; i < d->n_fields; i++) {
        char name[NAME_MOST];
        name_make(&d->fields[i], name);
        const json_t *camel = json_object_get(v, name), *plain = json_object_get(v, d->fields[i].name);
        const json_t *value = camel ? camel : plain;
        if (value && !json_is_null(value)) {
            TRY(read_field(&d->fields[i], value, depth, *out, e));
        }
    }
    return PROFD_OK;
}

enum profd_status json_message_decode(const ProtobufCMessageDescriptor *d, const char *text, size_t n, size_t most,
                                      ProtobufCMessage **out, struct profd_error *e)
{
    ProtobufCMessage *m = NULL;
    json_error_t why;
    size_t values = 1;
    for (size_t i = 0; i < n; i++) {
        values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    }
    FAIL_IF(values > most, e, PROFD_TOO_LARGE, "the JSON has about %zu values, at most %zu", values, most);
    json_t *root = n > 0 ? json_loadb(text, n, JSON_REJECT_DUPLICATES, &why) : json_object();
    FAIL_IF(!root, e, PROFD_MALFORMED, "the body is not JSON: %s (byte %d)", n > 0 ? why.text : "no memory",
            n > 0 ? why.position : 0);
    const enum profd_status status = read_message(d, root, 0, &m, e);
    json_decref(root);
    if (status) {
        if (m) {
            protobuf_c_message_free_unpacked(m, NULL);
        }
        return status;
    }
    *out = m;
    return PROFD_OK;
}

/* --- To JSON --- */

/* All of these are false if a number is not finite, or there is no memory. */
static bool write_message(FILE *out, const ProtobufCMessage *m);

static bool write_json(FILE *out, json_t *v)
{
    const bool good = v && json_dumpf(v, out, JSON_COMPACT | JSON_ENCODE_ANY) == 0;
    json_decref(v);
    return good;
}

static bool write_bytes(FILE *out, const ProtobufCBinaryData *b)
{
    char *text = malloc(BASE64_ENCODE_RAW_LENGTH(b->len) + 1);
    const bool good = text;
    if (good) {
        base64_encode_raw(text, b->len, b->data);
        (void)fprintf(out, "\"%.*s\"", (int)BASE64_ENCODE_RAW_LENGTH(b->len), text);
    }
    free(text);
    return good;
}

/* A sentence may quote bytes that are not UTF-8, or be cut inside a character. */
static bool write_text(FILE *out, const char *text)
{
    size_t n = strlen(text), size = 0;
    char *valid = malloc(3 * n + 1);
    for (size_t length; valid && n > 0; text += length, n -= length) {
        length = utf8_length((const uint8_t *)text, n);
        memcpy(valid + size, length ? text : "\xef\xbf\xbd", length ? length : 3);
        size += length ? length : 3;
        length = length ? length : 1;
    }
    const bool good = valid && write_json(out, json_stringn_nocheck(valid, size));
    free(valid);
    return good;
}

static bool write_value(FILE *out, const ProtobufCFieldDescriptor *f, const void *place)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return write_message(out, *(ProtobufCMessage *const *)place);
    case PROTOBUF_C_TYPE_STRING:
        return write_text(out, *(const char *const *)place);
    case PROTOBUF_C_TYPE_BYTES:
        return write_bytes(out, place);
    case PROTOBUF_C_TYPE_BOOL:
        return write_json(out, json_boolean(*(const protobuf_c_boolean *)place));
    case PROTOBUF_C_TYPE_DOUBLE:
        return write_json(out, json_real(*(const double *)place));
    case PROTOBUF_C_TYPE_FLOAT:
        return write_json(out, json_real((double)*(const float *)place));
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(f->descriptor, *(const int *)place);
        return write_json(out, value ? json_string(value->name) : json_integer(*(const int *)place));
    }
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return fprintf(out, "\"%" PRId64 "\"", *(const int64_t *)place) > 0;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return fprintf(out, "\"%" PRIu64 "\"", *(const uint64_t *)place) > 0;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return fprintf(out, "%" PRIu32, *(const uint32_t *)place) > 0;
    default:
        return fprintf(out, "%" PRId32, *(const int32_t *)place) > 0;
    }
}

/* Returns whether a field that is not a list has a value. */
static bool has_value(const ProtobufCFieldDescriptor *f, const ProtobufCMessage *m)
{
    const void *place = (const char *)m + f->offset, *quantifier = (const char *)m + f->quantifier_offset;
    static const char zeros[sizeof(ProtobufCBinaryData)];
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        return *(const uint32_t *)quantifier == f->id;
    }
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        return *(void *const *)place;
    }
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)place;
        return text && (f->label != PROTOBUF_C_LABEL_NONE || *text);
    }
    return f->label == PROTOBUF_C_LABEL_OPTIONAL ? *(const protobuf_c_boolean *)quantifier
                                                 : memcmp(place, zeros, value_size(f)) != 0;
}

static bool write_message(FILE *out, const ProtobufCMessage *m)
{
    const ProtobufCMessageDescriptor *d = m->descriptor;
    bool good = true, first = true;
    (void)putc('{', out);
    for (unsigned i = 0; good && i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        const char *place = (const char *)m + f->offset;
        const bool list = f->label == PROTOBUF_C_LABEL_REPEATED;
        const size_t n = list ? *(const size_t *)((const char *)m + f->quantifier_offset) : has_value(f, m);
        char name[NAME_MOST];
        if (n == 0) {
            continue;
        }
        name_make(f, name);
        (void)fprintf(out, "%s\"%s\":%s", first ? "" : ",", name, list ? "[" : "");
        place = list ? *(const char *const *)place : place;
        for (size_t k = 0; good && k < n; k++) {
            (void)fputs(k > 0 ? "," : "", out);
            good = write_value(out, f, place + k * value_size(f));
        }
        (void)fputs(list ? "]" : "", out);
        first = false;
    }
    (void)putc('}', out);
    return good;
}

enum profd_status json_message_encode(const ProtobufCMessage *m, char **text, size_t *n, struct profd_error *e)
{
    char *made = NULL;
    FILE *out = open_memstream(&made, n);
    const bool good = out && write_message(out, m) && !ferror(out);
    if ((out && fclose(out) != 0) || !good) {
        free(made);
        return profd_no_memory(e);
    }
    *text = made;
    return PROFD_OK;
}
