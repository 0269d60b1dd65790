#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profctl/profctl.h"

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

/* The first of them that is set rules, as for setlocale. */
static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *value = environment(names[i]);
        if (value[0]) {
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
        }
    }
    return false;
}

enum profd_status look_choose(const struct profctl_call *call, struct look *out, struct profd_error *e)
{
    enum { AUTO, ALWAYS };
    const char *term = environment("TERM");
    bool capable = term[0] && strcmp(term, "dumb") != 0;
    size_t when = AUTO;
    TRY(profctl_choose(call, "color", &when, e));
    struct look look = {.terminal = isatty(STDOUT_FILENO) == 1, .dots = is_utf8() ? "…" : "..."};
    look.colour = when == AUTO ? look.terminal && capable && !environment("NO_COLOR")[0] : when == ALWAYS;
    look.shades = strstr(term, "256color") != NULL || environment("COLORTERM")[0];
    if (look.terminal && !profctl_value(call, "wide")) {
        struct winsize size;
        const unsigned long given = strtoul(environment("COLUMNS"), NULL, 10);
        look.columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                       : given >= 20 && given <= 10000                                 ? (unsigned)given
                                                                                       : 80;
    }
    *out = look;
    return PROFD_OK;
}

const char *look_heat(const struct look *look, double percent)
{
    if (!look->colour || !(percent >= 1)) {
        return "";
    }
    if (look->shades) { /* both are visible on white and on black */
        return percent >= 25 ? "\033[1;38;5;166m" : percent >= 5 ? "\033[38;5;166m" : "\033[38;5;32m";
    }
    return percent >= 25 ? "\033[1;33m" : percent >= 5 ? "\033[33m" : "\033[36m";
}

const char *look_names(const struct profctl_call *call, bool terminal)
{
    const char *names = profctl_value(call, "names");
    return names ? names : terminal && !profctl_value(call, "wide") && is_utf8() ? "short" : NULL;
}

#define KEY_COLUMNS 10 /* of the heading: "Not called" */
#define NAME_LEAST 24  /* columns that a name keeps, however narrow the terminal is */
#define OWN_LEAST 12   /* of these, before the arguments */

void paint_init(struct paint *p, const struct look *look)
{
    *p = (struct paint){.look = look};
}

/* Columns of the character at text, and its bytes. Ranges by Unicode's East Asian Width (W, F) and combining marks. */
static unsigned character_columns(const char *text, size_t n, size_t *bytes)
{
    static const struct {
        unsigned low, high, columns;
    } ranges[] = {
        {0x300, 0x36f, 0},     {0x1100, 0x115f, 2},   {0x200b, 0x200d, 0},   {0x2060, 0x2064, 0}, {0x20d0, 0x20ff, 0},
        {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0},
        {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2}, {0x1f300, 0x1f64f, 2},
        {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2}, {0xe0100, 0xe01ef, 0},
    };
    unsigned char first = (unsigned char)text[0];
    size_t size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    size = size <= n ? size : n;
    unsigned code = size == 1 ? first : first & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    }
    *bytes = size;
    for (size_t i = 0; code >= 0x300 && i < COUNT(ranges); i++) {
        if (code >= ranges[i].low && code <= ranges[i].high) {
            return ranges[i].columns;
        }
    }
    return 1;
}

static size_t text_columns(const char *text, size_t n)
{
    size_t columns = 0, bytes;
    for (size_t i = 0; i < n; i += bytes) {
        columns += character_columns(text + i, n - i, &bytes);
    }
    return columns;
}

/* The number of leading bytes of text that fit that many columns. */
static size_t bytes_of_columns(const char *text, size_t n, size_t columns)
{
    size_t i = 0, used = 0, bytes;
    while (i < n && (used += character_columns(text + i, n - i, &bytes)) <= columns) {
        i += bytes;
    }
    return i;
}

