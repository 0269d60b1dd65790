#include "gprof/gprof_main.h"

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
#include "proto/whole.h"

/* ---- Whole files in memory ---- */

struct gprof_file {
    uint8_t *bytes; /* owned; a NUL stands behind them */
    size_t size;
    bool seekable;
};

/* Reads to the end, "-" from standard input; a read error ends the file, as for stdio. False with errno set if the file
 * cannot be opened, or without memory. */
static bool gprof_file_read(const char *path, struct gprof_file *out)
{
    const size_t page = (size_t)2 << 20;
    struct gprof_file f = {0};
    struct stat st;
    const bool standard = strcmp(path, "-") == 0;
    const int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size_t capacity = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 2 : 65536;
    f.seekable = lseek(fd, 0, SEEK_CUR) >= 0;
    if (capacity < 2 * page || capacity > SIZE_MAX - page) {
        f.bytes = malloc(capacity);
    } else { /* in large pages: page faults cost more than reading */
        const size_t pages = (capacity + page - 1) & ~(page - 1);
        f.bytes = aligned_alloc(page, pages);
        if (f.bytes != NULL) {
            (void)madvise(f.bytes, pages, MADV_HUGEPAGE);
        }
    }
    bool ended = false;
    while (f.bytes != NULL && !ended) {
        if (f.size + 1 == capacity) {
            uint8_t *more = capacity > SIZE_MAX / 2 ? NULL : realloc(f.bytes, capacity * 2);
            if (more == NULL) {
                break;
            }
            f.bytes = more;
            capacity *= 2;
        }
        ssize_t got = read(fd, f.bytes + f.size, capacity - 1 - f.size);
        if (got > 0) {
            f.size += (size_t)got;
        }
        ended = got == 0 || (got < 0 && errno != EINTR);
    }
    if (!standard) {
        (void)close(fd);
    }
    if (!ended) {
        free(f.bytes);
        errno = ENOMEM;
        return false;
    }
    f.bytes[f.size] = '\0';
    *out = f;
    return true;
}

/* The words of a command line in which the words of FILE have replaced @FILE. */

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

/* Removes the quotes from the word at *p, in place; *p moves behind it. */
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

static void gprof_words_done(struct gprof_words *w)
{
    for (int i = 0; i < w->text_count; i++) {
        free(w->texts[i]);
    }
    free(w->texts);
    free(w->list);
    *w = (struct gprof_words){0};
}

/* Expands every @FILE of argv, in files too; words are separated by white space, and ' " and \ quote as in a shell.
 * A word stays as it is if its file cannot be opened. False with a complaint on stderr: a directory, more than 2000
 * files (they name each other), or no memory. */
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
        struct gprof_file f;
        struct stat st;
        const char *path = w.list[i] + 1;
        if (w.list[i][0] != '@' || stat(path, &st) != 0) {
            i++;
            continue;
        }
        if (S_ISDIR(st.st_mode) || w.text_count == FILES_MAX) {
            (void)fprintf(stderr, "%s: error: %s\n", program,
                          S_ISDIR(st.st_mode) ? "@-file refers to a directory" : "too many @-files encountered");
            gprof_words_done(&w);
            return false;
        }
        if (!gprof_file_read(path, &f)) {
            i++;
            continue;
        }

        /* The words of the file replace the word. They stay in the file's text, which texts owns. */
        char *text = (char *)f.bytes; /* a NUL stands behind */
        const size_t most = strlen(text) / 2 + 2, others = (size_t)w.count - 1;
        char **list = calloc(most + others + 1, sizeof *list);
        w.texts[w.text_count++] = text;
        if (list == NULL) {
            (void)fprintf(stderr, "%s: out of memory for the words of %s\n", program, path);
            gprof_words_done(&w);
            return false;
        }
        int n = i;
        memcpy(list, w.list, (size_t)i * sizeof *list);
        for (char *p = text;;) {
            while (is_blank(*p)) {
                p++;
            }
            if (*p == '\0') {
                break;
            }
            list[n++] = word_take(&p);
        }
        memcpy(list + n, w.list + i + 1, (size_t)(w.count - i - 1) * sizeof *list);
        w.count += n - i - 1;
        free(w.list);
        w.list = list;
    }
    *out = w;
    return true;
}

#define GMON_SUM "gmon.sum"
#define CLEAN_BLOCK ((size_t)4096)
#define CLEAN_SIZE(n) (4 * ((n) + 4)) /* see gprof_main.h */
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
    bool good = g->terminal != NULL || whole_write(STDOUT_FILENO, data, n);
    for (size_t at = 0; g->terminal != NULL && good && at < n; at += CLEAN_BLOCK) {
        size_t size =
            g->terminal->clean(g->terminal->context, data + at, n - at < CLEAN_BLOCK ? n - at : CLEAN_BLOCK, shown);
        good = whole_write(STDOUT_FILENO, shown, size);
    }
    g->write_error = good ? g->write_error : errno;
    return good;
}

