#include "base/config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES 65536

enum config_kind { TEXT, LIST, FLAG, ONLY_OPTION, ONLY_FLAG };

static const struct config_row {
    const char *name;
    enum config_kind kind;
    unsigned programs;
    const char *argument, *help;
} config_rows[CONFIG_COUNT] = {
#define X(field, name, kind, programs, argument, help) {name, kind, programs, argument, help},
    CONFIG_LIST(X)
#undef X
};

void config_done(struct config *config)
{
    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        free(config->values[i]);
    }
    free(config->file);
    memset(config, 0, sizeof *config);
}

/* Sets the value of an option that has none yet. */
static enum profd_status config_set(struct config *config, enum config_option option, const char *value, size_t n,
                                    struct profd_error *e)
{
    if (config->values[option]) {
        return PROFD_OK;
    }
    config->values[option] = strndup(value, n);
    return config->values[option] ? PROFD_OK : profd_no_memory(e);
}

/* Appends a line to a list. */
static enum profd_status config_append(struct config *config, enum config_option option, const char *value, size_t n,
                                       struct profd_error *e)
{
    char *old = config->values[option], *text = NULL;

    if (!old) {
        return config_set(config, option, value, n, e);
    }
    if (asprintf(&text, "%s\n%.*s", old, (int)n, value) < 0) {
        return profd_no_memory(e);
    }
    config->values[option] = text;
    free(old);
    return PROFD_OK;
}

static void config_trim(const char **text, size_t *n)
{
    while (*n && ((*text)[0] == ' ' || (*text)[0] == '\t')) {
        (*text)++;
        (*n)--;
    }
    while (*n && ((*text)[*n - 1] == ' ' || (*text)[*n - 1] == '\t' || (*text)[*n - 1] == '\r')) {
        (*n)--;
    }
}

/* Parses one line, which is trimmed and not empty. seen holds the keys of this file. */
static enum profd_status config_parse_line(struct config *config, const char *line, size_t n, unsigned number,
                                           bool seen[CONFIG_COUNT], struct profd_error *e)
{
    const char *equals = memchr(line, '=', n), *value;
    enum config_option option = 0;

    FAIL_IF(memchr(line, 0, n), e, PROFD_CONFIG, "the line contains a NUL byte");
    FAIL_IF(!equals, e, PROFD_CONFIG, "\"%.*s\" is not key = value", (int)(n < 100 ? n : 100), line);
    size_t key_size = (size_t)(equals - line);
    value = equals + 1;
    size_t value_size = n - key_size - 1;
    config_trim(&line, &key_size);
    config_trim(&value, &value_size);
    while (option < CONFIG_COUNT && (config_rows[option].kind > FLAG || strlen(config_rows[option].name) != key_size ||
                                     memcmp(config_rows[option].name, line, key_size) != 0)) {
        option++;
    }
    FAIL_IF(option == CONFIG_COUNT, e, PROFD_CONFIG, "unknown key \"%.*s\"", (int)(key_size < 100 ? key_size : 100),
            line);
    FAIL_IF(seen[option] && config_rows[option].kind != LIST, e, PROFD_CONFIG, "the key \"%s\" occurs twice",
            config_rows[option].name);
    FAIL_IF(!value_size, e, PROFD_CONFIG, "the key \"%s\" has no value", config_rows[option].name);
    if (config_rows[option].kind == FLAG && (value_size != 3 || memcmp(value, "yes", 3) != 0) &&
        (value_size != 2 || memcmp(value, "no", 2) != 0)) {
        return profd_error_set(e, PROFD_CONFIG, "the value of \"%s\" is \"%.*s\", not yes or no",
                               config_rows[option].name, (int)(value_size < 100 ? value_size : 100), value);
    }
    if (seen[option]) {
        return config->lines[option] ? config_append(config, option, value, value_size, e) : PROFD_OK;
    }
    seen[option] = true;
    config->lines[option] = config->values[option] ? 0 : number;
    return config_set(config, option, value, value_size, e);
}

