/* The configuration of profd and profd-relay: the command line overrides the file, the file overrides
 * defaults. One table (CONFIG_LIST) generates the long options, the keys of profd.conf(5), the text of --help and the
 * fields below. */
#ifndef PROFD_BASE_CONFIG_H
#define PROFD_BASE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "proto/place.h"
#include "proto/status.h"

/* X(field, name, kind, programs, argument, help). Names of kind ONLY_… are options only; every other name is also a
 * key. A LIST may be repeated: its values are lines of one text, and those of the command line replace the file's. The
 * two programs read one file: an option belongs to the programs named, a key of another is ignored. */
#define CONFIG_LIST(X)                                                                                                 \
    X(config, "config", ONLY_OPTION, OF_ALL, "FILE", "read FILE instead of the default profd.conf")                    \
    X(state_dir, "state-dir", TEXT, OF_PROFD, "DIR", "directory for all data")                                         \
    X(socket, "socket", TEXT, OF_ALL, "PATH", "Unix socket for uploads and queries, mode 0666")                        \
    X(http_socket, "http-socket", TEXT, OF_PROFD, "PATH",                                                              \
      "Unix socket for HTTP, for the read group; \"none\" disables it")                                                \
    X(http, "http", TEXT, OF_PROFD, "ADDR:PORT", "also serve HTTP on this loopback address (read only)")               \
    X(http_open, "http-open", FLAG, OF_PROFD, NULL, "allow all local users to read on --http without a token")         \
    X(http_origin, "http-origin", TEXT, OF_PROFD, "URL", "allow web pages of this origin (https://HOST[:PORT])")       \
    X(read_group, "read-group", TEXT, OF_PROFD, "GROUP", "group that may read the profiles of all users")              \
    X(admin_group, "admin-group", TEXT, OF_PROFD, "GROUP", "group that may delete, verify and back up")                \
    X(proxy_user, "proxy-user", TEXT, OF_PROFD, "USER",                                                                \
      "user of a proxy on the HTTP socket that may name tokens in X-Remote-User")                                      \
    X(raw_age, "raw-age", TEXT, OF_PROFD, "AGE", "roll up uploads older than AGE into hourly sums (default 48h)")      \
    X(raw_bytes, "raw-bytes", TEXT, OF_PROFD, "SIZE", "roll up the oldest uploads when they exceed SIZE (default 1G)") \
    X(keep_age, "keep-age", TEXT, OF_PROFD, "AGE",                                                                     \
      "remove days that ended more than AGE ago; 0: never (default 400d)")                                             \
    X(user_share, "user-share", TEXT, OF_PROFD, "PERCENT",                                                             \
      "share of the space left by other users that one user may use (default 50%)")                                    \
    X(keep_bytes, "keep-bytes", TEXT, OF_PROFD, "SIZE",                                                                \
      "remove the oldest days when the database exceeds SIZE (default 0: never)")                                      \
    X(relay, "relay", TEXT, OF_PROFD | OF_RELAY, "URL",                                                                \
      "send to the centre at https://HOST[:PORT][/PREFIX], or to a receiver of OTLP at otlp:URL")                      \
    X(relay_keep_bytes, "relay-keep-bytes", TEXT, OF_PROFD, "SIZE",                                                    \
      "acknowledged uploads kept in case the centre is restored (default 1G)")                                         \
    X(host_detail, "host-detail", TEXT, OF_PROFD, "WHEN",                                                              \
      "keep functions per host at a centre: auto (default), always or never")                                          \
    X(relay_ca, "relay-ca", TEXT, OF_RELAY, "FILE",                                                                    \
      "certificates that issue the centre's (PEM; default: the system's)")                                             \
    X(relay_token, "relay-token", TEXT, OF_RELAY, "FILE", "token of this host (mode 0600)")                            \
    X(relay_host, "relay-host", TEXT, OF_RELAY, "NAME", "name of this host, if the token is for several hosts")        \
    X(relay_proxy, "relay-proxy", TEXT, OF_RELAY, "URL", "connect through the HTTP proxy at http://HOST:PORT")         \
    X(relay_interval, "relay-interval", TEXT, OF_PROFD | OF_RELAY, "TIME",                                             \
      "interval in which each host connects once to a centre (default 60s)")                                           \
    X(relay_once, "once", ONLY_FLAG, OF_RELAY, NULL, "send what there is once, and exit")                              \
    X(harvest_interval, "harvest-interval", TEXT, OF_PROFD, "TIME",                                                    \
      "interval between harvests of a live process (default 10s)")                                                     \
    X(containers, "containers", TEXT, OF_PROFD, "DIR",                                                                 \
      "where the kubelet links the logs of containers (default " PLACE_LINKS ")")                                      \
    X(watch, "watch", LIST, OF_PROFD, "LABELS:FUNCTIONS",                                                              \
      "count these functions for Prometheus and compare new versions; may be repeated")                                \
    X(watch_interval, "watch-interval", TEXT, OF_PROFD, "TIME",                                                        \
      "interval between looks at the watched functions (default 60s)")                                                 \
    X(tier, "tier", TEXT, OF_PROFD, "URL",                                                                             \
      "keep sums of past days in ClickHouse at https://[USER@]HOST[:PORT][/DATABASE]")                                 \
    X(tier_password_file, "tier-password-file", TEXT, OF_PROFD, "FILE", "password of USER there (mode 0600)")          \
    X(tier_ca, "tier-ca-file", TEXT, OF_PROFD, "FILE",                                                                 \
      "certificates that issue ClickHouse's (PEM; default: the system's)")                                             \
    X(tier_name, "tier-name", TEXT, OF_PROFD, "NAME", "name of this centre in the tier (default: the host's name)")    \
    X(seal_after, "seal-after", TEXT, OF_PROFD, "AGE",                                                                 \
      "move days that ended more than AGE ago to the tier (default 2d)")                                               \
    X(log_level, "log-level", TEXT, OF_ALL, "LEVEL", "error, warning, notice (default), info or debug")                \
    X(restore, "restore", ONLY_OPTION, OF_PROFD, "FILE", "replace the stored data by the backup FILE and exit")        \
    X(help, "help", ONLY_FLAG, OF_ALL, NULL, "print this text")                                                        \
    X(version, "version", ONLY_FLAG, OF_ALL, NULL, "print the version")