/* "FILE: why". Returns 1. */
static int complain_errno(const char *file, int error)
{
    (void)fprintf(stderr, "%s: %s\n", file, strerror(error));
    return 1;
}

/* Prints the sentence. Returns gprof's exit status 1 for statuses that gprof knows, otherwise our own. */
static int complain(const struct gprof *g, enum profd_status status, const struct profd_error *e)
{
    (void)fprintf(stderr, "%s: %s\n", g->program, e->sentence);
    return status == PROFD_REFUSED || status == PROFD_CONFLICT || status == PROFD_MALFORMED ? 1
                                                                                            : profd_status_exit(status);
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
    int exit_status = 0;
    if (status == PROFD_MALFORMED || status == PROFD_REFUSED) {
        /* gprof's words for a file that is not ELF. Our reason follows if it is one. */
        char magic[4] = "";
        const bool elf =
            pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic && memcmp(magic, "\177ELF", sizeof magic) == 0;
        (void)fprintf(stderr, "%s: %s: not in executable format%s%s\n", g->program, o->executable, elf ? ": " : "",
                      elf ? e.sentence : "");
        exit_status = 1;
    } else if (status != PROFD_OK) {
        exit_status = complain(g, status, &e);
    }
    (void)close(fd);
    if (exit_status == 0 && g->object->big_endian) {
        (void)fprintf(stderr, "%s: %s: big-endian executables are not supported\n", g->program, o->executable);
        exit_status = profd_status_exit(PROFD_REFUSED);
    }
    if (exit_status != 0 || !g->terminal) {
        return exit_status;
    }

    /* The filter does not escape newlines, tabs and form feeds, because listings have them. Those inside a name become
     * '?'. */
    char *names = arena_copy(g->arena, g->object->names, g->object->name_bytes);
    if (names == NULL) {
        return complain(
            g, profd_error_set(&e, PROFD_NO_MEMORY, "no memory for %u bytes of names", g->object->name_bytes), &e);
    }
    for (uint32_t i = 0; i < g->object->name_bytes; i++) {
        if (names[i] == '\n' || names[i] == '\t' || names[i] == '\f') {
            names[i] = '?';
        }
    }
    g->object->names = names;
    return 0;
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
    free(f.bytes);
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
        const int fd = sum.failed ? -1 : open(GMON_SUM, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        int why = fd >= 0 && whole_write(fd, sum.data, sum.size) ? 0 : errno;
        if (fd >= 0 && close(fd) != 0 && why == 0) {
            why = errno;
        }
        const int exit_status = why == 0 ? 0 : complain_errno(GMON_SUM, why);
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
    struct profd_error e = {""};
    bool text = false;
    int exit_status = executable_read(g);
    if (exit_status != 0) {
        return exit_status;
    }
    for (uint32_t i = 0; i < g->object->range_count; i++) {
        text = text || g->object->ranges[i].kind == OBJECT_RANGE_TEXT;
    }
    if (!text) {
        (void)fprintf(stderr, "%s: can't find .text section in %s\n", g->program, o->executable);
        return 1;
    }
    enum profd_status status = compat_run_open(&g->run, &o->listing, g->object, g->arena, &e);
    if (status == PROFD_REFUSED) {
        (void)fprintf(stderr, "%s: file `%s' has no symbols\n", g->program, o->executable);
        return 1;
    }
    if (status != PROFD_OK) {
        return complain(g, status, &e);
    }
    compat_gmon_init(&g->gmon, g->arena, g->program, g->object->bits / 8u);
    for (int i = 0; i < o->file_count && exit_status == 0; i++) {
        exit_status = file_take(g, o->files[i]);
    }
    return exit_status == 0 ? counts_show(g) : exit_status;
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
        char rest[CLEAN_SIZE(0)];
        struct stat st;
        g.write_error = ENOMEM;
        /* A pipe of one MiB lets its reader and its writer work at the same time. If it is refused, 64 KiB do. */
        if (fstat(STDOUT_FILENO, &st) == 0 && S_ISFIFO(st.st_mode)) {
            (void)fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20);
        }
        buffer_init_drained(&g.out, OUT_BLOCK, out_write, &g);
        if (g.arena == NULL) {
            (void)fprintf(stderr, "%s: out of memory\n", program);
        }
        status = g.arena == NULL ? profd_status_exit(PROFD_NO_MEMORY) : gprof_do(&g);

        /* Prints what there is, also in front of a complaint, as gprof does. */
        const bool good = buffer_flush(&g.out);
        const size_t size = terminal != NULL ? terminal->clean(terminal->context, NULL, 0, rest) : 0;
        if (!good || (size > 0 && !whole_write(STDOUT_FILENO, rest, size))) {
            (void)fprintf(stderr, "%s: cannot write to standard output: %s\n", program,
                          strerror(good ? errno : g.write_error));
            status = profd_status_exit(PROFD_IO);
        }
        buffer_done(&g.out);
        arena_free(g.arena);
        gprof_options_done(&options);
    }
    gprof_words_done(&words);
    return status;
}
