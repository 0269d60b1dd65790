#include "core/object.h"

#include <stdint.h>
#include <string.h>

#include "core/buffer.h"
#include "proto/limits.h"
#include "proto/utf8.h"
#include "proto/varint.h"

static const uint8_t object_magic[3] = {'P', 'F', 'O'};

#define OBJECT_VERSION 1u

#define OBJECT_FLAG_BIG_ENDIAN 1u
#define OBJECT_FLAG_POSITION_INDEPENDENT 2u
#define OBJECT_FLAG_HAS_NAMES 4u
#define OBJECT_FLAG_ONLY_DYNAMIC 8u
#define OBJECT_FLAG_HAS_EXECUTABLE_START 16u
#define OBJECT_FLAG_HAS_ETEXT 32u
#define OBJECT_FLAG_KNOWS_RETURNS 64u
#define OBJECT_FLAGS_KNOWN 127u

/* Fewest bytes of one row: a count above bytes left / this is a lie, refused before memory is taken. */
#define OBJECT_SYMBOL_BYTES 7u
#define OBJECT_RANGE_BYTES 3u
#define OBJECT_PLT_BYTES 3u
#define OBJECT_ARC_BYTES 3u
#define OBJECT_LINE_BYTES 4u
#define OBJECT_FILE_BYTES (1u + OBJECT_DIGEST_BYTES)
#define OBJECT_INSTRUCTION_BYTES 3u

static void object_put(struct buffer *b, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    buffer_add(b, bytes, (size_t)(varint_put(bytes, value) - bytes));
}

static void object_put_difference(struct buffer *b, uint64_t value, uint64_t base)
{
    object_put(b, varint_zigzag(value - base));
}

static void object_put_text(struct buffer *b, const char *text, size_t n)
{
    object_put(b, n);
    buffer_add(b, text, n);
}

static void object_put_head(struct buffer *b, const struct object *o)
{
    unsigned flags = (o->big_endian ? OBJECT_FLAG_BIG_ENDIAN : 0u) |
                     (o->position_independent ? OBJECT_FLAG_POSITION_INDEPENDENT : 0u) |
                     (o->has_names ? OBJECT_FLAG_HAS_NAMES : 0u) | (o->only_dynamic ? OBJECT_FLAG_ONLY_DYNAMIC : 0u) |
                     (o->has_executable_start ? OBJECT_FLAG_HAS_EXECUTABLE_START : 0u) |
                     (o->has_etext ? OBJECT_FLAG_HAS_ETEXT : 0u) | (o->knows_returns ? OBJECT_FLAG_KNOWS_RETURNS : 0u);
    buffer_add(b, object_magic, sizeof object_magic);
    buffer_add_char(b, OBJECT_VERSION);
    object_put_text(b, o->id.text, strlen(o->id.text));
    object_put_text(b, o->variant, strlen(o->variant));
    object_put(b, o->machine);
    object_put(b, o->bits);
    object_put(b, flags);
    object_put(b, o->executable_start);
    object_put(b, o->etext);
    object_put_text(b, o->note == NULL ? "" : o->note, o->note == NULL ? 0 : strlen(o->note));
    object_put_text(b, o->names, o->name_bytes);
}

static void object_put_addresses(struct buffer *b, const uint64_t *addresses, uint32_t n)
{
    object_put(b, n);
    for (uint32_t i = 0; i < n; i++) {
        object_put(b, addresses[i] - (i > 0 ? addresses[i - 1] : 0));
    }
}

static void object_put_lines(struct buffer *b, const struct object *o)
{
    struct buffer rows;
    struct object_line last = {0};
    buffer_init(&rows, SIZE_MAX);
    for (uint32_t i = 0; o->line_bytes == NULL && i < o->line_count; i++) {
        const struct object_line *l = &o->lines[i];
        object_put(&rows, l->low - last.low);
        object_put(&rows, l->high - l->low);
        object_put_difference(&rows, l->file, last.file);
        object_put_difference(&rows, l->line, last.line);
        last = *l;
    }
    object_put(b, o->line_count);
    object_put_text(b, o->line_bytes != NULL ? (const char *)o->line_bytes : rows.data,
                    o->line_bytes != NULL ? o->line_size : rows.size);
    b->failed |= rows.failed;
    buffer_done(&rows);
}

