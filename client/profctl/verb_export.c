/* profctl export: the sum of a build as a gmon.out for gprof, or as a profile for clang. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "proto/counts.h"
#include "proto/gmon.h"
#include "proto/limits.h"
#include "proto/whole.h"

/* ---- Profiles for clang -fprofile-sample-use ---- */

#define OFFSET_MASK 0xffffu /* LLVM keeps 16 bits of a line's distance from its function */

struct sample_target {
    const char *function;
    uint64_t calls;
};

struct sample_position {
    unsigned offset, discriminator;
};

struct sample_body {
    struct sample_position at;
    uint64_t count;
    struct sample_target *targets;
    uint32_t target_count, target_capacity;
};

/* A function, or an inlined copy of one at a position of its parent. */
struct sample_node {
    struct sample_position at;
    const char *function;
    uint64_t head, total; /* total: of its lines, and of the calls that are inlined in it */
    struct sample_node *parent;
    struct sample_body *bodies;
    struct sample_node **children; /* ascending once they are printed */
    uint32_t body_count, body_capacity, child_count, child_capacity;
    uint32_t printed; /* of the children */
};

struct sample_profile {
    struct arena *arena;
    struct code_lines *lines;
    struct sample_node root;   /* its children are the functions */
    struct sample_node **made; /* all others; parents stand before children */
    uint32_t made_count, made_capacity;
    uint64_t left_out, taken;
};

/* A component of a discriminator of clang -fdebug-info-for-profiling: the first is the one of the source, the second
 * says how many copies of the code the compiler made. */
static unsigned component_of(unsigned d)
{
    if (d & 1) {
        return 0;
    }
    d >>= 1;
    return d & 0x20 ? ((d >> 1) & 0xfe0) | (d & 0x1f) : d & 0x1f;
}

static int compare_positions(const struct sample_position *a, const struct sample_position *b)
{
    return a->offset != b->offset ? (a->offset > b->offset) - (a->offset < b->offset)
                                  : (a->discriminator > b->discriminator) - (a->discriminator < b->discriminator);
}

static int compare_bodies(const void *left, const void *right)
{
    return compare_positions(&((const struct sample_body *)left)->at, &((const struct sample_body *)right)->at);
}

static int compare_nodes(const void *left, const void *right)
{
    const struct sample_node *a = *(struct sample_node *const *)left, *b = *(struct sample_node *const *)right;
    const int order = compare_positions(&a->at, &b->at);
    return order != 0 ? order : strcmp(a->function, b->function);
}

/* Neighbouring addresses have the same line: the search begins at the last row. */
static struct sample_body *take_body(struct sample_profile *p, struct sample_node *n, struct sample_position at)
{
    for (size_t i = n->body_count; i-- > 0;) {
        if (compare_positions(&n->bodies[i].at, &at) == 0) {
            return &n->bodies[i];
        }
    }
    (void)ARENA_EXTEND(p->arena, n->bodies, n->body_count, n->body_capacity);
    n->bodies[n->body_count] = (struct sample_body){.at = at};
    return &n->bodies[n->body_count++];
}

static struct sample_node *take_child(struct sample_profile *p, struct sample_node *n, struct sample_position at,
                                      const char *function)
{
    for (size_t i = n->child_count; i-- > 0;) {
        if (compare_positions(&n->children[i]->at, &at) == 0 && strcmp(n->children[i]->function, function) == 0) {
            return n->children[i];
        }
    }
    struct sample_node *child = ARENA_NEW(p->arena, struct sample_node);
    (void)ARENA_EXTEND(p->arena, n->children, n->child_count, n->child_capacity);
    (void)ARENA_EXTEND(p->arena, p->made, p->made_count, p->made_capacity);
    *child = (struct sample_node){.at = at, .function = function, .parent = n};
    n->children[n->child_count++] = p->made[p->made_count++] = child;
    return child;
}