/* Bytes of "operator" with its brackets, which are none, at text; 0 if there is none. */
static size_t operator_size(const char *text, size_t n)
{
    static const char word[] = "operator";
    size_t i = sizeof word - 1;
    if (n < i || memcmp(text, word, i) != 0) {
        return 0;
    }
    if (n > i + 1 && (memcmp(text + i, "()", 2) == 0 || memcmp(text + i, "[]", 2) == 0)) {
        return i + 2;
    }
    while (i < n && memchr("<>-=", text[i], 4)) {
        i++;
    }
    return i;
}

/* Where the arguments of a function are inside its brackets, the last that are in no others and follow a name. False if
 * there are none, or brackets do not match. */
static bool find_arguments(const char *text, size_t n, size_t *first, size_t *end)
{
    size_t depth = 0, begin = 0, skip;
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        if ((skip = operator_size(text + i, n - i)) > 0) {
            i += skip - 1;
        } else if (text[i] == '-' && i + 1 < n && text[i + 1] == '>') {
            i++;
        } else if (memchr("<([{", text[i], 4)) {
            begin = depth++ == 0 ? i + 1 : begin;
        } else if (memchr(">)]}", text[i], 4) && depth-- == 0) {
            return false;
        } else if (text[i] == ')' && depth == 0 && begin > 1 && text[begin - 1] == '(' && text[begin - 2] != ' ' &&
                   text[begin - 2] != ':') {
            *first = begin;
            *end = i;
            found = true;
        }
    }
    return found && depth == 0;
}

/* A name with arguments in that number of columns: as much of the arguments as fits; if none of them fits, the end of
 * the name in front of them, because a function's own name stands there. */
static void called_write(const char *name, size_t n, size_t first, size_t end, size_t columns, const struct look *look,
                         FILE *out)
{
    const char *inner = first < end ? look->dots : "";
    size_t dots = look->dots[0] == '.' ? 3 : 1, head = text_columns(name, first);
    size_t tail = text_columns(name + end, n - end) + (first < end ? dots : 0), bytes;
    if (head + tail <= columns) {
        first += bytes_of_columns(name + first, end - first, columns - head - tail);
        (void)fprintf(out, "%.*s", (int)first, name);
    } else {
        size_t from = 0, left = columns > tail + dots + OWN_LEAST ? columns - tail - dots : OWN_LEAST;
        while (text_columns(name + from, first - from) > left) {
            (void)character_columns(name + from, first - from, &bytes);
            from += bytes;
        }
        if (strncmp(name + from, look->dots, strlen(look->dots)) == 0) { /* those of a short name */
            from += strlen(look->dots);
        }
        (void)fprintf(out, "%s%.*s", look->dots, (int)(first - from), name + from);
    }
    (void)fprintf(out, "%s%.*s", inner, (int)(n - end), name + end);
}

/* The line, with a part of its name cut out where it is wider than the terminal: of the arguments, else of the middle.
 */
static void line_write(const struct paint *p, FILE *out)
{
    size_t columns = p->look->columns, at = p->name_column, width = text_columns(p->line, p->size);
    if (columns == 0 || width <= columns || at == 0 || p->part == PAINT_HEADING || p->size <= at) {
        (void)fwrite(p->line, 1, p->size, out);
        return;
    }
    size_t available = columns > at + NAME_LEAST ? columns - at : NAME_LEAST, dots = p->look->dots[0] == '.' ? 3 : 1;
    size_t name = width - at;
    if (name <= available) {
        (void)fwrite(p->line, 1, p->size, out);
        return;
    }
    size_t first = 0, end = 0;
    if (find_arguments(p->line + at, p->size - at, &first, &end)) {
        (void)fwrite(p->line, 1, at, out);
        called_write(p->line + at, p->size - at, first, end, available, p->look, out);
        return;
    }
    size_t last = (available - dots) / 2,
           head = at + bytes_of_columns(p->line + at, p->size - at, available - dots - last);
    size_t tail = at + bytes_of_columns(p->line + at, p->size - at, name - last);
    size_t bytes;
    while (tail < p->size && text_columns(p->line + tail, p->size - tail) > last) { /* a wide character at the cut */
        (void)character_columns(p->line + tail, p->size - tail, &bytes);
        tail += bytes;
    }
    (void)fwrite(p->line, 1, head, out);
    (void)fputs(p->look->dots, out);
    (void)fwrite(p->line + tail, 1, p->size - tail, out);
}