enum profd_status object_encode(const struct object *o, uint8_t **out, size_t *out_size, struct profd_error *e)
{
    struct buffer b;
    buffer_init(&b, SIZE_MAX);
    object_put_head(&b, o);
    object_put(&b, o->symbol_count);
    struct object_symbol before = {0};
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        const struct object_symbol *s = &o->symbols[i];
        object_put_difference(&b, s->address, before.address);
        object_put(&b, s->size);
        object_put_difference(&b, s->name, before.name);
        object_put_difference(&b, s->demangled, s->name);
        object_put_difference(&b, s->file, before.file);
        object_put(&b, s->line);
        object_put(&b, (uint64_t)s->bind | (uint64_t)s->type << 2 | (uint64_t)s->flags << 5);
        before = *s;
    }
    object_put(&b, o->range_count);
    for (uint32_t i = 0; i < o->range_count; i++) {
        object_put(&b, o->ranges[i].kind);
        object_put(&b, o->ranges[i].low);
        object_put(&b, o->ranges[i].high - o->ranges[i].low);
    }
    object_put(&b, o->plt_count);
    uint64_t last = 0;
    for (uint32_t i = 0; i < o->plt_count; i++) {
        object_put(&b, o->plt[i].address - last);
        object_put(&b, o->plt[i].size);
        object_put(&b, o->plt[i].import);
        last = o->plt[i].address;
    }
    object_put(&b, o->arc_count);
    last = 0;
    for (uint32_t i = 0; i < o->arc_count; i++) {
        const struct object_arc *arc = &o->arcs[i];
        object_put(&b, arc->from - last);
        object_put(&b, (uint64_t)arc->import << 1 | (arc->kind & 1u));
        object_put(&b, arc->import == 0 ? varint_zigzag(arc->to - arc->from) : arc->to);
        last = arc->from;
    }
    object_put_addresses(&b, o->returns, o->knows_returns ? o->return_count : 0);
    object_put_addresses(&b, o->signal_returns, o->knows_returns ? o->signal_return_count : 0);
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        object_put(&b, o->knows_returns ? o->symbols[i].code : 0);
    }
    object_put(&b, o->knows_inlined);
    object_put(&b, o->inlined_count);
    for (uint32_t i = 0; i < o->inlined_count; i++) {
        object_put_difference(&b, o->inlined[i], i > 0 ? o->inlined[i - 1] : 0);
    }
    object_put_lines(&b, o);
    object_put(&b, o->digest_count);
    for (uint32_t i = 0; i < o->digest_count; i++) {
        object_put_difference(&b, o->digests[i].file, i > 0 ? o->digests[i - 1].file : 0);
        buffer_add(&b, o->digests[i].md5, OBJECT_DIGEST_BYTES);
    }
    const bool instructions = o->instruction_count > 0;
    object_put_text(&b, instructions ? o->instruction_texts : "", instructions ? o->instruction_text_bytes : 1);
    object_put(&b, o->instruction_count);
    object_put_text(&b, (const char *)o->instruction_bytes, o->instruction_size);
    if (b.failed) {
        buffer_done(&b);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory to encode the object %s", o->id.text);
    }
    *out = (uint8_t *)b.data;
    *out_size = b.size;
    return PROFD_OK;
}

/* Reading stops meaning anything once failed is set; every loop looks at it. */
struct object_reader {
    const uint8_t *begin, *at, *end;
    struct arena *arena;
    struct profd_error *error;
    enum profd_status failed;
};

static enum profd_status object_fail(struct object_reader *r, const char *what, uint64_t value, const char *rule)
{
    if (r->failed == PROFD_OK) {
        r->failed = profd_error_set(r->error, PROFD_MALFORMED, "object, byte %zu: %s %llu: %s",
                                    (size_t)(r->at - r->begin), what, (unsigned long long)value, rule);
    }
    return r->failed;
}

