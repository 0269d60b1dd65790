/* profctl export: the sum of a build as a gmon.out for gprof, or as a profile for clang. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profctl/export_autofdo.h"
#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_find.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_output.h"
#include "proto/counts.h"
#include "proto/gmon.h"
#include "proto/limits.h"

#define COUNTS_TYPE "application/vnd.profd.counts"
#define AUTOFDO_TICKS 1000u      /* with 233 and 402 Lua became slower, with 684 and 1,727 faster */
#define GPROF_BIN_MAX UINT32_MAX /* gprof adds up the records of a bin in 32 bits */

static const struct profctl_option options[] = {
    {"format", 'f', "gmon|autofdo", "gmon.out, or a sample profile of LLVM (default gmon)"},
    {"exe", 'e', "FILE", "for -f autofdo: the executable, if it was moved"},
    {"output", 'o', "FILE", "output file, which appears when it is complete (- is stdout)"},
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_LABEL,
    OPTION_MATCH,
    OPTION_SCOPE,
    {"geometry", 0, "N", "select one of several histograms that cannot be added up"},
    OPTION_UID,
    OPTION_PARTIAL,
};

/* What becomes of one export. */
struct export
{
    struct counts counts;
    struct gmon_format format;
    uint8_t *file;
    size_t size;
    size_t form; /* as in the list of -f */
};
enum { FORM_GMON, FORM_AUTOFDO };

static enum profd_status check_call(const struct profctl_call *call, size_t *form, struct profd_error *e)
{
    const char *path = profctl_value(call, "output");
    TRY(profctl_choose(call, "format", form, e));
    if (!path) {
        return profd_error_set(e, PROFD_USAGE, "export: no output file; use -o FILE (- is stdout)");
    }
    if (strcmp(path, "-") != 0) {
        return PROFD_OK;
    }
    if (call->json) {
        return profd_error_set(e, PROFD_USAGE, "export: --json and -o - both use stdout");
    }
    if (*form == FORM_GMON && isatty(STDOUT_FILENO) == 1) {
        return profd_error_set(e, PROFD_USAGE, "export: -o -: a gmon.out cannot be written to a terminal");
    }
    return PROFD_OK;
}

/* Class and byte order of an ELF file, by its first bytes. */
static bool read_format(const char *path, struct gmon_format *out)
{
    unsigned char head[6];
    FILE *f = fopen(path, "re");
    bool good = f && fread(head, 1, sizeof head, f) == sizeof head && memcmp(head, "\177ELF", 4) == 0 &&
                (head[4] == 1 || head[4] == 2) && (head[5] == 1 || head[5] == 2);
    if (good) {
        *out = (struct gmon_format){.pointer_size = 4u * head[4], .big_endian = head[5] == 2};
    }
    if (f) {
        (void)fclose(f);
    }
    return good;
}

/* The daemon says it of the executable it was sent; else the file that names the build does; else it is assumed, and
 * said. */
static enum profd_status find_format(const struct profctl_call *call, const char *id, const struct profd_answer *answer,
                                     struct gmon_format *out, struct profd_error *e)
{
    const char *type = answer->content_type, *argument = call->arguments[0];
    if (strncmp(type, COUNTS_TYPE, strlen(COUNTS_TYPE)) != 0) {
        return profd_error_set(e, PROFD_PROTOCOL, "the daemon answered with %s instead of counts",
                               type[0] ? type : "no type");
    }
    bool narrow = strstr(type, "; bits=32") != NULL, big = strstr(type, "; endian=big") != NULL;
    if (narrow || strstr(type, "; bits=64")) {
        *out = (struct gmon_format){.pointer_size = narrow ? 4 : 8, .big_endian = big};
    } else if (strcmp(id, argument) == 0 || !read_format(argument, out)) {
        *out = (struct gmon_format){.pointer_size = 8};
        profctl_complain("the executable of build %.16s was not sent: 64-bit little-endian is assumed", id);
    }
    return PROFD_OK;
}