enum config_program { OF_PROFD = 1, OF_RELAY = 2, OF_ALL = 3 };

enum config_option {
#define X(field, name, kind, programs, argument, help) CONFIG_##field,
    CONFIG_LIST(X)
#undef X
        CONFIG_COUNT
};

#define CONFIG_HOST_MAX 256
#define CONFIG_PATH_MAX 4096 /* bytes of the name of a file */

/* HOST:PORT, taken apart; an IPv6 address without its brackets. */
struct config_address {
    char host[CONFIG_HOST_MAX], port[8];
};

struct config {
    char *values[CONFIG_COUNT];   /* text, owned; NULL if not given. Flags are "yes" or "no" */
    char *file;                   /* that was read, owned; NULL: none */
    unsigned lines[CONFIG_COUNT]; /* of this file with the value; 0: it is not from the file */

    /* Set by config_check. Strings point into values and are not NULL unless noted. */
    const char *state_dir;
    const char *socket;      /* where it is made, unless it is passed in */
    const char *http_socket; /* NULL: none */
    const char *http;        /* NULL: no TCP */
    bool http_open;
    const char *http_origin; /* lower case, as browsers send it; NULL: none */
    bool has_read_group;
    uint32_t read_group;
    bool has_admin_group;
    uint32_t admin_group;
    int64_t raw_age, keep_age;                /* nanoseconds; keep 0: for ever */
    uint64_t raw_bytes, keep_bytes;           /* keep 0: no limit */
    unsigned user_share;                      /* percent; 100: no bound */
    int64_t harvest_interval;                 /* nanoseconds */
    const char *containers;                   /* directory of the kubelet's links */
    const char *watch;                        /* lines of core/watch_list.h, valid; NULL: nothing is watched */
    int64_t watch_interval;                   /* nanoseconds */
    const char *tier;                         /* a valid URL of base/clickhouse_address.h; NULL: none */
    const char *tier_password_file, *tier_ca; /* paths; NULL: none, the system's certificates */
    const char *tier_name;
    int64_t seal_after; /* nanoseconds */
    enum log_level log_level;
    bool http_given;   /* not by default */
    const char *relay; /* NULL: nothing is forwarded */
    bool relay_otlp;   /* relay is that of a receiver of OTLP, not of a centre */
    uint64_t relay_keep_bytes;
    bool has_relay_user; /* there is a user of the name profd-relay */
    uint32_t relay_user;
    enum { CONFIG_DETAIL_AUTO, CONFIG_DETAIL_ALWAYS, CONFIG_DETAIL_NEVER } host_detail; /* of a centre */
    bool has_http_proxy_user;                                                           /* of proxy-user */
    uint32_t http_proxy_user;
    bool has_record_user; /* there is a user of the name profd-record */
    uint32_t record_user;