static uint64_t object_get(struct object_reader *r)
{
    uint64_t value = 0;
    if (r->failed == PROFD_OK && !varint_get(&r->at, r->end, &value)) {
        object_fail(r, "size", (uint64_t)(r->end - r->begin), "the bytes end inside a number");
    }
    return value;
}

/* A number that must not exceed most. */
static uint64_t object_get_up_to(struct object_reader *r, uint64_t most, const char *what)
{
    uint64_t value = object_get(r);
    if (value <= most) {
        return value;
    }
    object_fail(r, what, value, "above its limit");
    return 0;
}

/* Number of rows: within its limit, and no more than the bytes left can hold. */
static uint32_t object_get_count(struct object_reader *r, uint64_t limit, size_t row_bytes, const char *what)
{
    uint64_t count = object_get_up_to(r, limit, what);
    if (count > (uint64_t)(r->end - r->at) / row_bytes) {
        object_fail(r, what, count, "more than the bytes can hold");
        return 0;
    }
    return (uint32_t)count;
}

static void *object_take(struct object_reader *r, uint32_t count, size_t size)
{
    return r->failed ? NULL : arena_take_array(r->arena, count, size);
}

/* NUL-terminated copy of a length and that many bytes. */
static char *object_get_text(struct object_reader *r, uint64_t limit, const char *what, size_t *size)
{
    uint64_t n = object_get_up_to(r, limit, what);
    if (n > (uint64_t)(r->end - r->at)) {
        object_fail(r, what, n, "longer than the bytes that are left");
    }
    char *text = object_take(r, (uint32_t)n + 1, 1);
    if (text == NULL) {
        return NULL;
    }
    memcpy(text, r->at, (size_t)n);
    r->at += n;
    *size = (size_t)n;
    return text;
}

/* Strings of at most limit bytes together, each up to its NUL; the first one is empty, and none is longer than most. */
static const char *object_get_strings(struct object_reader *r, uint64_t limit, size_t most, const char *what,
                                      uint32_t *bytes)
{
    size_t size = 0;
    const char *strings = object_get_text(r, limit, what, &size);
    if (strings == NULL) {
        return NULL;
    }
    if (size == 0 || strings[0] != '\0' || strings[size - 1] != '\0') {
        object_fail(r, what, size, "must begin and end with a NUL");
        return NULL;
    }
    for (const char *at = strings, *end = strings + size; at < end;) {
        const char *nul = memchr(at, '\0', (size_t)(end - at));
        if (nul == NULL || nul - at > (ptrdiff_t)most) {
            object_fail(r, what, (uint64_t)(at - strings), "at this offset: longer than a name or text may be");
            return NULL;
        }
        at = nul + 1;
    }
    *bytes = (uint32_t)size;
    return strings;
}

