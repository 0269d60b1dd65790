#include "gprof/gprof.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compat/compat.h"
#include "compat/compat_run.h"
#include "elf/elf_read.h"
#include "gprof/gprof_internal.h"

/* ---- Whole files in memory ---- */

struct gprof_file {
    uint8_t *bytes; /* owned; a NUL stands behind them */
    size_t size;
    bool seekable;
};

/* In large pages where it is much: a large file costs more page faults than reading. */
static uint8_t *block_take(size_t capacity)
{
    const size_t page = (size_t)2 << 20;
    if (capacity < 2 * page || capacity > SIZE_MAX - page) {
        return malloc(capacity);
    }
    capacity = (capacity + page - 1) & ~(page - 1);
    uint8_t *bytes = aligned_alloc(page, capacity);
    if (bytes != NULL) {
        (void)madvise(bytes, capacity, MADV_HUGEPAGE);
    }
    return bytes;
}

/* Reads all of fd. */
static bool descriptor_read(int fd, struct gprof_file *f)
{
    struct stat st;
    size_t capacity = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 2 : 65536;
    f->seekable = lseek(fd, 0, SEEK_CUR) >= 0;
    f->bytes = block_take(capacity);
    while (f->bytes != NULL) {
        if (f->size + 1 == capacity) {
            uint8_t *more = capacity > SIZE_MAX / 2 ? NULL : realloc(f->bytes, capacity * 2);
            if (more == NULL) {
                break;
            }
            f->bytes = more;
            capacity *= 2;
        }
        ssize_t got = read(fd, f->bytes + f->size, capacity - 1 - f->size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            f->bytes[f->size] = '\0';
            return true;
        }
        f->size += (size_t)got;
    }
    free(f->bytes);
    errno = ENOMEM;
    return false;
}

/* Reads to the end, "-" from standard input; what cannot be read ends there, as for stdio. False with errno set if it
 * cannot be opened, or memory is out. */
static bool gprof_file_read(const char *path, struct gprof_file *out)
{
    struct gprof_file f = {0};
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool good = descriptor_read(fd, &f);
    if (!standard) {
        (void)close(fd);
    }
    if (good) {
        *out = f;
    }
    return good;
}

static void gprof_file_done(struct gprof_file *f)
{
    free(f->bytes);
    *f = (struct gprof_file){0};
}

/* All of it, however many times it takes. False with errno set. */
static bool gprof_file_write_all(int fd, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return false;
        }
        p += put;
        n -= (size_t)put;
    }
    return true;
}

/* Creates or overwrites a file. False with errno set. */
static bool gprof_file_write(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return false;
    }
    if (gprof_file_write_all(fd, bytes, n)) {
        return close(fd) == 0;
    }
    int why = errno;
    (void)close(fd);
    errno = why;
    return false;
}

/* Requests a buffer of one MiB for a pipe, so that its reader and its writer work at the same time. Does nothing for
 * other files. */
static void gprof_file_widen(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
        (void)fcntl(fd, F_SETPIPE_SZ, 1 << 20); /* where it is refused, the usual 64 KiB do */
    }
}

/* @FILE on a command line: the file's words in its place. */

struct gprof_words {
    char **list; /* NULL behind the last; strings borrowed from argv, or owned by texts */
    int count;
    char **texts; /* contents of files */
    int text_count;
};

#define FILES_MAX 2000

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes the quotes out of the word at *p, in place; *p moves behind it. */
static char *word_take(char **p)
{
    char *word = *p, *to = word, *from = word;
    char quote = '\0';
    for (; *from != '\0'; from++) {
        if (*from == '\\') {
            if (from[1] != '\0') {
                *to++ = *++from;
            }
        } else if (quote != '\0' && *from == quote) {
            quote = '\0';
        } else if (quote == '\0' && (*from == '\'' || *from == '"')) {
            quote = *from;
        } else if (quote == '\0' && is_blank(*from)) {
            from++;
            break;
        } else {
            *to++ = *from;
        }
    }
    /* Only now: to may stand where from was. */
    *p = from;
    *to = '\0';
    return word;
}

/* The words of text, which stays their owner. *count of them, or NULL. */
static char **words_split(char *text, int *count)
{
    size_t most = strlen(text) / 2 + 2;
    char **list = calloc(most, sizeof *list);
    int n = 0;
    char *p = text;
    while (list != NULL) {
        while (is_blank(*p)) {
            p++;
        }
        if (*p == '\0') {
            break;
        }
        list[n++] = word_take(&p);
    }
    *count = n;
    return list;
}