    /* of profd-relay */
    const char *ca;                 /* path; NULL: the system's certificates */
    const char *token, *relay_host; /* path; name, NULL: none */
    bool has_proxy;
    struct config_address proxy;
    const char *proxy_user; /* USER:PASSWORD; NULL: none. Belongs into no log */
    int64_t relay_interval; /* nanoseconds */
};

/* Reads the options and the file, fills in defaults and checks all values. Opens and creates nothing. USAGE: an unknown
 * option or a stray argument. CONFIG: an invalid value, or an invalid file; the sentence names file and line, if the
 * value is from the file. --help and --version skip the check, so the caller must look at values first. On failure
 * nothing is owned. */
enum profd_status config_load(enum config_program program, int argc, char *const argv[], struct config *config,
                              struct profd_error *e);
/* Parses the key = value lines of a file of n bytes; name is used in error sentences. Values that are already set are
 * kept. */
enum profd_status config_parse(struct config *config, const char *text, size_t n, const char *name,
                               struct profd_error *e);
/* Fills in defaults and the checked part, for profd. */
enum profd_status config_check(struct config *config, struct profd_error *e);
void config_done(struct config *config);

/* Reads the first line of a file that no user but its owner may access, root or this process's user, unless it is a
 * credential of a service manager: from least to size − 2 bytes of printable ASCII. what: "token". CONFIG names the
 * path. */
enum profd_status config_read_secret(const char *what, const char *path, size_t least, char *out, size_t size,
                                     struct profd_error *e);

/* The keys whose values have changed. Names are static. */
struct config_change {
    size_t applied_count, restart_count;
    const char *applied[CONFIG_COUNT], *restart[CONFIG_COUNT]; /* restart: the program keeps the value of its start */
};

/* Loads the configuration of a running program again, with the options of its start. *config becomes the new one, and
 * *old the previous one, for which the caller calls config_done after the program has applied the new values. Values
 * that need a restart keep their text and its address. Errors as of config_load; then nothing has changed. Uses the
 * name service. */
enum profd_status config_reload(enum config_program program, int argc, char *const argv[], struct config *config,
                                struct config *old, struct config_change *change, struct profd_error *e);
/* Logs what config_reload did. */
void config_log_change(const struct config_change *change);

/* Fills in and checks what profd-relay needs. CONFIG names key and value. */
enum profd_status config_check_network(struct config *config, struct profd_error *e);

/* Begins a program: names it in the log, loads the configuration, opens the log, and answers --help and --version. *run
 * is set if neither was given. Errors as of config_load; the log is open then, too. The caller must call config_done in
 * any case. */
enum profd_status config_start(enum config_program program, int argc, char *const argv[], struct config *config,
                               bool *run, struct profd_error *e);

#endif
