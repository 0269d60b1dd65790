/* How profd was asked to run: command line over file over defaults. One table makes the long options, the keys of
 * profd.conf(5), the text of --help and the fields below. */
#ifndef PROFD_DAEMON_CONFIG_H
#define PROFD_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"
#include "proto/status.h"

/* X(field, name, kind, argument, help). ONLY_…: only on the command line; every other name is also a key. */
#define CONFIG_LIST(X)                                                                                                 \
    X(config, "config", ONLY_OPTION, "FILE", "read FILE instead of the default profd.conf")                            \
    X(state_dir, "state-dir", TEXT, "DIR", "where everything is kept")                                                 \
    X(socket, "socket", TEXT, "PATH", "Unix socket for uploads and queries, mode 0666")                                \
    X(http_socket, "http-socket", TEXT, "PATH", "Unix socket that speaks HTTP, for the read group; \"none\": no such") \
    X(http, "http", TEXT, "ADDR:PORT", "speak HTTP on this loopback address too (read only)")                          \
    X(http_token, "http-token", TEXT, "FILE", "who asks there must know the token in FILE")                            \
    X(http_open, "http-open", FLAG, NULL, "let every local user ask there, without a token")                           \
    X(http_origin, "http-origin", TEXT, "URL", "pages of this origin (https://HOST[:PORT]) may ask over HTTP, too")    \
    X(read_group, "read-group", TEXT, "GROUP", "members (name or number) may read everybody's profiles")               \
    X(admin_group, "admin-group", TEXT, "GROUP", "members may delete, verify and back up")                             \
    X(raw_age, "raw-age", TEXT, "AGE", "uploads older than this become sums of an hour (48h)")                         \
    X(raw_bytes, "raw-bytes", TEXT, "SIZE", "as do the oldest beyond so many bytes (1G)")                              \
    X(keep_age, "keep-age", TEXT, "AGE", "days that ended longer ago are removed; 0: never (400d)")                    \
    X(keep_bytes, "keep-bytes", TEXT, "SIZE", "as are the oldest days beyond so many bytes; 0: never (0)")             \
    X(harvest_interval, "harvest-interval", TEXT, "TIME", "live processes are read so often (10s)")                    \
    X(log_level, "log-level", TEXT, "LEVEL", "error, warning, notice, info or debug")                                  \
    X(restore, "restore", ONLY_OPTION, "FILE", "put the backup FILE in the place of what is stored, and exit")         \
    X(help, "help", ONLY_FLAG, NULL, "print this text")                                                                \
    X(version, "version", ONLY_FLAG, NULL, "print the version")

enum config_option {
#define X(field, name, kind, argument, help) CONFIG_##field,
    CONFIG_LIST(X)
#undef X
        CONFIG_COUNT
};

struct config {
    char *values[CONFIG_COUNT]; /* as text, owned; NULL where nothing was said. Flags are "yes" or "no" */

    /* Set by the check. Strings are those of values, never NULL unless said. */
    const char *state_dir, *socket;
    const char *http_socket; /* NULL: none */
    const char *http;        /* NULL: no TCP */
    bool http_open;
    const char *http_origin;       /* in small letters, as browsers write it; NULL: none */
    uint8_t http_token_sha256[32]; /* when http and not http_open */
    bool has_read_group;
    uint32_t read_group;
    bool has_admin_group;
    uint32_t admin_group;
    int64_t raw_age, keep_age;      /* nanoseconds; keep 0: for ever */
    uint64_t raw_bytes, keep_bytes; /* keep 0: no limit */
    int64_t harvest_interval;       /* nanoseconds */
    enum log_level log_level;
    bool socket_given, http_given; /* not by default */
};

/* Builds and checks; nothing is opened or created. USAGE: an unknown option or a stray argument; CONFIG: a value, or
 * the file, naming file and line. --help and --version skip the check: look at values first. On failure nothing is
 * owned. */
enum profd_status config_load(int argc, char *const argv[], struct config *config, struct profd_error *e);
/* Reads key = value lines of a file of n bytes; name is for the sentence. What is already set stays. */
enum profd_status config_parse(struct config *config, const char *text, size_t n, const char *name,
                               struct profd_error *e);
/* Fills in defaults and the checked part. */
enum profd_status config_check(struct config *config, struct profd_error *e);
void config_done(struct config *config);

/* The text of --help. */
void config_print_help(void);

#endif