/* Puts n words into the place of word at. */
static bool words_put(struct gprof_words *w, int at, char *const *words, int n)
{
    char **list = calloc((size_t)w->count + (size_t)n + 1, sizeof *list);
    if (list == NULL) {
        return false;
    }
    memcpy(list, w->list, (size_t)at * sizeof *list);
    if (n > 0) {
        memcpy(list + at, words, (size_t)n * sizeof *list);
    }
    memcpy(list + at + n, w->list + at + 1, (size_t)(w->count - at - 1) * sizeof *list);
    free(w->list);
    w->list = list;
    w->count += n - 1;
    return true;
}

enum taken { LEFT_ALONE, REPLACED, FAILED };

/* Replaces word at, "@FILE". */
static enum taken word_expand(const char *program, struct gprof_words *w, int at)
{
    const char *path = w->list[at] + 1;
    struct stat st;
    if (stat(path, &st) != 0) {
        return LEFT_ALONE;
    }
    if (S_ISDIR(st.st_mode)) {
        (void)fprintf(stderr, "%s: error: @-file refers to a directory\n", program);
        return FAILED;
    }
    if (w->text_count == FILES_MAX) {
        (void)fprintf(stderr, "%s: error: too many @-files encountered\n", program);
        return FAILED;
    }
    struct gprof_file f;
    if (!gprof_file_read(path, &f)) {
        return LEFT_ALONE;
    }
    char *text = (char *)f.bytes; /* a NUL stands behind */
    w->texts[w->text_count++] = text;
    int n = 0;
    char **words = words_split(text, &n);
    bool good = words != NULL && words_put(w, at, words, n);
    free(words);
    if (!good) {
        (void)fprintf(stderr, "%s: out of memory for the words of %s\n", program, path);
    }
    return good ? REPLACED : FAILED;
}

/* Expands every @FILE of argv, in files too; words are separated by white space, and ' " and \ quote as in a shell.
 * What cannot be opened stays as it stands. False with a complaint on stderr: a folder, more than 2000 files (they name
 * each other), or no memory. */
static void gprof_words_done(struct gprof_words *w)
{
    for (int i = 0; i < w->text_count; i++) {
        free(w->texts[i]);
    }
    free(w->texts);
    free(w->list);
    *w = (struct gprof_words){0};
}

static bool gprof_words_expand(const char *program, int argc, char **argv, struct gprof_words *out)
{
    struct gprof_words w = {.list = calloc((size_t)argc + 1, sizeof(char *)), .count = argc};
    w.texts = calloc(FILES_MAX, sizeof *w.texts);
    if (w.list == NULL || w.texts == NULL) {
        (void)fprintf(stderr, "%s: out of memory\n", program);
        gprof_words_done(&w);
        return false;
    }
    memcpy(w.list, argv, (size_t)argc * sizeof *w.list);
    for (int i = 1; i < w.count;) {
        enum taken taken = w.list[i][0] == '@' ? word_expand(program, &w, i) : LEFT_ALONE;
        if (taken == FAILED) {
            gprof_words_done(&w);
            return false;
        }
        i += taken == LEFT_ALONE;
    }
    *out = w;
    return true;
}

#define GMON_SUM "gmon.sum"
#define CLEAN_BLOCK ((size_t)4096)
#define CLEAN_SIZE(n) (4 * ((n) + 4)) /* see gprof.h */
#define OUT_BLOCK                                                                                                      \
    ((size_t)256 << 10) /* bytes of output written at once: formatting goes on while a pipe's reader reads */

struct gprof {
    const char *program;
    const struct gprof_options *options;
    struct arena *arena;
    struct object *object;
    struct compat_run run;
    struct compat_gmon gmon;
    struct buffer out;
    const struct gprof_terminal *terminal; /* NULL: standard output is none */
    bool warned;                           /* of basic-block records */
    int write_error;                       /* errno of standard output */
};

static bool out_write(void *context, const char *data, size_t n)
{
    struct gprof *g = context;
    char shown[CLEAN_SIZE(CLEAN_BLOCK)];
    bool good = g->terminal != NULL || gprof_file_write_all(STDOUT_FILENO, data, n);
    for (size_t at = 0; g->terminal != NULL && good && at < n; at += CLEAN_BLOCK) {
        size_t size =
            g->terminal->clean(g->terminal->context, data + at, n - at < CLEAN_BLOCK ? n - at : CLEAN_BLOCK, shown);
        good = gprof_file_write_all(STDOUT_FILENO, shown, size);
    }
    g->write_error = good ? g->write_error : errno;
    return good;
}

/* The filter does not escape newlines, tabs and form feeds, because listings have them. Those inside a name become '?'.
 */
static bool names_keep_lines(struct gprof *g)
{
    struct object *o = g->object;
    char *names = arena_copy(g->arena, o->names, o->name_bytes);
    if (names == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < o->name_bytes; i++) {
        if (names[i] == '\n' || names[i] == '\t' || names[i] == '\f') {
            names[i] = '?';
        }
    }
    o->names = names;
    return true;
}