enum profd_status config_parse(struct config *config, const char *text, size_t n, const char *name,
                               struct profd_error *e)
{
    bool seen[CONFIG_COUNT] = {false};
    enum profd_status status = PROFD_OK;
    unsigned line = 0;

    while (n && !status) {
        const char *end = memchr(text, '\n', n), *start = text;
        size_t size = end ? (size_t)(end - text) : n;
        const size_t whole = end ? size + 1 : size;

        line++;
        config_trim(&start, &size);
        if (size && *start != '#') {
            status = config_parse_line(config, start, size, line, seen, e);
            if (status) {
                profd_error_wrap(e, status, "%s:%u", name, line);
            }
        }
        text += whole;
        n -= whole;
    }
    return status;
}

static enum profd_status config_parse_options(enum config_program program, struct config *config, int argc,
                                              char *const argv[], struct profd_error *e)
{
    struct option options[CONFIG_COUNT + 1];
    enum config_option meant[CONFIG_COUNT];
    enum profd_status status = PROFD_OK;
    int got, index = 0;
    size_t n = 0;

    memset(options, 0, sizeof options);
    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        if (config_rows[i].programs & program) {
            options[n].name = config_rows[i].name;
            options[n].has_arg = config_rows[i].argument ? required_argument : no_argument;
            options[n].val = 'o';
            meant[n++] = (enum config_option)i;
        }
    }
    optind = 0; /* start over: this is called more than once in tests */
    opterr = 0;
    while (!status && (got = getopt_long(argc, argv, "+:", options, &index)) != -1) {
        const char *shown = optind > 0 && optind <= argc ? argv[optind - 1] : "";

        if (got == ':') {
            status = profd_error_set(e, PROFD_USAGE, "option \"%s\" requires a value; try --help", shown);
        } else if (got != 'o') {
            status = profd_error_set(e, PROFD_USAGE, "unknown option \"%s\"; try --help", shown);
        } else if (config->values[meant[index]] && config_rows[meant[index]].kind != LIST) {
            status = profd_error_set(e, PROFD_USAGE, "option \"--%s\" was given twice", options[index].name);
        } else if (meant[index] == CONFIG_relay_proxy && strchr(optarg, '@')) {
            status =
                profd_error_set(e, PROFD_USAGE,
                                "option \"--relay-proxy\" has a password, which other users could see: write it as "
                                "relay-proxy into the file of --config");
        } else if (optarg && !*optarg) {
            status = profd_error_set(e, PROFD_USAGE, "option \"--%s\" has an empty value", options[index].name);
        } else {
            status = config_append(config, meant[index], optarg ? optarg : "yes", optarg ? strlen(optarg) : 3, e);
        }
    }
    if (!status && optind < argc) {
        status = profd_error_set(e, PROFD_USAGE, "\"%s\": only options are accepted; try --help", argv[optind]);
    }
    return status;
}

/* Reads the configuration file at path, or the default file, which may be missing (*text NULL). name receives the path.
 * The caller frees *text. */
static enum profd_status config_file_read(const char *path, char *name, size_t name_size, char **text, size_t *n,
                                          struct profd_error *e)
{
    struct stat st;
    ssize_t part = 1;

    if (path) {
        snprintf(name, name_size, "%s", path);
    } else {
        /* The system's file for root and for the users of the packaged services, otherwise the user's own. */
        const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

        const struct passwd *own = getpwuid(geteuid());
        const bool system =
            !geteuid() || (own && (!strcmp(own->pw_name, "profd") || !strcmp(own->pw_name, "profd-relay")));

        if (!system && xdg && *xdg == '/') {
            snprintf(name, name_size, "%s/profd/profd.conf", xdg);
        } else if (!system && home && *home == '/') {
            snprintf(name, name_size, "%s/.config/profd/profd.conf", home);
        } else {
            snprintf(name, name_size, "%s/profd.conf", SYSCONFDIR);
        }
    }
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        const int why = errno;

