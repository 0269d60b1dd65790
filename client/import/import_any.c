#include "import/import_any.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_any_internal.h"
#include "proto/limits.h"

#define PARSER_MEMORY ((size_t)2 << 30)

/* Recognizes text by its first lines: all lines of callgrind begin with a key. */
static bool looks_like_callgrind(const char *text, size_t n)
{
    static const char *const keys[] = {"# callgrind format",
                                       "version:",
                                       "creator:",
                                       "events:",
                                       "positions:",
                                       "cmd:",
                                       "pid:",
                                       "part:",
                                       "desc:",
                                       "event:",
                                       "summary:",
                                       "ob=",
                                       "fl=",
                                       "fn="};
    while (n > 0 && (*text == '\n' || *text == '\r')) {
        text++;
        n--;
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t size = strlen(keys[i]);
        if (n >= size && memcmp(text, keys[i], size) == 0) {
            return true;
        }
    }
    return false;
}

enum profd_status import_format_detect(const uint8_t *bytes, size_t n, enum import_format *out, struct profd_error *e)
{
    bool text = true; /* without control characters */
    for (size_t i = 0; i < n && i < 4096; i++) {
        text = text && (bytes[i] >= ' ' || bytes[i] == '\n' || bytes[i] == '\t' || bytes[i] == '\r');
    }
    FAIL_IF(n == 0, e, PROFD_MALFORMED, "it is empty");
    if (memcmp(bytes, "gmon", n < 4 ? n : 4) == 0) {
        *out = IMPORT_GMON;
    } else if (n >= 8 && (memcmp(bytes, "PERFILE2", 8) == 0 || memcmp(bytes, "2ELIFREP", 8) == 0)) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "perf.data must be converted: perf script -i FILE | profctl upload -");
    } else if (n >= 4 && memcmp(bytes, "\177ELF", 4) == 0) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "an executable, not a profile; name the executable with -e and the profile as the file");
    } else if (n >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
        *out = IMPORT_PPROF;
    } else if (text) {
        *out = looks_like_callgrind((const char *)bytes, n) ? IMPORT_CALLGRIND : IMPORT_PERF;
    } else if ((bytes[0] & 7) <= 2 && (bytes[0] & 7) != 1 && bytes[0] >> 3 >= 1 && bytes[0] >> 3 <= 15) {
        *out = IMPORT_PPROF; /* the first field of message Profile has a number below 16 and a known wire type */
    } else {
        return profd_error_set(e, PROFD_MALFORMED,
                               "not a profile: neither gmon.out, pprof, callgrind.out nor text of perf script");
    }
    return PROFD_OK;
}

enum profd_status import_any_detect(const char *path, enum import_format *out, struct profd_error *e)
{
    struct import_input in;
    struct profd_error why = {""};
    const uint8_t *bytes;
    size_t n;
    enum profd_status status = import_input_open(path, &in, e);
    if (status == PROFD_OK) {
        status = import_input_peek(&in, &bytes, &n, e);
        if (status == PROFD_OK) {
            status = import_format_detect(bytes, n, out, &why);
            if (status != PROFD_OK) {
                (void)profd_error_set(e, status, "%s (%" PRIu64 " bytes)", why.sentence, in.size);
            }
        }
        import_input_close(&in);
    }
    return status == PROFD_OK ? status : profd_error_wrap(e, status, "%s", path);
}

static enum profd_status deliver(const struct import_request *r, const struct import_profile *p, bool strict,
                                 struct profd_error *e)
{
    struct profd_upload *u;
    TRY(import_place_profile(r->shelf, p, strict, r->notes, &u, e));
    return r->take(r->context, u, p->process, e);
}

/* A process that cannot be placed does not affect the others; the file is refused only if it is the only one. */
static enum profd_status take_perf(const struct import_request *r, struct import_input *in, struct arena *a,
                                   struct profd_error *e)
{
    struct import_perf *perf;
    struct profd_error why = {""};
    enum profd_status first = PROFD_OK;
    uint32_t taken = 0, count = 0;
    enum profd_status status = import_perf_new(a, r->event, &perf, e);
    status = status ? status : import_input_each_line(in, import_perf_line, perf, e);
    status = status ? status : import_perf_finish(perf, in->time, &count, e);
    for (uint32_t i = 0; i < count && status == PROFD_OK; i++) {
        struct profd_error problem = {""};
        if (count > 1 && import_place_program(import_perf_process(perf, i)) == IMPORT_NONE) {
            r->notes->left_out++;
            continue;
        }
        enum profd_status one = deliver(r, import_perf_process(perf, i), false, &problem);
        if (one == PROFD_OK) {
            taken++;
        } else if (count > 1 && r->notes->say) {
            r->notes->say(r->notes->context, problem.sentence);
        }
        if (one != PROFD_OK && first == PROFD_OK) {
            first = one;
            why = problem;
        }
    }
    if (status == PROFD_OK && import_perf_words(perf)[0] != '\0' && r->notes->say) {
        r->notes->say(r->notes->context, import_perf_words(perf));
    }
    if (status == PROFD_OK && taken == 0) {
        return first != PROFD_OK
                   ? profd_error_set(e, first, "%s", why.sentence)
                   : profd_error_set(e, PROFD_REFUSED, "all samples are in the kernel or in generated code");
    }
    return status;
}

static enum profd_status take_input(const struct import_request *r, struct import_input *in, struct arena *a,
                                    struct profd_error *e)
{
    enum import_format format = r->format;
    const uint8_t *begin;
    uint8_t *bytes = NULL;
    size_t n;
    struct import_callgrind *c;
    struct import_profile *p;
    enum profd_status status;
    TRY(import_input_peek(in, &begin, &n, e));
    if (format == IMPORT_AUTO) {
        TRY(import_format_detect(begin, n, &format, e));
    }
    switch (format) {
    case IMPORT_CALLGRIND:
        TRY(import_callgrind_new(a, r->event, &c, e));
        TRY(import_input_each_line(in, import_callgrind_line, c, e));
        TRY(import_callgrind_finish(c, &p, e));
        p->end = in->time;
        return deliver(r, p, false, e);
    case IMPORT_PPROF:
        TRY(import_input_take_all(in, LIMIT_COUNTS_RAW, &bytes, &n, e));
        status = import_pprof_parse(bytes, n, r->event, a, &p, e);
        if (status == PROFD_OK) {
            p->end = p->end > 0 ? p->end : in->time;
            status = deliver(r, p, true, e);
        }
        free(bytes);
        return status;
    case IMPORT_PERF:
        return take_perf(r, in, a, e);
    default:
        return profd_error_set(e, PROFD_REFUSED, "a gmon.out must be a regular file");
    }
}

enum profd_status import_any_file(const struct import_request *r, const char *path, struct profd_error *e)
{
    struct import_input in;
    struct arena *a = arena_new(PARSER_MEMORY);
    FAIL_IF(!a, e, PROFD_NO_MEMORY, "no memory to read %s", path);
    enum profd_status status = import_input_open(path, &in, e);
    if (status == PROFD_OK) {
        status = take_input(r, &in, a, e);
        import_input_close(&in);
    }
    arena_free(a);
    return status == PROFD_OK ? status
                              : profd_error_wrap(e, status, "%s", strcmp(path, "-") == 0 ? "standard input" : path);
}