/* The row of an address. NULL: it has no line, or its function no name. */
static struct sample_body *find_body(struct sample_profile *p, uint64_t address, unsigned *copies,
                                     struct sample_node **function)
{
    struct code_frame frames[CODE_LINES_DEPTH];
    size_t n = code_lines_find(p->lines, address, frames);
    struct sample_node *node = &p->root;
    struct sample_position at = {0, 0};
    bool known = n > 0;
    for (size_t i = 0; i < n; i++) {
        known = known && frames[i].function[0] && frames[i].first_line > 0 && frames[i].line > 0;
    }
    if (!known) {
        return NULL;
    }
    for (size_t i = n; i-- > 0; at = (struct sample_position){(frames[i].line - frames[i].first_line) & OFFSET_MASK,
                                                              component_of(frames[i].discriminator)}) {
        node = take_child(p, node, at, frames[i].function);
        *function = i + 1 == n ? node : *function;
    }
    const unsigned d = frames[0].discriminator, times = component_of(d & 1 ? d >> 1 : d >> (d & 0x40 ? 14 : 7));
    *copies = times > 0 ? times : 1;
    return take_body(p, node, at);
}

static void add_call(struct sample_profile *p, uint64_t from, uint64_t to, uint64_t calls)
{
    struct code_frame frames[CODE_LINES_DEPTH];
    struct sample_node *function;
    unsigned copies;
    size_t n = code_lines_find(p->lines, to, frames);
    const char *callee = n > 0 ? frames[n - 1].function : "";
    struct sample_body *body = callee[0] ? find_body(p, from, &copies, &function) : NULL;
    if (!body) {
        return;
    }
    for (size_t i = 0; i < body->target_count; i++) {
        if (strcmp(body->targets[i].function, callee) == 0) {
            body->targets[i].calls += calls;
            return;
        }
    }
    (void)ARENA_EXTEND(p->arena, body->targets, body->target_count, body->target_capacity);
    body->targets[body->target_count++] = (struct sample_target){callee, calls};
}

/* Adds the ticks of the lines. Other lines of a function with ticks get the count 0, and the function gets its head. */
static enum profd_status add_histogram(struct sample_profile *p, const struct counts *c,
                                       const struct counts_histogram *h, struct profd_error *e)
{
    uint64_t low, high, entry, end = 0;
    struct sample_body *body = NULL;
    struct sample_node *function;
    unsigned copies;
    FAIL_IF(h->bins != h->high - h->low, e, PROFD_REFUSED,
            "-f autofdo needs ticks of single instructions, and this histogram has %.3g bytes a bin; "
            "profctl run counts single instructions",
            (double)(h->high - h->low) / h->bins);
    for (uint32_t i = 0; i < h->used; i++) {
        const uint64_t ticks = c->bin_ticks[h->first + i];
        body = find_body(p, h->low + c->bin_index[h->first + i], &copies, &function);
        if (body) {
            p->taken += ticks;
            body->count = ticks * copies > body->count ? ticks * copies : body->count;
        } else {
            p->left_out += ticks;
        }
    }
    for (uint32_t i = 0; i < h->used; i++) {
        const uint64_t address = h->low + c->bin_index[h->first + i];
        if (address < end) { /* bins ascend: its function was seen */
            continue;
        }
        if (!code_lines_range(p->lines, address, &low, &high, &entry)) {
            end = address + 1;
            continue;
        }
        for (uint64_t at = code_lines_next(p->lines, low, high); at < high;
             at = code_lines_next(p->lines, at + 1, high)) {
            (void)find_body(p, at, &copies, &function);
        }
        body = entry == low ? find_body(p, entry, &copies, &function) : NULL;
        if (body) {
            function->head = body->count;
        }
        end = high;
    }
    return PROFD_OK;
}

static void print_position(FILE *out, struct sample_position at)
{
    fprintf(out, at.discriminator > 0 ? "%u.%u: " : "%u: ", at.offset, at.discriminator);
}