/* "FILE: why". Returns 1. */
static int complain_errno(const char *file, int error)
{
    (void)fprintf(stderr, "%s: %s\n", file, strerror(error));
    return 1;
}

/* A status that gprof does not know, or our own sentence for one that it does. */
static int complain(const struct gprof *g, enum profd_status status, const struct profd_error *e)
{
    (void)fprintf(stderr, "%s: %s\n", g->program, e->sentence);
    return status == PROFD_REFUSED || status == PROFD_CONFLICT || status == PROFD_MALFORMED ? 1
                                                                                            : profd_status_exit(status);
}

/* gprof's words for what is no ELF file at all, and our reason behind them for what only is a bad one. */
static int complain_format(const struct gprof *g, int fd, enum profd_status status, const struct profd_error *e)
{
    char magic[4] = "";
    const char *path = g->options->executable;
    if (status != PROFD_MALFORMED && status != PROFD_REFUSED) {
        return complain(g, status, e);
    }
    if (pread(fd, magic, sizeof magic, 0) != (ssize_t)sizeof magic || memcmp(magic, "\177ELF", sizeof magic) != 0) {
        (void)fprintf(stderr, "%s: %s: not in executable format\n", g->program, path);
    } else {
        (void)fprintf(stderr, "%s: %s: not in executable format: %s\n", g->program, path, e->sentence);
    }
    return 1;
}

static int executable_read(struct gprof *g)
{
    const struct gprof_options *o = g->options;
    struct profd_error e = {""};
    struct stat st;
    int fd = open(o->executable, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return complain_errno(o->executable, errno);
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        (void)close(fd);
        return complain_errno(o->executable, ENOENT);
    }
    struct elf_read_options how = {.demangle = !o->listing.raw_names && !o->listing.traditional,
                                   .all_lines = true,
                                   .line_table = o->listing.lines,
                                   .text = o->listing.static_calls,
                                   .long_names = true,
                                   .no_rust = o->no_rust,
                                   .no_cxx = o->no_cxx};
    enum profd_status status = elf_read(fd, -1, &how, g->arena, &g->object, &e);
    int exit_status = status == PROFD_OK ? 0 : complain_format(g, fd, status, &e);
    (void)close(fd);
    if (exit_status == 0 && g->object->big_endian) {
        (void)fprintf(stderr, "%s: %s: big-endian executables are not supported\n", g->program, o->executable);
        exit_status = profd_status_exit(PROFD_REFUSED);
    }
    if (exit_status == 0 && g->terminal && !names_keep_lines(g)) {
        exit_status = complain(
            g, profd_error_set(&e, PROFD_NO_MEMORY, "no memory for %u bytes of names", g->object->name_bytes), &e);
    }
    return exit_status;
}

static bool has_text(const struct object *o)
{
    for (uint32_t i = 0; i < o->range_count; i++) {
        if (o->ranges[i].kind == OBJECT_RANGE_TEXT) {
            return true;
        }
    }
    return false;
}

static int run_open(struct gprof *g)
{
    struct profd_error e = {""};
    const char *path = g->options->executable;
    if (!has_text(g->object)) {
        (void)fprintf(stderr, "%s: can't find .text section in %s\n", g->program, path);
        return 1;
    }
    enum profd_status status = compat_run_open(&g->run, &g->options->listing, g->object, g->arena, &e);
    if (status == PROFD_OK) {
        return 0;
    }
    if (status != PROFD_REFUSED) {
        return complain(g, status, &e);
    }
    (void)fprintf(stderr, "%s: file `%s' has no symbols\n", g->program, path);
    return 1;
}

static int file_take(struct gprof *g, const char *path)
{
    struct gprof_file f;
    if (!gprof_file_read(path, &f)) {
        return complain_errno(path, errno);
    }
    const char *complaint = NULL;
    enum profd_status status = PROFD_MALFORMED;
    /* A BSD file is read from its begin again. */
    if (!f.seekable && f.size >= 20 && memcmp(f.bytes, "gmon", 4) != 0) {
        (void)complain_errno(path, ESPIPE);
    } else {
        status = compat_gmon_read(&g->gmon, path, f.bytes, f.size, &complaint);
    }
    gprof_file_done(&f);
    if (g->gmon.has_blocks && !g->options->listing.lines && !g->warned) {
        (void)fprintf(stderr, "%s: warning: ignoring basic-block exec counts (use -l or --line)\n", g->program);
    }
    g->warned = g->gmon.has_blocks;
    if (complaint != NULL) {
        (void)fputs(complaint, stderr);
    }
    if (status != PROFD_OK) {
        return status == PROFD_NO_MEMORY ? profd_status_exit(status) : 1;
    }
    if (g->gmon.has_blocks && g->options->listing.lines) {
        (void)fprintf(stderr, "%s: %s: -l and -s do not support basic-block records\n", g->program, path);
        return profd_status_exit(PROFD_REFUSED);
    }
    if (g->options->info) {
        const struct compat_gmon *m = &g->gmon;
        const struct {
            uint32_t n;
            const char *what;
        } lines[] = {{m->histograms, "histogram record"},
                     {m->arcs, "call-graph record"},
                     {m->blocks, "basic-block count record"}};
        buffer_add_format(&g->out, "File `%s' (version %u) contains:\n", path, m->version);
        for (unsigned i = 0; i < 3; i++) {
            buffer_add_format(&g->out, "\t%u %s%s\n", lines[i].n, lines[i].what, lines[i].n == 1 ? "" : "s");
        }
    }
    return 0;
}

