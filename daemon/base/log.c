#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/noun.h"

#define LINES_PER_WINDOW 20
#define WINDOW_SECONDS 10
#define CATEGORIES 32
#define LINE_MAX_BYTES 2048

static const struct {
    const char *name;
    char priority; /* of syslog */
} log_levels[] = {{"error", '3'}, {"warning", '4'}, {"notice", '5'}, {"info", '6'}, {"debug", '7'}};

struct log_window {
    const char *category;
    int64_t start;
    unsigned lines, suppressed;
};

static struct {
    enum log_level level;
    const char *program;
    bool journal;
    struct log_window windows[CATEGORIES];
    unsigned long long suppressed;
} log_state = {.level = LOG_LEVEL_NOTICE, .program = "profd"};

bool log_find_level(const char *name, enum log_level *level)
{
    for (size_t i = 0; i < sizeof log_levels / sizeof *log_levels; i++) {
        if (!strcmp(log_levels[i].name, name)) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

void log_open(enum log_level level)
{
    /* JOURNAL_STREAM is "device:inode" of the journal's stream. stderr may have been redirected since. */
    const char *stream = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat st;

    log_state.level = level;
    log_state.journal = false;
    if (stream && !fstat(STDERR_FILENO, &st)) {
        snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
        log_state.journal = !strcmp(own, stream);
    }
}

void log_set_program(const char *name)
{
    log_state.program = name;
}

static int64_t log_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

static void log_emit(enum log_level level, const char *text)
{
    char line[LINE_MAX_BYTES];
    size_t n;

    if (log_state.journal) {
        n = (size_t)snprintf(line, sizeof line, "<%c>", log_levels[level].priority);
    } else {
        n = (size_t)snprintf(line, sizeof line, "%s: %s%s", log_state.program,
                             level <= LOG_LEVEL_WARNING ? log_levels[level].name : "",
                             level <= LOG_LEVEL_WARNING ? ": " : "");
    }
    /* Control bytes become \xNN. UTF-8 passes. */
    for (; *text && n + 6 < sizeof line; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c >= 0x20 && c != 0x7f) {
            line[n++] = *text;
        } else {
            n += (size_t)snprintf(line + n, sizeof line - n, "\\x%02x", c);
        }
    }
    line[n++] = '\n';
    /* One call for each line, so that lines of several writers do not mix. */
    ssize_t put = write(STDERR_FILENO, line, n);
    (void)put;
}

static void log_end_window(struct log_window *w)
{
    char text[160];

    if (w->suppressed) {
        snprintf(text, sizeof text, "%u more %s suppressed about \"%s\"", w->suppressed,
                 noun_for(w->suppressed, "line was", "lines were"), w->category);
        log_emit(LOG_LEVEL_WARNING, text);
    }
    w->lines = w->suppressed = 0;
}

/* Returns whether one more line of the category may be written. Categories beyond CATEGORIES share the last window. */
static bool log_admit(const char *category)
{
    const int64_t now = log_now();
    struct log_window *w = log_state.windows;

    while (w->category && strcmp(w->category, category) != 0 && w < log_state.windows + CATEGORIES - 1) {
        w++;
    }
    if (!w->category) {
        w->category = category;
        w->start = now;
    }
    if (now - w->start >= WINDOW_SECONDS) {
        log_end_window(w);
        w->start = now;
    }
    if (w->lines < LINES_PER_WINDOW) {
        w->lines++;
        return true;
    }
    w->suppressed++;
    log_state.suppressed++;
    return false;
}

void log_write(enum log_level level, const char *category, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list arguments;

    if (level > log_state.level || (category && !log_admit(category))) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_emit(level, text);
}

void log_flush(void)
{
    const int64_t now = log_now();

    for (struct log_window *w = log_state.windows; w < log_state.windows + CATEGORIES && w->category; w++) {
        if (w->suppressed && now - w->start >= WINDOW_SECONDS) {
            log_end_window(w);
            w->start = now;
        }
    }
}

unsigned long long log_suppressed(void)
{
    return log_state.suppressed;
}