/* Children behind lines, as LLVM writes them. */
static void print(struct sample_profile *p, FILE *out)
{
    int depth = 0;
    for (size_t i = p->made_count; i-- > 0;) {
        struct sample_node *n = p->made[i];
        for (size_t k = 0; k < n->body_count; k++) {
            n->total += n->bodies[k].count;
        }
        n->parent->total += n->total;
    }
    for (struct sample_node *n = &p->root; n;) {
        if (n->printed == 0 && n->child_count > 0) {
            qsort(n->children, n->child_count, sizeof(struct sample_node *), compare_nodes);
        }
        if (n->printed == n->child_count) {
            n = n->parent;
            depth--;
            continue;
        }
        n = n->children[n->printed++];
        if (depth == 0) {
            fprintf(out, "%s:%" PRIu64 ":%" PRIu64 "\n", n->function, n->total, n->head);
        } else {
            fprintf(out, "%*s", depth, "");
            print_position(out, n->at);
            fprintf(out, "%s:%" PRIu64 "\n", n->function, n->total);
        }
        depth++;
        if (n->body_count > 0) {
            qsort(n->bodies, n->body_count, sizeof *n->bodies, compare_bodies);
        }
        for (size_t i = 0; i < n->body_count; i++) {
            double calls = 0;
            fprintf(out, "%*s", depth, "");
            print_position(out, n->bodies[i].at);
            fprintf(out, "%" PRIu64, n->bodies[i].count);
            for (size_t k = 0; k < n->bodies[i].target_count; k++) {
                calls += (double)n->bodies[i].targets[k].calls;
            }
            for (size_t k = 0; k < n->bodies[i].target_count; k++) {
                const uint64_t part =
                    (uint64_t)((double)n->bodies[i].count * (double)n->bodies[i].targets[k].calls / calls);
                if (part > 0) {
                    fprintf(out, " %s:%" PRIu64, n->bodies[i].targets[k].function, part);
                }
            }
            fprintf(out, "\n");
        }
    }
}

/* Writes the ticks of build 0 as LLVM's text format of sample profiles, which llvm-profdata merge --sample reads: the
 * count of a line is that of its instruction with most ticks, times the copies of unrolled code; 0 included in
 * functions that have any; a function's head is the count of the line where it begins; inlined calls are nested. The
 * calls of a call site divide its line's count among callees. Ticks without a line, and those of functions without a
 * name, are left out: *left_out has their number.
 *
 * REFUSED: a histogram counts several addresses in one bin, or there is no tick with a line. */
static enum profd_status autofdo_write(struct arena *a, const struct counts *c, struct code_lines *lines, FILE *out,
                                       uint64_t *left_out, struct profd_error *e)
{
    struct sample_profile p = {.arena = a, .lines = lines};
    for (uint32_t i = 0; i < c->histogram_count; i++) {
        if (c->histograms[i].build == 0 && strcmp(c->histograms[i].dimension, "seconds") == 0) {
            TRY(add_histogram(&p, c, &c->histograms[i], e));
        }
    }
    for (uint32_t i = 0; i < c->arc_count; i++) {
        if (c->from_build[i] == 0 && c->to_build[i] == 0 && c->calls[i] > 0 && c->from[i] > 0) {
            add_call(&p, c->from[i] - 1, c->to[i], c->calls[i]);
        }
    }
    FAIL_IF(p.taken == 0, e, PROFD_REFUSED, "-f autofdo: no CPU tick is at an instruction with a source line");
    print(&p, out);
    *left_out = p.left_out;
    return PROFD_OK;
}

/* ---- The verb ---- */

#define COUNTS_TYPE "application/vnd.profd.counts"
#define AUTOFDO_TICKS 1000u      /* with 233 and 402 Lua became slower, with 684 and 1,727 faster */
#define GPROF_BIN_MAX UINT32_MAX /* gprof adds up the records of a bin in 32 bits */