static int counts_show(struct gprof *g)
{
    struct profd_error e = {""};
    const struct compat_gmon *m = &g->gmon;
    if (g->options->debug) {
        (void)fprintf(stderr, "%s: %u symbols, %u histograms with %u bins, %u arcs\n", g->program, g->run.symbols.count,
                      m->counts.histogram_count, m->counts.bin_count, m->counts.arc_count);
    }
    g->run.has_histogram = m->has_histogram;
    g->run.has_arcs = m->has_arcs;
    g->run.options.follows = g->out.drained + g->out.size > 0;
    if (g->options->listing.static_calls && m->has_arcs && !compat_calls_possible(g->object)) {
        (void)fprintf(stderr, "%s: -c not supported on architecture %u\n", g->program, g->object->machine);
    }
    enum profd_status status = compat_run_count(&g->run, &m->counts, g->arena, &e);
    if (status != PROFD_OK) {
        return complain(g, status, &e);
    }
    if (g->options->sum) {
        struct buffer sum;
        buffer_init(&sum, SIZE_MAX / 2);
        compat_sum_write(&g->run, g->gmon.pointer, g->gmon.has_block_records, &sum);
        errno = ENOMEM;
        int exit_status =
            sum.failed || !gprof_file_write(GMON_SUM, sum.data, sum.size) ? complain_errno(GMON_SUM, errno) : 0;
        buffer_done(&sum);
        if (exit_status != 0) {
            return exit_status;
        }
    }
    status = compat_run_print(&g->run, g->arena, &g->out, &e);
    return status == PROFD_OK ? 0 : complain(g, status, &e);
}

static int gprof_do(struct gprof *g)
{
    const struct gprof_options *o = g->options;
    int status = executable_read(g);
    if (status == 0) {
        status = run_open(g);
    }
    if (status != 0) {
        return status;
    }
    compat_gmon_init(&g->gmon, g->arena, g->program, g->object->bits / 8u);
    for (int i = 0; i < o->file_count && status == 0; i++) {
        status = file_take(g, o->files[i]);
    }
    return status == 0 ? counts_show(g) : status;
}

/* Prints what there is, also in front of a complaint, as gprof does. */
static int out_flush(struct gprof *g, int status)
{
    char rest[CLEAN_SIZE(0)];
    bool good = buffer_flush(&g->out);
    size_t size = g->terminal != NULL ? g->terminal->clean(g->terminal->context, NULL, 0, rest) : 0;
    if (good && (size == 0 || gprof_file_write_all(STDOUT_FILENO, rest, size))) {
        return status;
    }
    g->write_error = good ? errno : g->write_error;
    (void)fprintf(stderr, "%s: cannot write to standard output: %s\n", g->program, strerror(g->write_error));
    return profd_status_exit(PROFD_IO);
}

int gprof_main(const char *program, int argc, char **argv, const struct gprof_terminal *terminal)
{
    struct gprof_words words;
    struct gprof_options options;
    int status = 1;
    if (!gprof_words_expand(program, argc, argv, &words)) {
        return status;
    }
    if (gprof_options_parse(program, words.count, words.list, &options, &status)) {
        struct gprof g = {.program = program, .options = &options, .arena = arena_new(0), .terminal = terminal};
        g.write_error = ENOMEM;
        gprof_file_widen(STDOUT_FILENO);
        buffer_init_drained(&g.out, OUT_BLOCK, out_write, &g);
        if (g.arena == NULL) {
            (void)fprintf(stderr, "%s: out of memory\n", program);
        }
        status = g.arena == NULL ? profd_status_exit(PROFD_NO_MEMORY) : gprof_do(&g);
        status = out_flush(&g, status);
        buffer_done(&g.out);
        arena_free(g.arena);
        gprof_options_done(&options);
    }
    gprof_words_done(&words);
    return status;
}