        /* A default file that cannot be accessed (the HOME of a user that called sudo) counts as missing. */
        if (!path && stat(name, &st)) {
            return PROFD_OK;
        }
        return profd_error_set(e, PROFD_CONFIG, "cannot read the configuration %s: %s", name, strerror(why));
    }
    char *got = malloc(FILE_MAX_BYTES + 1);
    for (*n = 0; got && *n <= FILE_MAX_BYTES && part; *n += part > 0 ? (size_t)part : 0) {
        part = read(fd, got + *n, FILE_MAX_BYTES + 1 - *n);
        if (part < 0 && errno != EINTR) {
            break;
        }
    }
    const int why = errno;

    close(fd);
    if (!got || part < 0 || *n > FILE_MAX_BYTES) {
        free(got);
        return profd_error_set(e, PROFD_CONFIG, "cannot read the configuration %s: %s", name,
                               *n > FILE_MAX_BYTES ? "more than 65536 bytes" : strerror(got ? why : ENOMEM));
    }
    *text = got;
    return PROFD_OK;
}

/* Reads options and file without checking values; with --help or --version no file. The caller calls config_done, after
 * a failure, too. */
static enum profd_status config_read(enum config_program program, int argc, char *const argv[], struct config *config,
                                     struct profd_error *e)
{
    enum profd_status status = config_parse_options(program, config, argc, argv, e);
    char *text = NULL;
    char name[4096];
    size_t n = 0;

    if (status || config->values[CONFIG_help] || config->values[CONFIG_version]) {
        return status;
    }
    status = config_file_read(config->values[CONFIG_config], name, sizeof name, &text, &n, e);
    config->file = text ? strdup(name) : NULL;
    if (!status && text && !config->file) {
        status = profd_no_memory(e);
    }
    status = status ? status : config_parse(config, text, n, name, e);
    free(text);
    return status;
}

/* Checks all values. The sentence of a failed check names its key: the file and line of the first key in the sentence
 * that is from the file are put before it. */
static enum profd_status config_check_all(enum config_program program, struct config *config, struct profd_error *e)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyz-_";
    const char *first = NULL;
    unsigned line = 0;
    const enum profd_status status = program == OF_PROFD ? config_check(config, e) : config_check_network(config, e);

    for (size_t i = 0; i < CONFIG_COUNT && status; i++) {
        const size_t n = strlen(config_rows[i].name);
        const char *at = config->lines[i] ? strstr(e->sentence, config_rows[i].name) : NULL;

        while (at && ((at > e->sentence && strchr(word, at[-1])) || (at[n] && strchr(word, at[n])))) {
            at = strstr(at + n, config_rows[i].name); /* a part of another word */
        }
        if (at && (!first || at < first)) {
            first = at;
            line = config->lines[i];
        }
    }
    return first && config->file ? profd_error_wrap(e, status, "%s:%u", config->file, line) : status;
}

enum profd_status config_load(enum config_program program, int argc, char *const argv[], struct config *config,
                              struct profd_error *e)
{
    struct config made;

    memset(&made, 0, sizeof made);
    enum profd_status status = config_read(program, argc, argv, &made, e);
    if (!status && !made.values[CONFIG_help] && !made.values[CONFIG_version]) {
        status = config_check_all(program, &made, e);
    }
    if (status) {
        config_done(&made);
    } else {
        *config = made;
    }
    return status;
}

/* Options that profd cannot change while it runs. */
static const enum config_option fixed[] = {
    CONFIG_state_dir,          CONFIG_socket,  CONFIG_http_socket, CONFIG_http,       CONFIG_relay,     CONFIG_tier,
    CONFIG_tier_password_file, CONFIG_tier_ca, CONFIG_tier_name,   CONFIG_seal_after, CONFIG_containers};