static const struct profctl_option options[] = {
    {"format", 'f', "gmon|autofdo", "gmon.out, or a sample profile of LLVM (default gmon)"},
    {"exe", 'e', "FILE", "for -f autofdo: the executable, if it was moved"},
    {"output", 'o', "FILE", "output file, which appears when it is complete (- is stdout)"},
    OPTIONS_SELECTION,
    OPTION_SCOPE,
    {"geometry", 0, "N", "select one of several histograms that cannot be added up"},
    {"otlp", 0, "URL", "send stacks and calls to a receiver of OpenTelemetry's profiles instead"},
    {"otlp-token-file", 0, "FILE", "for --otlp: file with the bearer token of the receiver"},
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

/* Class and byte order of an ELF file, by its first bytes. */
static bool read_format(const char *path, struct gmon_format *out)
{
    char head[7];
    const bool good = whole_read_text(path, head, sizeof head) == 6 && memcmp(head, "\177ELF", 4) == 0 &&
                      (head[4] == 1 || head[4] == 2) && (head[5] == 1 || head[5] == 2);
    if (good) {
        *out = (struct gmon_format){.pointer_size = 4u * (unsigned)head[4], .big_endian = head[5] == 2};
    }
    return good;
}

/* The executable of the build: --exe, the argument, or the path that the daemon has. */
static enum profd_status find_executable(const struct profctl_call *call, const char *id, const char **out,
                                         struct profd_error *e)
{
    struct ask_target target;
    struct answer build;
    ask_target_init(&target, "/api/v1/builds/{}", id);
    TRY(ask_fetch_object(call, &target, &build, e));
    const char *whole = row_raw(build.whole, "build_id"), *given = profctl_value(call, "exe"),
               *candidates[] = {given, call->arguments[0], row_raw(build.whole, "name")};
    whole = whole[0] ? whole : id;
    *out = NULL;
    for (size_t i = 0; !*out && i < (given ? 1 : COUNT(candidates)); i++) {
        *out = candidates[i] && build_is_file(candidates[i], whole) ? candidates[i] : NULL;
    }
    FAIL_IF(!*out, e, PROFD_NOT_FOUND,
            "-f autofdo reads the executable: %.200s is not a readable file of build %.12s; -e FILE names it",
            given ? given : call->arguments[0], whole);
    return PROFD_OK;
}

static enum profd_status make_autofdo(const struct profctl_call *call, const char *id, struct export *x,
                                      struct profd_error *e)
{
    const char *path = NULL;
    char *text = NULL;
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
        status = autofdo_write(call->arena, &x->counts, lines, out, &left_out, e);
        if (fclose(out) != 0 && status == PROFD_OK) {
            status = profd_no_memory(e);
        }
        x->file = (uint8_t *)text;
    } else if (!status) {
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
    return status;
}

static enum profd_status fetch(const struct profctl_call *call, const char *id, const struct ask_target *target,
                               struct export *x, struct profd_error *e)
{
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct profd_conn *conn;
    struct profd_answer answer;
    char *bytes = NULL;
    size_t size = 0;
    TRY(profd_conn_open(&o, &conn, e));
    enum profd_status status = ask_read(conn, target, LIMIT_REPORT_BYTES, &bytes, &size, &answer, e);
    profd_conn_close(conn);
    if (status == PROFD_OK && x->form == FORM_GMON) {
        /* The daemon states the format of an executable that it has. Otherwise the argument may be the file. */
        const char *type = answer.content_type;
        const bool narrow = strstr(type, "; bits=32") != NULL;
        if (strncmp(type, COUNTS_TYPE, strlen(COUNTS_TYPE)) != 0) {
            status = profd_error_set(e, PROFD_PROTOCOL, "the daemon answered with %s instead of counts",
                                     type[0] ? type : "no type");
        } else if (narrow || strstr(type, "; bits=64")) {
            x->format = (struct gmon_format){.pointer_size = narrow ? 4 : 8,
                                             .big_endian = strstr(type, "; endian=big") != NULL};
        } else if (strcmp(id, call->arguments[0]) == 0 || !read_format(call->arguments[0], &x->format)) {
            x->format = (struct gmon_format){.pointer_size = 8};
            profctl_complain("the executable of build %.16s was not sent: 64-bit little-endian is assumed", id);
        }
    }
    if (status == PROFD_OK) {
        status = counts_decode((const uint8_t *)bytes, size, 1, &x->counts, e);
        status = status == PROFD_OK ? status : profd_error_wrap(e, status, "the daemon's counts");
    }
    free(bytes);
    TRY(status);
    FAIL_IF(x->counts.histogram_count == 0 && x->counts.arc_count == 0, e, PROFD_NOT_FOUND,
            "build %s has neither a histogram nor calls of its own here; gprof refuses an empty gmon.out",
            call->arguments[0]);
    return x->form == FORM_AUTOFDO ? make_autofdo(call, id, x, e)
                                   : gmon_format_file(&x->counts, &x->format, &x->file, &x->size, e);
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

static enum profd_status export_run(const struct profctl_call *call, struct profd_error *e)
{
    const char *path = profctl_value(call, "output");
    char id[160];
    struct ask_target target;
    struct output out;
    struct export x = {.file = NULL};
    uint64_t most = 0, ticks, calls;
    const char *url = profctl_value(call, "otlp");
    if (url) {
        return export_otlp(call, url, e);
    }
    TRY(profctl_choose(call, "format", &x.form, e));
    FAIL_IF(!path, e, PROFD_USAGE, "export: no output file; use -o FILE (- is stdout)");
    const bool to_stdout = strcmp(path, "-") == 0;
    FAIL_IF(to_stdout && call->json, e, PROFD_USAGE, "export: --json and -o - both use stdout");
    FAIL_IF(to_stdout && x.form == FORM_GMON && isatty(STDOUT_FILENO) == 1, e, PROFD_USAGE,
            "export: -o -: a gmon.out cannot be written to a terminal");
    TRY(build_find(call, call->arguments[0], id, e));
    ask_target_init(&target, "/api/v1/builds/{}/counts", id);
    ask_target_add(&target, "empty", "error");
    TRY(ask_target_add_given(&target, call, "since|until|scope|geometry|uid", e));
    enum profd_status status = fetch(call, id, &target, &x, e);
    status = status ? status : output_open(to_stdout ? NULL : path, &out, e);
    if (status == PROFD_OK) {
        status = output_write(&out, x.file, x.size, e);
        enum profd_status closed = output_close(&out, status == PROFD_OK, status == PROFD_OK ? e : NULL);
        status = status ? status : closed;
    }
    for (uint32_t i = 0; x.form == FORM_GMON && i < x.counts.bin_count; i++) {
        most = x.counts.bin_ticks[i] > most ? x.counts.bin_ticks[i] : most;
    }
    if (status == PROFD_OK && most > GPROF_BIN_MAX) {
        profctl_complain("one bin counts %" PRIu64 " ticks; gprof's sum overflows above %u, so its times will be wrong",
                         most, GPROF_BIN_MAX);
    }
    if (status == PROFD_OK && call->json) {
        json_t *object = json_object();
        counts_totals(&x.counts, &ticks, &calls);
        add_count(object, "ticks", ticks);
        add_count(object, "calls", calls);
        json_t *rest = json_pack("{s:I,s:I,s:I,s:I,s:b,s:I}", "histograms", json_count(x.counts.histogram_count),
                                 "bins", json_count(x.counts.bin_count), "arcs", json_count(x.counts.arc_count), "bits",
                                 json_count(8 * x.format.pointer_size), "big_endian", x.format.big_endian, "bytes",
                                 json_count(x.size));
        if (!rest || json_object_update(object, rest) != 0) {
            json_decref(object);
            object = NULL;
        }
        json_decref(rest);
        status = json_print(object, e);
    }
    counts_done(&x.counts);
    free(x.file);
    return status;
}

const struct profctl_verb verb_export = {
    .name = "export",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Write all stored counts as a gmon.out for gprof or as a sample profile for clang, or send them by OTLP",
    .details = "Counts above the limits of a gmon.out are written as several records, which gprof adds up.\n",
    OPTIONS(options),
    .arguments_least = 1,
    .arguments_most = 1,
    .run = export_run,
};