/* The executable of the build: --exe, the argument, or the path that the daemon has. The caller frees *out. */
static enum profd_status find_executable(const struct profctl_call *call, const char *id, char **out,
                                         struct profd_error *e)
{
    struct ask_target target;
    struct answer build;
    enum profd_status status = PROFD_OK;
    ask_target_init(&target, "/api/v1/builds/{}", id);
    TRY(ask_fetch_object(call, &target, &build, e));
    const char *whole = row_raw(build.whole, "build_id"), *given = profctl_value(call, "exe"),
               *candidates[] = {given, call->arguments[0], row_raw(build.whole, "name")};
    whole = whole[0] ? whole : id;
    *out = NULL;
    for (size_t i = 0; !*out && i < (given ? 1 : sizeof candidates / sizeof candidates[0]); i++) {
        *out = candidates[i] && build_is_file(candidates[i], whole) ? strdup(candidates[i]) : NULL;
    }
    if (!*out) {
        status = profd_error_set(e, PROFD_NOT_FOUND,
                                 "-f autofdo reads the executable: %.200s is not a readable file of build %.12s; "
                                 "-e FILE names it",
                                 given ? given : call->arguments[0], whole);
    }
    answer_free(&build);
    return status;
}

static enum profd_status make_autofdo(const struct profctl_call *call, const char *id, struct export *x,
                                      struct profd_error *e)
{
    char *path = NULL, *text = NULL;
    struct code_lines *lines = NULL;
    uint64_t left_out = 0, ticks, calls;
    enum profd_status status = find_executable(call, id, &path, e);
    if (status == PROFD_OK) {
        (void)read_format(path, &x->format);
        status = code_lines_open(path, id, &lines, e);
    }
    if (status == PROFD_OK && !lines) {
        status = profd_error_set(e, PROFD_NOT_FOUND, "%s has no debug information; compile with -g", path);
    }
    FILE *out = status == PROFD_OK ? open_memstream(&text, &x->size) : NULL;
    if (out) {
        status = autofdo_write(&x->counts, lines, out, &left_out, e);
        if (fclose(out) != 0 && status == PROFD_OK) {
            status = profd_no_memory(e);
        }
        x->file = (uint8_t *)text;
    } else if (status == PROFD_OK) {
        status = profd_no_memory(e);
    }
    counts_totals(&x->counts, &ticks, &calls);
    if (status == PROFD_OK && left_out > 0) {
        profctl_complain("%" PRIu64 " of %" PRIu64 " ticks have no source line and are left out", left_out, ticks);
    }
    if (status == PROFD_OK && ticks - left_out < AUTOFDO_TICKS) {
        profctl_complain("a sample profile of %" PRIu64 " ticks may make the program slower; run it until there are %u",
                         ticks - left_out, AUTOFDO_TICKS);
    }
    code_lines_close(lines);
    free(path);
    return status;
}

static enum profd_status fetch(const struct profctl_call *call, struct profd_conn *conn, const char *id,
                               const struct ask_target *target, struct export *x, struct profd_error *e)
{
    struct profd_answer answer;
    char *bytes = NULL;
    size_t size = 0;
    enum profd_status status = ask_read_answer(conn, target, LIMIT_REPORT_BYTES, &bytes, &size, &answer, e);
    if (status == PROFD_OK && x->form == FORM_GMON) {
        status = find_format(call, id, &answer, &x->format, e);
    }
    if (status == PROFD_OK) {
        status = counts_decode((const uint8_t *)bytes, size, 1, &x->counts, e);
        status = status == PROFD_OK ? status : profd_error_wrap(e, status, "the daemon's counts");
    }
    free(bytes);
    if (status == PROFD_OK && x->counts.histogram_count == 0 && x->counts.arc_count == 0) {
        status = profd_error_set(
            e, PROFD_NOT_FOUND,
            "build %s has neither a histogram nor calls of its own here; gprof refuses an empty gmon.out",
            call->arguments[0]);
    }
    if (status == PROFD_OK && x->form == FORM_AUTOFDO) {
        return make_autofdo(call, id, x, e);
    }
    return status == PROFD_OK ? gmon_format_file(&x->counts, &x->format, &x->file, &x->size, e) : status;
}