/* Parses a number with a decimal point; "<0.01" is 0. False if there is none. */
static bool take_number(const char **text, double *out)
{
    const char *p = *text + strspn(*text, " ");
    bool below = *p == '<';
    p += below;
    size_t n = strspn(p, "0123456789.");
    if (n == 0 || (p[n] != ' ' && p[n] != '\0') || !memchr(p, '.', n)) {
        return false;
    }
    *out = below ? 0 : strtod(p, NULL);
    *text = p + n;
    return true;
}

static const char *heading_style(struct paint *p, size_t *key)
{
    static const char total[] = "Total     ", exact[] = "Exact     no";
    if (strncmp(p->line, total, sizeof total - 1) == 0) {
        p->total = strtod(p->line + sizeof total - 1, NULL);
    }
    *key = p->size < KEY_COLUMNS ? p->size : KEY_COLUMNS;
    while (*key > 0 && p->line[*key - 1] == ' ') {
        --*key;
    }
    if (*key == p->size || p->line[0] == ' ') {
        *key = 0;
        return "";
    }
    return strncmp(p->line, exact, sizeof exact - 1) == 0 ? look_heat(p->look, 100) : "\033[1m";
}

/* Style of a whole line of the tables; "" for none. */
static const char *table_style(const struct paint *p)
{
    double percent = 0, children = 0;
    const char *text = p->line;
    if (text[0] == '-') {
        return "\033[2m";
    }
    if (p->part == PAINT_GRAPH && text[0] == '[') {
        text += strcspn(text, "]");
        text += *text == ']';
        if (!take_number(&text, &percent)) {
            return "\033[1m";
        }
        return percent >= 1 ? look_heat(p->look, percent) : "\033[1m";
    }
    if (!take_number(&text, &percent)) {
        return "";
    }
    if (p->part == PAINT_GRAPH) { /* a caller or callee: its self and children of everything */
        if (!take_number(&text, &children) || !(p->total > 0)) {
            return "";
        }
        percent = 100 * (percent + children) / p->total;
        percent = percent < 24 ? percent : 24; /* bold is the entry's own line */
    }
    return look_heat(p->look, percent);
}

/* Titles and headers; NULL for other lines. */
static const char *title_style(struct paint *p)
{
    const char *text = p->line + strspn(p->line, "\t");
    bool flat = strcmp(text, "Flat profile:") == 0;
    if (flat || strcmp(text, "Call graph") == 0) {
        p->part = flat ? PAINT_FLAT : PAINT_GRAPH;
        p->name_column = 0;
        return "\033[1m";
    }
    if (p->part != PAINT_HEADING && p->name_column == 0 && p->size > 5 && strcmp(p->line + p->size - 5, " name") == 0) {
        p->name_column = p->size - 4;
        return "\033[1m";
    }
    return p->part != PAINT_HEADING && p->name_column == 0 ? "\033[1m" : NULL; /* the header's first line */
}

static void line_paint(struct paint *p, FILE *out)
{
    size_t key = 0;
    p->line[p->size] = '\0';
    if (p->part == PAINT_HEADING) {
        /* How long ago the counts of live processes were read. Here, because the daemon's text may be kept. */
        static const char live[] = "Live      as of ";
        char age[40], rest[256];
        const char *end = strncmp(p->line, live, sizeof live - 1) == 0 ? strstr(p->line, ": ") : NULL;
        if (end != NULL && strlen(end) < sizeof rest) {
            show_age_of(p->line + sizeof live - 1, (int64_t)time(NULL), age, sizeof age);
            (void)snprintf(rest, sizeof rest, "%s", end);
            p->size = (size_t)(end - p->line);
            p->size += (size_t)snprintf(p->line + p->size, sizeof p->line - p->size, " (%s)%s", age, rest);
        }
    }
    const char *style = p->size > 0 ? title_style(p) : "";
    if (!style) {
        style = p->part == PAINT_HEADING ? heading_style(p, &key) : table_style(p);
    }
    if (!p->look->colour || !style[0]) {
        line_write(p, out);
    } else if (key) {
        (void)fprintf(out, "%s%.*s\033[0m%s", style, (int)key, p->line, p->line + key);
    } else {
        (void)fputs(style, out);
        line_write(p, out);
        (void)fputs("\033[0m", out);
    }
    p->size = 0;
}