static void object_get_head(struct object_reader *r, struct object *o)
{
    if (r->end - r->at <= (ptrdiff_t)sizeof object_magic || memcmp(r->at, object_magic, sizeof object_magic) != 0) {
        object_fail(r, "size", (uint64_t)(r->end - r->at), "does not begin as an object");
        return;
    }
    r->at += sizeof object_magic;
    uint64_t version = object_get(r);
    if (version != OBJECT_VERSION) {
        object_fail(r, "version", version, "must be 1");
    }
    size_t size = 0;
    const char *text = object_get_text(r, BUILDID_TEXT_SIZE - 1, "length of the id", &size);
    if (text != NULL && (buildid_parse(text, size, &o->id, r->error) != PROFD_OK || strcmp(o->id.text, text) != 0)) {
        object_fail(r, "id of length", size, "not a build-id in lower case");
    }
    text = object_get_text(r, sizeof o->variant - 1, "length of the variant", &size);
    if (text != NULL && (size != sizeof o->variant - 1 || strspn(text, "0123456789abcdef") != size)) {
        object_fail(r, "variant of length", size, "must be 64 lowercase hexadecimal digits");
    } else if (text != NULL) {
        memcpy(o->variant, text, size);
    }
    o->machine = (uint16_t)object_get_up_to(r, UINT16_MAX, "machine");
    o->bits = (uint8_t)object_get_up_to(r, 64, "bits");
    if (r->failed == PROFD_OK && o->bits != 32 && o->bits != 64) {
        object_fail(r, "bits", o->bits, "must be 32 or 64");
    }
    uint64_t flags = object_get_up_to(r, OBJECT_FLAGS_KNOWN, "flags");
    o->big_endian = (flags & OBJECT_FLAG_BIG_ENDIAN) != 0;
    o->position_independent = (flags & OBJECT_FLAG_POSITION_INDEPENDENT) != 0;
    o->has_names = (flags & OBJECT_FLAG_HAS_NAMES) != 0;
    o->only_dynamic = (flags & OBJECT_FLAG_ONLY_DYNAMIC) != 0;
    o->has_executable_start = (flags & OBJECT_FLAG_HAS_EXECUTABLE_START) != 0;
    o->has_etext = (flags & OBJECT_FLAG_HAS_ETEXT) != 0;
    o->knows_returns = (flags & OBJECT_FLAG_KNOWS_RETURNS) != 0;
    o->executable_start = object_get(r);
    o->etext = object_get(r);
    char *note = object_get_text(r, LIMIT_SYMBOL_NAME, "length of the note", &size);
    if (note != NULL) {
        utf8_scrub(note); /* it goes to terminals and logs */
    }
    o->note = note;
    o->names = object_get_strings(r, LIMIT_NAME_BYTES, LIMIT_SYMBOL_NAME, "bytes of names", &o->name_bytes);
}

/* An offset into names; modulo arithmetic of a bad difference ends above name_bytes or inside, both harmless. */
static uint32_t object_get_name(struct object_reader *r, const struct object *o, uint64_t base, const char *what)
{
    uint64_t offset = base + varint_unzigzag(object_get(r));
    if (offset < o->name_bytes) {
        return (uint32_t)offset;
    }
    object_fail(r, what, offset, "outside the names");
    return 0;
}

static void object_get_symbols(struct object_reader *r, struct object *o)
{
    o->symbol_count = object_get_count(r, LIMIT_SYMBOLS, OBJECT_SYMBOL_BYTES, "symbols");
    o->symbols = object_take(r, o->symbol_count, sizeof *o->symbols);
    struct object_symbol last = {0};
    for (uint32_t i = 0; i < o->symbol_count && r->failed == PROFD_OK; i++) {
        struct object_symbol *s = &o->symbols[i];
        s->address = last.address + varint_unzigzag(object_get(r));
        s->size = object_get(r);
        s->name = object_get_name(r, o, last.name, "name of a symbol at offset");
        s->demangled = object_get_name(r, o, s->name, "demangled name at offset");
        s->file = object_get_name(r, o, last.file, "file of a symbol at offset");
        s->line = (uint32_t)object_get_up_to(r, UINT32_MAX, "line");
        uint64_t kinds = object_get_up_to(r, 511, "kinds of a symbol");
        s->bind = (uint8_t)(kinds & 3);
        s->type = (uint8_t)(kinds >> 2 & 7);
        s->flags = (uint8_t)(kinds >> 5);
        if (s->type > OBJECT_TYPE_OTHER) {
            object_fail(r, "type of a symbol", s->type, "not a known type");
        }
        last = *s;
    }
}

/* Ascending addresses. */
static uint64_t *object_get_addresses(struct object_reader *r, uint32_t *count, const char *what)
{
    *count = object_get_count(r, LIMIT_RETURNS, 1, what);
    uint64_t *addresses = object_take(r, *count, sizeof *addresses), last = 0;
    for (uint32_t i = 0; i < *count && r->failed == PROFD_OK; i++) {
        if (__builtin_add_overflow(last, object_get(r), &last)) {
            object_fail(r, what, i, "behind the last address");
        }
        addresses[i] = last;
    }
    return addresses;
}

#define OBJECT_CODE_MOST ((UINT64_C(1) << 56) - 1)

/* Reads what is known of the machine code: ranges, PLT slots, calls, return addresses, hashes of functions, and the
 * names of inlined ones. */