static void add_count(json_t *object, const char *name, uint64_t value)
{
    char text[32], field[32];
    (void)json_object_set_new(object, name, json_integer(json_count(value)));
    if (value > UINT64_C(1) << 53) {
        (void)snprintf(text, sizeof text, "%" PRIu64, value);
        (void)snprintf(field, sizeof field, "%s_str", name);
        (void)json_object_set_new(object, field, json_string(text));
    }
}

static enum profd_status print_json(const struct export *x, struct profd_error *e)
{
    uint64_t ticks, calls;
    json_t *object = json_object();
    counts_totals(&x->counts, &ticks, &calls);
    add_count(object, "ticks", ticks);
    add_count(object, "calls", calls);
    json_t *rest = json_pack("{s:I,s:I,s:I,s:I,s:b,s:I}", "histograms", json_count(x->counts.histogram_count), "bins",
                             json_count(x->counts.bin_count), "arcs", json_count(x->counts.arc_count), "bits",
                             json_count(8 * x->format.pointer_size), "big_endian", x->format.big_endian, "bytes",
                             json_count(x->size));
    bool whole = rest && json_object_update(object, rest) == 0;
    json_decref(rest);
    if (!whole) {
        json_decref(object);
        object = NULL;
    }
    return json_print(object, e);
}

static enum profd_status write_file(const char *path, const struct export *x, struct profd_error *e)
{
    struct output out;
    enum profd_status status = output_open(strcmp(path, "-") == 0 ? NULL : path, &out, e);
    if (status == PROFD_OK) {
        status = output_write(&out, x->file, x->size, e);
        enum profd_status closed = output_close(&out, status == PROFD_OK, status == PROFD_OK ? e : NULL);
        status = status == PROFD_OK ? closed : status;
    }
    return status;
}

static enum profd_status export_run(const struct profctl_call *call, struct profd_error *e)
{
    char id[160];
    struct ask_target target;
    struct profd_conn *conn = NULL;
    struct export x = {.file = NULL};
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    enum profd_status status = check_call(call, &x.form, e);
    if (status == PROFD_OK) {
        status = build_find(call, call->arguments[0], id, e);
    }
    if (status == PROFD_OK) {
        ask_target_init(&target, "/api/v1/builds/{}/counts", id);
        ask_target_add(&target, "empty", "error");
        status = ask_target_add_given(&target, call, "since|until|scope|geometry|uid", e);
    }
    if (status == PROFD_OK) {
        status = profd_conn_open(&o, &conn, e);
    }
    if (status == PROFD_OK) {
        status = fetch(call, conn, id, &target, &x, e);
    }
    profd_conn_close(conn);
    if (status == PROFD_OK) {
        status = write_file(profctl_value(call, "output"), &x, e);
    }
    if (status == PROFD_OK && x.form == FORM_GMON) {
        uint64_t most = 0;
        for (uint32_t i = 0; i < x.counts.bin_count; i++) {
            most = x.counts.bin_ticks[i] > most ? x.counts.bin_ticks[i] : most;
        }
        if (most > GPROF_BIN_MAX) {
            profctl_complain("one bin counts %" PRIu64
                             " ticks; gprof's sum overflows above %u, so its times will be wrong",
                             most, GPROF_BIN_MAX);
        }
    }
    if (status == PROFD_OK && call->json) {
        status = print_json(&x, e);
    }
    counts_done(&x.counts);
    free(x.file);
    return status;
}

const struct profctl_verb verb_export = {
    .name = "export",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Write all stored counts as a gmon.out for gprof, or as a sample profile for clang",
    .details = "Counts above the limits of a gmon.out are written as several records, which gprof adds up.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 1,
    .run = export_run,
};