void paint_run(struct paint *p, const char *text, size_t n, FILE *out)
{
    while (n > 0) {
        const char *newline = memchr(text, '\n', n);
        size_t take = newline ? (size_t)(newline - text) : n;
        if (p->passing || take >= sizeof p->line - p->size) { /* no line of a report is so long */
            (void)fwrite(p->line, 1, p->size, out);
            (void)fwrite(text, 1, take, out);
            p->size = 0;
            p->passing = true;
        } else {
            memcpy(p->line + p->size, text, take);
            p->size += take;
        }
        if (newline) {
            if (!p->passing) {
                line_paint(p, out);
            }
            (void)putc('\n', out);
            p->passing = false;
            take++;
        }
        text += take;
        n -= take;
    }
}

void paint_end(struct paint *p, FILE *out)
{
    if (p->size > 0) {
        line_paint(p, out);
    }
}

const char *pager_choose(void)
{
    const char *command = getenv("PROFD_PAGER"), *term = getenv("TERM");
    char path[COMMAND_PATH_SIZE];
    if (getauxval(AT_SECURE) || !term || strcmp(term, "dumb") == 0) {
        return NULL;
    }
    command = command ? command : getenv("PAGER");
    if (!command) {
        return command_find("less", path) ? "less -FRX" : NULL;
    }
    return command[strspn(command, " ")] == '\0' || strcmp(command, "cat") == 0 ? NULL : command;
}

/* Starts it; p->stream is its input. Ctrl-C is the pager's from now on, and its end comes as EPIPE. */
static enum profd_status pager_start(struct pager *p, const char *command, struct profd_error *e)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    int ends[2];
    FAIL_IF(pipe2(ends, O_CLOEXEC) != 0, e, PROFD_IO, "cannot start the pager: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[0], STDIN_FILENO);
        (void)setenv("LESS", "FRX", 0);
        (void)setenv("LV", "-c", 0);
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    FILE *stream = pid > 0 ? fdopen(ends[1], "w") : NULL;
    if (!stream) {
        enum profd_status status = profd_error_set(e, PROFD_IO, "cannot start the pager: %s", strerror(errno));
        close(ends[1]);
        if (pid > 0) {
            (void)waitpid(pid, NULL, 0);
        }
        return status;
    }
    *p = (struct pager){.pid = pid, .stream = stream, .command = command};
    (void)sigaction(SIGINT, &ignore, &p->interrupt);
    (void)sigaction(SIGQUIT, &ignore, &p->quit);
    (void)sigaction(SIGPIPE, &ignore, &p->pipe);
    return PROFD_OK;
}

static enum profd_status cannot(const char *path, struct profd_error *e)
{
    return profd_error_set(e, PROFD_CANT_CREATE, "cannot write %s: %s", path, strerror(errno));
}