#define FIXED_COUNT (sizeof fixed / sizeof *fixed)

/* Exchanges the values that need a restart. */
static void config_exchange_fixed(enum config_program program, struct config *a, struct config *b)
{
    for (size_t i = 0; i < FIXED_COUNT && program == OF_PROFD; i++) {
        char *value = a->values[fixed[i]];

        a->values[fixed[i]] = b->values[fixed[i]];
        b->values[fixed[i]] = value;
    }
}

enum profd_status config_reload(enum config_program program, int argc, char *const argv[], struct config *config,
                                struct config *old, struct config_change *change, struct profd_error *e)
{
    struct config whole = {.file = NULL}, fresh = {.file = NULL};
    /* First as it would be after a restart, then with what does not change: both must be valid. */
    TRY(config_load(program, argc, argv, &whole, e));
    *change = (struct config_change){0};
    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        const char *before = config->values[i], *after = whole.values[i];
        const bool same = before == after || (before && after && !strcmp(before, after));
        bool keeps = false;

        for (size_t k = 0; k < FIXED_COUNT && program == OF_PROFD; k++) {
            keeps |= fixed[k] == i;
        }
        if (!same && keeps && config_rows[i].programs & program) {
            change->restart[change->restart_count++] = config_rows[i].name;
        } else if (!same && config_rows[i].programs & program) {
            change->applied[change->applied_count++] = config_rows[i].name;
        }
    }
    config_done(&whole);
    enum profd_status status = config_read(program, argc, argv, &fresh, e);
    config_exchange_fixed(program, config, &fresh);
    status = status ? status : config_check_all(program, &fresh, e);
    if (status) {
        config_exchange_fixed(program, config, &fresh);
        config_done(&fresh);
        return status;
    }
    *old = *config;
    *config = fresh;
    return PROFD_OK;
}

static void config_log_names(const char *what, const char *const *names, size_t n)
{
    char list[1024] = "";
    size_t used = 0;

    for (size_t i = 0; i < n && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    log_write(LOG_LEVEL_NOTICE, NULL, "the configuration and its files were read again; %s%s", what, list);
}

void config_log_change(const struct config_change *change)
{
    if (change->applied_count) {
        config_log_names("changed: ", change->applied, change->applied_count);
    }
    if (change->restart_count) {
        config_log_names("these changes need a restart: ", change->restart, change->restart_count);
    }
    if (!change->applied_count && !change->restart_count) {
        config_log_names("no key has changed", NULL, 0);
    }
}

enum profd_status config_start(enum config_program program, int argc, char *const argv[], struct config *config,
                               bool *run, struct profd_error *e)
{
    const char *name = program == OF_RELAY ? "profd-relay" : "profd";

    *run = false;
    memset(config, 0, sizeof *config);
    log_set_program(name);
    enum profd_status status = config_load(program, argc, argv, config, e);
    if (status) {
        log_open(LOG_LEVEL_ERROR);
    } else if (config->values[CONFIG_help]) {
        printf("%s", program == OF_RELAY ? "usage: profd-relay [OPTION]...\nSends what profd collects for a centre.\n\n"
                                         : "usage: profd [OPTION]...\n"
                                           "Collects call-graph profiles from processes and serves reports.\n\n");
        for (size_t i = 0; i < CONFIG_COUNT; i++) {
            char left[64];

            snprintf(left, sizeof left, "--%s%s%s", config_rows[i].name, config_rows[i].argument ? " " : "",
                     config_rows[i].argument ? config_rows[i].argument : "");
            if (config_rows[i].programs & program) {
                printf("  %-24s %s\n", left, config_rows[i].help);
            }
        }
        printf("\nOptions that do not concern one start of the program are also keys of profd.conf(5).\n");
    } else if (config->values[CONFIG_version]) {
        printf("%s %s\n", name, PROFD_VERSION);
    } else {
        log_open(config->log_level);
        *run = true;
    }
    return status;
}
