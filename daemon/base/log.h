/* Writes log lines to stderr. Control bytes are escaped, because values come from untrusted peers. Each category is
 * limited to 20 lines in 10 s, so that a misbehaving peer cannot fill the disk. Used by the loop's thread only. */
#ifndef PROFD_BASE_LOG_H
#define PROFD_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Finds the level with this name. Returns false if there is none. */
bool log_find_level(const char *name, enum log_level *level);

/* Lines above the level are not written from now on. Under journald (JOURNAL_STREAM names stderr) lines begin with its
 * priority prefix. */
void log_open(enum log_level level);

/* Lines begin with this name, a static string, from now on: "profd" if it is not called. */
void log_set_program(const char *name);

/* category: a short static string, the key of the rate limit; NULL is not limited. */
void log_write(enum log_level level, const char *category, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Logs how many lines were suppressed in windows that have ended. Called periodically. */
void log_flush(void);

/* Returns the number of lines suppressed so far. */
unsigned long long log_suppressed(void);

#endif