static void object_get_code(struct object_reader *r, struct object *o)
{
    o->range_count = object_get_count(r, LIMIT_SECTIONS, OBJECT_RANGE_BYTES, "ranges");
    o->ranges = object_take(r, o->range_count, sizeof *o->ranges);
    for (uint32_t i = 0; i < o->range_count && r->failed == PROFD_OK; i++) {
        struct object_range *range = &o->ranges[i];
        range->kind = (uint8_t)object_get_up_to(r, OBJECT_RANGE_SEGMENT, "kind of a range");
        range->low = object_get(r);
        uint64_t size = object_get(r);
        if (__builtin_add_overflow(range->low, size, &range->high)) {
            object_fail(r, "range of size", size, "ends behind the last address");
        }
        if (i > 0 && (range[-1].kind > range->kind || (range[-1].kind == range->kind && range[-1].low > range->low))) {
            object_fail(r, "range at", range->low, "ranges must ascend by kind and address");
        }
    }
    o->plt_count = object_get_count(r, LIMIT_SYMBOLS, OBJECT_PLT_BYTES, "PLT slots");
    o->plt = object_take(r, o->plt_count, sizeof *o->plt);
    uint64_t last = 0;
    for (uint32_t i = 0; i < o->plt_count && r->failed == PROFD_OK; i++) {
        if (__builtin_add_overflow(last, object_get(r), &last)) {
            object_fail(r, "PLT slot", i, "behind the last address");
        }
        o->plt[i].address = last;
        o->plt[i].size = (uint32_t)object_get_up_to(r, UINT32_MAX, "size of a PLT slot");
        o->plt[i].import =
            (uint32_t)object_get_up_to(r, o->name_bytes == 0 ? 0 : o->name_bytes - 1, "import at offset");
    }
    o->arc_count = object_get_count(r, LIMIT_STATIC_ARCS, OBJECT_ARC_BYTES, "static arcs");
    o->arcs = object_take(r, o->arc_count, sizeof *o->arcs);
    last = 0;
    for (uint32_t i = 0; i < o->arc_count && r->failed == PROFD_OK; i++) {
        struct object_arc *arc = &o->arcs[i];
        if (__builtin_add_overflow(last, object_get(r), &last)) {
            object_fail(r, "static arc", i, "behind the last address");
        }
        arc->from = last;
        uint64_t import = object_get_up_to(r, 2 * (uint64_t)o->name_bytes + 1, "import and kind of a static arc");
        arc->kind = (uint8_t)(import & 1);
        arc->import = (uint32_t)(import >> 1);
        if (arc->import >= o->name_bytes) {
            object_fail(r, "import at offset", arc->import, "outside the names");
        }
        uint64_t to = object_get(r);
        arc->to = arc->import == 0 ? arc->from + varint_unzigzag(to) : to;
    }
    o->returns = object_get_addresses(r, &o->return_count, "return addresses");
    o->signal_returns = object_get_addresses(r, &o->signal_return_count, "signal returns");
    for (uint32_t i = 0; i < o->symbol_count && r->failed == PROFD_OK; i++) {
        o->symbols[i].code = object_get_up_to(r, OBJECT_CODE_MOST, "code of a symbol");
    }
    o->knows_inlined = object_get_up_to(r, 1, "whether inlined functions are known") != 0;
    o->inlined_count = object_get_count(r, LIMIT_SYMBOLS, 1, "inlined functions");
    o->inlined = object_take(r, o->inlined_count, sizeof *o->inlined);
    for (uint32_t i = 0; i < o->inlined_count && r->failed == PROFD_OK; i++) {
        o->inlined[i] = object_get_name(r, o, i > 0 ? o->inlined[i - 1] : 0, "name of an inlined function at offset");
    }
}

/* A copy of n bytes; the caller has checked that they follow. */
static const uint8_t *object_get_bytes(struct object_reader *r, size_t n)
{
    uint8_t *bytes = object_take(r, (uint32_t)n, 1);
    if (bytes != NULL && n > 0) {
        memcpy(bytes, r->at, n);
        r->at += n;
    }
    return bytes;
}

/* Reads source lines, digests of source files, and instructions. Lines and instructions stay encoded until they are
 * asked for. */