enum profd_status output_open(const char *path, struct output *out, struct profd_error *e)
{
    struct output o = {.stream = stdout};
    struct stat s;
    enum profd_status status = PROFD_OK;
    if (!path) {
        o.terminal = isatty(STDOUT_FILENO) == 1;
    } else if (stat(path, &s) == 0 && !S_ISREG(s.st_mode)) {
        o.stream = fopen(path, "we");
        status = o.stream ? PROFD_OK : cannot(path, e);
    } else {
        /* A file beside it, with the permissions of a new file. A symbolic link stays one. */
        o.path = realpath(path, NULL);
        o.path = o.path ? o.path : strdup(path);
        if (!o.path || asprintf(&o.part, "%s.%ld.part", o.path, (long)getpid()) < 0) {
            free(o.path);
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a file name");
        }
        const int fd = open(o.part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        o.stream = fd < 0 ? NULL : fdopen(fd, "w");
        status = o.stream ? PROFD_OK : cannot(o.path, e);
    }
    if (status != PROFD_OK) {
        free(o.path);
        free(o.part);
        return status;
    }
    *out = o;
    return PROFD_OK;
}

void output_dress(struct output *out, struct paint *paint, const char *pager_command)
{
    out->paint = paint;
    out->pager_command = pager_command;
}

static void piece_write(struct output *out, const char *bytes, size_t n)
{
    if (out->paint) {
        paint_run(out->paint, bytes, n, out->stream);
    } else {
        (void)fwrite(bytes, 1, n, out->stream);
    }
}

enum profd_status output_write(struct output *out, const void *bytes, size_t n, struct profd_error *e)
{
    const char *p = bytes;
    if (out->pager_command && n > 0) { /* not earlier: a question that fails needs no pager */
        const char *command = out->pager_command;
        out->pager_command = NULL;
        if (pager_start(&out->pager, command, NULL) == PROFD_OK) {
            out->stream = out->pager.stream;
        }
    }
    while (n > 0) {
        char clean[TERMINAL_BOUND(4096)];
        bool filtered = out->terminal || out->paint;
        size_t piece = filtered && n > 4096 ? 4096 : n;
        size_t size = filtered ? terminal_filter_run(&out->filter, p, piece, clean) : n;
        errno = 0;
        piece_write(out, filtered ? clean : p, size);
        if (ferror(out->stream)) {
            out->left = out->pager.pid != 0 && errno == EPIPE;
            return profd_error_set(e, PROFD_IO, "cannot write %s: %s", out->path ? out->path : "to stdout",
                                   strerror(errno));
        }
        p += piece;
        n -= piece;
    }
    return PROFD_OK;
}

enum profd_status output_close(struct output *out, bool keep, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    if (out->terminal || out->paint) {
        char rest[TERMINAL_BOUND(0)];
        piece_write(out, rest, terminal_filter_run(&out->filter, NULL, 0, rest));
    }
    if (out->paint) {
        paint_end(out->paint, out->stream);
    }
    bool failed = fflush(out->stream) != 0 || ferror(out->stream);
    if (out->pager.pid != 0) {
        out->left |= failed && errno == EPIPE;
        failed = false; /* it does not matter whether the reader read everything */
        struct pager *p = &out->pager;
        int how = 0;
        (void)fclose(p->stream); /* the user may have left the pager before the end */
        while (waitpid(p->pid, &how, 0) < 0 && errno == EINTR) {
        }
        (void)sigaction(SIGINT, &p->interrupt, NULL);
        (void)sigaction(SIGQUIT, &p->quit, NULL);
        (void)sigaction(SIGPIPE, &p->pipe, NULL);
        if (WIFEXITED(how) && (WEXITSTATUS(how) == 127 || WEXITSTATUS(how) == 126)) {
            status = profd_error_set(e, PROFD_USAGE, "cannot run the pager \"%s\"; use --no-pager", p->command);
        }
    } else if (out->stream != stdout) {
        failed |= fclose(out->stream) != 0;
    }
    if (failed && keep) {
        status =
            profd_error_set(e, PROFD_IO, "cannot write %s: %s", out->path ? out->path : "the output", strerror(errno));
    }
    if (out->part && (failed || !keep)) {
        (void)unlink(out->part);
    } else if (out->part && rename(out->part, out->path) != 0) {
        status = cannot(out->path, e);
        (void)unlink(out->part);
    }
    free(out->path);
    free(out->part);
    *out = (struct output){.left = out->left};
    return status;
}