static void object_get_source(struct object_reader *r, struct object *o)
{
    o->line_count = object_get_count(r, LIMIT_LINES, OBJECT_LINE_BYTES, "source lines");
    o->line_size = object_get_up_to(r, (uint64_t)(r->end - r->at), "bytes of source lines");
    if (r->failed == PROFD_OK && o->line_size > (uint64_t)(r->end - r->at)) { /* without the number itself */
        object_fail(r, "bytes of source lines", o->line_size, "more than follow");
    }
    if (r->failed == PROFD_OK &&
        (o->line_count == 0 ? o->line_size > 0 : o->line_size / OBJECT_LINE_BYTES < o->line_count)) {
        object_fail(r, "bytes of source lines", o->line_size, "not what these lines have");
    }
    const uint8_t *bytes = object_get_bytes(r, o->line_size);
    o->line_bytes = o->line_count > 0 ? bytes : NULL;

    o->digest_count = object_get_count(r, LIMIT_LINES, OBJECT_FILE_BYTES, "digests of source files");
    o->digests = object_take(r, o->digest_count, sizeof *o->digests);
    for (uint32_t i = 0; i < o->digest_count && r->failed == PROFD_OK; i++) {
        struct object_digest *d = &o->digests[i], *last = i > 0 ? d - 1 : NULL;
        d->file = object_get_name(r, o, last != NULL ? last->file : 0, "name of a source file at offset");
        if (r->failed == PROFD_OK && (size_t)(r->end - r->at) < OBJECT_DIGEST_BYTES) {
            object_fail(r, "bytes of a digest", (uint64_t)(r->end - r->at), "must be 16");
        }
        if (r->failed != PROFD_OK) {
            return;
        }
        memcpy(d->md5, r->at, OBJECT_DIGEST_BYTES);
        r->at += OBJECT_DIGEST_BYTES;
        if (last != NULL &&
            (d->file < last->file || (d->file == last->file && memcmp(d->md5, last->md5, OBJECT_DIGEST_BYTES) <= 0))) {
            object_fail(r, "digest", i, "not behind the one before");
        }
    }

    o->instruction_texts = object_get_strings(r, LIMIT_INSTRUCTION_TEXTS, LIMIT_INSTRUCTION_TEXT,
                                              "bytes of texts of instructions", &o->instruction_text_bytes);
    o->instruction_count = object_get_count(r, LIMIT_CODE_BYTES, OBJECT_INSTRUCTION_BYTES, "instructions");
    o->instruction_size = object_get_up_to(r, (uint64_t)(r->end - r->at), "bytes of instructions");
    if (r->failed == PROFD_OK &&
        (o->instruction_size > (uint64_t)(r->end - r->at) || (o->instruction_count == 0 && o->instruction_size > 0) ||
         o->instruction_size / OBJECT_INSTRUCTION_BYTES < o->instruction_count)) {
        object_fail(r, "bytes of instructions", o->instruction_size, "not what these instructions have");
    }
    o->instruction_bytes = object_get_bytes(r, o->instruction_size);
}

enum profd_status object_decode(struct arena *a, const uint8_t *in, size_t n, struct object **out,
                                struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct object_reader r = {.begin = in, .at = in, .end = in + n, .arena = a, .error = e, .failed = PROFD_OK};
    struct object *o = ARENA_NEW(a, struct object);
    object_get_head(&r, o);
    object_get_symbols(&r, o);
    object_get_code(&r, o);
    object_get_source(&r, o);
    if (r.failed == PROFD_OK && r.at != r.end) {
        object_fail(&r, "surplus bytes", (uint64_t)(r.end - r.at), "none may follow the last list");
    }
    if (r.failed == PROFD_OK) {
        *out = o;
    }
    return r.failed;
}

enum profd_status object_lines_find(const struct object *o, struct arena *a, uint64_t low, uint64_t high,
                                    struct object_line **out, uint32_t *count, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct object_line *rows = NULL, last = {0};
    const uint8_t *at = o->line_bytes, *end = at != NULL ? at + o->line_size : NULL;
    uint32_t n = 0, capacity = 0;
    for (uint32_t i = 0; at != NULL && i < o->line_count; i++) {
        uint64_t step = 0, size = 0, file = 0, line = 0;
        const bool whole = varint_get(&at, end, &step) && varint_get(&at, end, &size) && varint_get(&at, end, &file) &&
                           varint_get(&at, end, &line);
        file = last.file + varint_unzigzag(file);
        line = last.line + varint_unzigzag(line);
        if (!whole || __builtin_add_overflow(last.low, step, &last.low) ||
            __builtin_add_overflow(last.low, size, &last.high) || size == 0 || file >= o->name_bytes || line == 0 ||
            line > UINT32_MAX) {
            return profd_error_set(e, PROFD_MALFORMED, "object: source line %u of %u breaks the format's rules", i,
                                   o->line_count);
        }
        last.file = (uint32_t)file;
        last.line = (uint32_t)line;
        if (last.high > low && last.low < high) {
            rows = arena_extend(a, rows, n, &capacity, sizeof *rows);
            rows[n++] = last;
        }
    }
    FAIL_IF(at != end, e, PROFD_MALFORMED, "object: surplus bytes behind %u source lines", o->line_count);
    *out = rows;
    *count = n;
    return PROFD_OK;
}

void object_instructions_add(struct buffer *rows, struct object_instruction *last, const struct object_instruction *i)
{
    object_put(rows, i->address - last->address);
    object_put(rows, i->size);
    object_put(rows, varint_zigzag((uint64_t)i->text - last->text) << 1 | (i->targeted ? 1u : 0u));
    if (i->targeted) {
        object_put(rows, varint_zigzag(i->target - i->address));
    }
    *last = *i;
}

enum profd_status object_instructions_find(const struct object *o, struct arena *a, uint64_t low, uint64_t high,
                                           struct object_instruction **out, uint32_t *count, struct profd_error *e)
{
    ARENA_BOUNDARY(a, profd_no_memory(e));
    struct object_instruction *rows = NULL, last = {0};
    const uint8_t *at = o->instruction_bytes, *end = o->instruction_count > 0 ? at + o->instruction_size : at;
    uint32_t n = 0, capacity = 0;
    for (uint32_t i = 0; i < o->instruction_count; i++) {
        const uint64_t least = i == 0 ? 0 : last.size; /* instructions do not overlap */
        uint64_t step = 0, size = 0, text = 0, target = 0;
        const bool whole = varint_get(&at, end, &step) && varint_get(&at, end, &size) && varint_get(&at, end, &text);
        last.targeted = (text & 1) != 0;
        text = last.text + varint_unzigzag(text >> 1);
        if (!whole || step < least || size == 0 || size > UINT32_MAX ||
            __builtin_add_overflow(last.address, step, &last.address) || last.address > UINT64_MAX - size ||
            text >= o->instruction_text_bytes || (last.targeted && !varint_get(&at, end, &target))) {
            return profd_error_set(e, PROFD_MALFORMED, "object: instruction %u of %u breaks the format's rules", i,
                                   o->instruction_count);
        }
        last.size = (uint32_t)size;
        last.text = (uint32_t)text;
        last.target = last.targeted ? last.address + varint_unzigzag(target) : 0;
        if (last.address >= low && last.address < high) {
            rows = arena_extend(a, rows, n, &capacity, sizeof *rows);
            rows[n++] = last;
        }
    }
    FAIL_IF(at != end, e, PROFD_MALFORMED, "object: surplus bytes behind %u instructions", o->instruction_count);
    *out = rows;
    *count = n;
    return PROFD_OK;
}

enum profd_status object_instructions_remove(const uint8_t *in, size_t n, uint8_t **out, size_t *out_size,
                                             struct profd_error *e)
{
    struct arena *a = arena_new(0);
    struct object *o;
    enum profd_status status = a == NULL ? profd_no_memory(e) : object_decode(a, in, n, &o, e);
    if (status == PROFD_OK) {
        o->instruction_count = 0;
        status = object_encode(o, out, out_size, e);
    }
    arena_free(a);
    return status;
}
