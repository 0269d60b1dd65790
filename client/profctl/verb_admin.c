/* Verbs of operators: commands that the daemon obeys over its Unix socket. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "proto/attach_memory.h"
#include "proto/limits.h"
#include "proto/noun.h"
#include "proto/whole.h"

/* ---- delete ---- */

static const struct profctl_option delete_options[] = {
    {"yes", 'y', NULL, "do not ask for confirmation"},
};

static enum profd_status delete_run(const struct profctl_call *call, struct profd_error *e)
{
    struct ask_target target;
    struct answer build, answer;
    char id[160];
    const char *const arguments[] = {id};
    /* The id is resolved before the question, so that exactly the build that is shown is deleted. */
    TRY(build_find(call, call->arguments[0], id, e));
    ask_target_init(&target, "/api/v1/builds/{}", id);
    TRY(ask_fetch_object(call, &target, &build, e));
    (void)snprintf(id, sizeof id, "%s", row_text(build.whole, "build_id"));
    const char *name = row_text(build.whole, "name");
    const uint64_t uploads = row_number(build.whole, "uploads");
    if (!profctl_value(call, "yes")) {
        char line[16] = "";
        FAIL_IF(isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1, e, PROFD_USAGE,
                "delete would remove %" PRIu64 " %s of %s permanently; confirm with --yes", uploads,
                noun_for(uploads, "upload", "uploads"), name);
        (void)fprintf(stderr, "Delete %s, build %s: %" PRIu64 " %s, permanently? [y/N] ", name, id, uploads,
                      noun_for(uploads, "upload", "uploads"));
        (void)fflush(stderr);
        FAIL_IF(!fgets(line, sizeof line, stdin) || (strcmp(line, "y\n") != 0 && strcmp(line, "yes\n") != 0), e,
                PROFD_USAGE, "nothing was deleted");
    }
    TRY(ask_admin_text(call, "delete", arguments, 1, "deleting", &answer, e));
    if (answer.whole) {
        const uint64_t gone = row_number(answer.whole, "uploads");
        printf("deleted %s, build %s: %" PRIu64 " %s\n", name, id, gone, noun_for(gone, "upload", "uploads"));
    }
    return PROFD_OK;
}

const struct profctl_verb verb_delete = {
    .name = "delete",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "Delete every upload of a program",
    .details = "The ids of the deleted uploads stay known, so an upload that is sent again is not counted.\n",
    OPTIONS(delete_options),
    .arguments_least = 1,
    .arguments_most = 1,
    .run = delete_run,
};

/* ---- verify ---- */

static enum profd_status verify_run(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    json_t *row;
    size_t i;
    TRY(ask_admin(call, "verify", NULL, 0, "verifying", &answer, e));
    const uint64_t uploads = row_number(answer.whole, "uploads"), mismatches = row_number(answer.whole, "mismatches");
    if (call->json) {
        (void)fwrite(answer.text, 1, answer.size, stdout);
        return mismatches ? PROFD_MALFORMED : PROFD_OK; /* the document has said it */
    }
    json_array_foreach(answer.rows, i, row)
    {
        puts(row_text(row, "mismatch"));
    }
    if (mismatches > i) {
        printf("and %" PRIu64 " more\n", mismatches - i);
    }
    FAIL_IF(mismatches, e, PROFD_MALFORMED, "%" PRIu64 " %s in %" PRIu64 " %s", mismatches,
            noun_for(mismatches, "mismatch", "mismatches"), uploads, noun_for(uploads, "upload", "uploads"));
    printf("%" PRIu64 " %s verified, no mismatch\n", uploads, noun_for(uploads, "upload", "uploads"));
    return PROFD_OK;
}

const struct profctl_verb verb_verify = {
    .name = "verify",
    .arguments = "",
    .summary = "Verify all stored data against the ledger",
    .details = "Prints every difference; exits with 65 if there is one. The daemon does the same by itself, one round "
               "a day.\n",
    .run = verify_run,
};

/* ---- reload ---- */

static enum profd_status reload_run(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    char applied[4096], restart[4096];
    TRY(ask_admin_text(call, "reload", NULL, 0, "reading", &answer, e));
    row_join(answer.whole, "applied", applied, sizeof applied);
    row_join(answer.whole, "restart", restart, sizeof restart);
    if (*applied) {
        printf("Applied: %s\n", applied);
    }
    if (*restart) {
        printf("Not applied before profd is restarted: %s\n", restart);
    }
    if (answer.whole && !*applied && !*restart) {
        puts("No key of the configuration has changed; the files that it names were read again");
    }
    return PROFD_OK;
}

const struct profctl_verb verb_reload = {
    .name = "reload",
    .arguments = "",
    .summary = "Let the daemon read its configuration again",
    .details =
        "Prints the keys that were applied, and those that need a restart. With an error in it nothing changes.\n",
    .run = reload_run,
};

/* ---- retention ---- */

static const struct profctl_option retention_options[] = {
    {"confirm-clock", 0, NULL, "the clock is right, although it is ahead"},
};

static enum profd_status retention_run(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    FAIL_IF(!profctl_value(call, "confirm-clock"), e, PROFD_USAGE,
            "retention needs --confirm-clock; profctl status says if the clock is "
            "ahead");
    TRY(ask_admin_text(call, "confirm-clock", NULL, 0, "confirming", &answer, e));
    if (answer.whole) {
        printf("Data and ids of uploads are removed by the clock again, which is %.1f days ahead of the time that was "
               "used before\n",
               row_real(answer.whole, "clock_ahead_seconds") / 86400);
    }
    return PROFD_OK;
}

const struct profctl_verb verb_retention = {
    .name = "retention",
    .arguments = "",
    .summary = "Confirm a clock that is ahead, so that old data is removed again",
    .details =
        "While the clock is more than a day ahead, for at most 24 hours of uptime, no data is removed for its age.\n",
    OPTIONS(retention_options),
    .run = retention_run,
};

/* ---- pause ---- */

static const struct profctl_option pause_options[] = {
    {"off", 0, NULL, "let paused processes count again"},
    {"label", 'l', "K=V", "select processes with this label, as the argument K=V does; may be repeated"},
    {"rate", 0, "HZ", "ticks per second from now on, at most the original rate; 0 restores it"},
};

/* A request to the daemon: a pid or instance, or all labels together. */
struct pause_request {
    const char *words[LIMIT_ADMIN_ARGUMENTS];
    size_t count;
};

static enum profd_status word_add(struct pause_request *r, const char *word, struct profd_error *e)
{
    FAIL_IF(r->count == LIMIT_ADMIN_ARGUMENTS, e, PROFD_TOO_LARGE, "more than %u labels and options: %s",
            LIMIT_ADMIN_ARGUMENTS, word);
    r->words[r->count++] = word;
    return PROFD_OK;
}

/* Sends one command, followed by the rate. */
static enum profd_status request_send(const struct profctl_call *call, struct pause_request *r, const char *rate,
                                      struct profd_error *e)
{
    const bool off = profctl_value(call, "off") != NULL;
    const unsigned long wanted = rate[0] ? strtoul(rate + strlen("rate="), NULL, 10) : 0;
    struct answer answer;
    json_t *row;
    size_t i;
    TRY(rate[0] ? word_add(r, rate, e) : PROFD_OK);
    TRY(ask_admin_text(call, off ? "resume" : "pause", r->words, r->count, call->verb->name, &answer, e));
    json_array_foreach(answer.rows, i, row)
    {
        const char *name = row_base(row, "name");
        const uint64_t most = row_number(row, "rate"), pid = row_number(row, "pid");
        printf("%s %" PRIu64 "%s%s\n", off ? "counting" : "paused", pid, name[0] ? " " : "", name);
        if (wanted > most) {
            profctl_complain("%s: process %" PRIu64 " was started with a rate of %" PRIu64 ", which is its limit",
                             call->verb->name, pid, most);
        }
    }
    return PROFD_OK;
}

static enum profd_status pause_run(const struct profctl_call *call, struct profd_error *e)
{
    const char *text = profctl_value(call, "rate");
    unsigned long n = 0;
    char rate[32] = "";
    struct pause_request labels = {.count = 0};
    TRY(profctl_number(call, "rate", "a number", 0, ATTACH_RATE_MAX, &n, e));
    if (text) {
        (void)snprintf(rate, sizeof rate, "rate=%lu", n);
    }
    for (size_t i = 0; i < call->given_count; i++) {
        if (strcmp(call->given[i].option->name, "label") == 0) {
            FAIL_IF(!strchr(call->given[i].value, '='), e, PROFD_USAGE, "%s: -l \"%s\" is not NAME=VALUE",
                    call->verb->name, call->given[i].value);
            TRY(word_add(&labels, call->given[i].value, e));
        }
    }
    for (size_t i = 0; i < call->argument_count; i++) {
        TRY(strchr(call->arguments[i], '=') ? word_add(&labels, call->arguments[i], e) : PROFD_OK);
    }
    FAIL_IF(call->argument_count == 0 && labels.count == 0, e, PROFD_USAGE,
            "%s: no process given; name a PID, labels K=V, or an instance", call->verb->name);
    enum profd_status first = labels.count ? request_send(call, &labels, rate, e) : PROFD_OK;
    for (size_t i = 0; i < call->argument_count; i++) { /* one that is gone does not keep the others back */
        struct pause_request one = {.words = {call->arguments[i]}, .count = 1};
        struct profd_error why = {""};
        enum profd_status status = strchr(call->arguments[i], '=') ? PROFD_OK : request_send(call, &one, rate, &why);
        if (status != PROFD_OK && first == PROFD_OK) {
            first = profd_error_set(e, status, "%s", why.sentence);
        } else if (status != PROFD_OK) {
            profctl_complain("%s", why.sentence);
        }
    }
    return first;
}

const struct profctl_verb verb_pause = {
    .name = "pause",
    .arguments = "PID|K=V|INSTANCE...",
    .summary = "Make live processes stop counting, or count again",
    .details = "A process is named by its PID or by at least four characters of its instance (profctl ps --json). K=V "
               "selects\n"
               "all processes with that label. A process obeys at its next tick of CPU time.\n",
    OPTIONS(pause_options),
    .arguments_most = (size_t)-1,
    .run = pause_run,
};

/* ---- relay ---- */

static enum profd_status relay_run(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    FAIL_IF(strcmp(call->arguments[0], "move") != 0, e, PROFD_USAGE, "\"%s\" is not move", call->arguments[0]);
    TRY(ask_admin_text(call, "relay-move", NULL, 0, "moving", &answer, e));
    if (answer.whole) {
        const uint64_t withdrawn = row_number(answer.whole, "withdrawn");
        printf("The next centre that answers is the centre of this host\n"
               "withdrawn  %" PRIu64 " %s, which the centre before may have counted\n",
               withdrawn, noun_for(withdrawn, "upload", "uploads"));
    }
    return PROFD_OK;
}

const struct profctl_verb verb_relay = {
    .name = "relay",
    .arguments = "move",
    .summary = "Send to another centre from now on",
    .details =
        "Forgets the centre that answered this host first. What may have arrived there is not sent to the next one.\n",
    .arguments_least = 1,
    .arguments_most = 1,
    .run = relay_run,
};

/* ---- token ---- */

static const struct profctl_option token_options[] = {
    {"read", 0, NULL, "add: allow reading"},
    {"write", 0, NULL, "add: allow the host NAME to send its counts"},
    {"admin", 0, NULL, "add: allow reading and sending symbols"},
    {"tenant", 't', "T", "add: tenant of the data, or all (default: all; with --write: default)"},
    {"hosts", 0, "PATTERN", "add, with --write: allow all hosts with such names; * and ? are wildcards"},
    {"expires", 0, "TIME|AGE", "add: end of the token: a time, as 2027-01-31, or an age, as 90d (default: none)"},
    {"proxy", 0, NULL, "add: print no token; a proxy sends NAME"},
    {"from", 0, "FILE", "add: the token is the first line of FILE (default: a new one)"},
};

static enum profd_status token_add(const struct profctl_call *call, struct profd_error *e)
{
    static const char *const words[] = {"read", "write", "admin"};
    const char *name = call->argument_count == 2 ? call->arguments[1] : NULL, *tenant = profctl_value(call, "tenant"),
               *hosts = profctl_value(call, "hosts");
    const bool proxy = profctl_value(call, "proxy") != NULL;
    char end[64], rights[24] = "";
    struct answer answer;
    for (size_t i = 0, used = 0; i < COUNT(words); i++) {
        if (profctl_value(call, words[i]) != NULL) {
            used += (size_t)snprintf(rights + used, sizeof rights - used, "%s%s", used > 0 ? "," : "", words[i]);
        }
    }
    FAIL_IF(!name || rights[0] == '\0', e, PROFD_USAGE,
            "token add: give one name and at least one right: --read, --write or --admin");
    if (!tenant) {
        tenant = profctl_value(call, "write") != NULL ? "default" : "all";
    }
    /* Tells a time from an age: only a time contains a "-". */
    const char *given = profctl_value(call, "expires");
    char seconds[24];
    if (given == NULL) {
        end[0] = '\0';
    } else if (strchr(given, '-') != NULL) {
        (void)snprintf(end, 64, "%s", given);
    } else {
        TRY(profctl_duration(call, "expires", "", seconds, e));
        (void)snprintf(end, 64, "+%s", seconds);
    }
    const char *const from = profctl_value(call, "from");
    char kind[256];
    (void)snprintf(kind, sizeof kind, "%s", proxy ? "proxy" : "token");
    if (from) {
        errno = 0;
        FAIL_IF(whole_read_text(from, kind, sizeof kind) == 0, e, PROFD_USAGE, "token add: --from %s: %s", from,
                errno ? strerror(errno) : "the file is empty");
        kind[strcspn(kind, "\r\n")] = '\0';
    }
    FAIL_IF(from && (proxy || strncmp(kind, "profd_", 6) != 0), e, PROFD_USAGE,
            proxy ? "token add: --proxy makes no token, so --from %s is not possible with it"
                  : "token add: the first line of %s is not a token, which begins with profd_",
            from);
    const char *const arguments[] = {name, rights, tenant, end, kind, hosts ? hosts : ""};
    TRY(ask_admin_text(call, "token-add", arguments, COUNT(arguments), "adding", &answer, e));
    if (answer.whole && (proxy || from)) {
        printf(row_flag(answer.whole, "added") ? "added token %s%s\n" : "token %s%s is there already\n", name,
               proxy ? " for a proxy" : "");
    } else if (answer.whole) {
        printf("%s\n", row_text(answer.whole, "token"));
        profctl_complain("this is token %s (%s; tenant %s); it cannot be shown again", name, rights, tenant);
    }
    return PROFD_OK;
}

static const char *cell_by(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)out;
    return row_flag(row, field) ? "proxy" : "token";
}

static const char *cell_never(json_t *row, const char *field, char out[LIST_CELL])
{
    (void)out;
    return row_text(row, field)[0] ? row_text(row, field) : "never";
}

static enum profd_status token_list(const struct profctl_call *call, struct profd_error *e)
{
    static const struct list_column columns[] = {
        {"NAME", -24, "name", cell_text, false},        {"RIGHTS", -16, "rights", cell_join, false},
        {"TENANT", -16, "tenant", cell_text, false},    {"BY", -5, "proxy", cell_by, false},
        {"EXPIRES", -24, "expires", cell_never, false}, {"HOSTS", 0, "hosts", cell_text, false},
    };
    struct answer answer;
    TRY(call->argument_count == 1 ? ask_admin_text(call, "token-list", NULL, 0, "asking", &answer, e)
                                  : profd_error_set(e, PROFD_USAGE, "token list: no argument is expected"));
    if (answer.whole) {
        list_print_table(answer.rows, columns, COUNT(columns), NULL);
    }
    return PROFD_OK;
}

static enum profd_status token_remove(const struct profctl_call *call, struct profd_error *e)
{
    struct answer answer;
    const char *const name = call->argument_count == 2 ? call->arguments[1] : NULL;
    TRY(name ? ask_admin_text(call, "token-remove", &name, 1, "removing", &answer, e)
             : profd_error_set(e, PROFD_USAGE, "token remove: give one name"));
    if (answer.whole) {
        printf("removed token %s\n", name);
    }
    return PROFD_OK;
}

static enum profd_status token_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct {
        const char *name;
        enum profd_status (*run)(const struct profctl_call *call, struct profd_error *e);
    } actions[] = {{"add", token_add}, {"list", token_list}, {"remove", token_remove}};
    for (size_t i = 0; i < COUNT(actions); i++) {
        if (strcmp(call->arguments[0], actions[i].name) == 0) {
            return actions[i].run(call, e);
        }
    }
    return profd_error_set(e, PROFD_USAGE, "token: \"%s\" is not add, list or remove", call->arguments[0]);
}

const struct profctl_verb verb_token = {
    .name = "token",
    .arguments = "add NAME | list | remove NAME",
    .summary = "Manage the tokens of the HTTP API",
    .details =
        "add prints the token once; the daemon stores only its hash. Programs send it as Bearer token or password.\n",
    OPTIONS(token_options),
    .arguments_least = 1,
    .arguments_most = 2,
    .run = token_run,
};

/* ---- backup ---- */

#define ANSWER_MS 600000u

struct copy {
    const char *path; /* NULL: stdout */
    char *part;
    int fd;
    uint64_t size, total;
    struct progress progress;
};

static enum profd_status cannot(const char *what, const char *path, struct profd_error *e)
{
    enum profd_status status = errno == ENOSPC || errno == EDQUOT ? PROFD_FULL : PROFD_CANT_CREATE;
    return profd_error_set(e, status, "cannot %s %s: %s", what, path, strerror(errno));
}

static enum profd_status copy_open(const char *path, struct copy *c, struct profd_error *e)
{
    struct stat s;
    *c = (struct copy){.fd = STDOUT_FILENO};
    if (strcmp(path, "-") == 0) {
        return isatty(STDOUT_FILENO) == 1 ? profd_error_set(e, PROFD_USAGE, "a backup cannot be written to a terminal")
                                          : PROFD_OK;
    }
    FAIL_IF(lstat(path, &s) == 0, e, PROFD_CANT_CREATE, "%s exists already; a backup does not overwrite files", path);
    if (asprintf(&c->part, "%s.part", path) < 0) {
        c->part = NULL;
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a file name");
    }
    int fd = open(c->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        enum profd_status status =
            errno == EEXIST
                ? profd_error_set(
                      e, PROFD_CANT_CREATE,
                      "%s exists: another backup is in progress or was interrupted; remove it if none is in progress",
                      c->part)
                : cannot("make", c->part, e);
        free(c->part);
        return status;
    }
    c->path = path;
    c->fd = fd;
    return PROFD_OK;
}

static enum profd_status copy_take(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                   struct profd_error *e)
{
    struct copy *c = context;
    c->total = answer->http_status ? answer->total : 0;
    progress_show(&c->progress, answer->http_status ? "receiving" : "copying", answer->done, answer->total, "");
    c->size += n;
    return whole_write(c->fd, bytes, n) ? PROFD_OK : cannot("write", c->path ? c->part : "to stdout", e);
}

static enum profd_status copy_keep(struct copy *c, struct profd_error *e)
{
    FAIL_IF(c->size == 0 || c->size != c->total, e, PROFD_PROTOCOL,
            "the backup ended after %" PRIu64 " of %" PRIu64 " bytes", c->size, c->total);
    if (!c->path) {
        return PROFD_OK;
    }
    if (fsync(c->fd) != 0) {
        return cannot("write", c->part, e);
    }
    struct stat s;
    if (renameat2(AT_FDCWD, c->part, AT_FDCWD, c->path, RENAME_NOREPLACE) != 0 &&
        /* a file system that cannot promise it */
        (errno != EINVAL || lstat(c->path, &s) == 0 || rename(c->part, c->path) != 0)) {
        return cannot("make", c->path, e);
    }
    /* The name itself must outlive a crash, too. */
    const char *slash = strrchr(c->path, '/');
    char *directory = slash ? strndup(c->path, (size_t)(slash - c->path) + 1) : strdup(".");
    int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    enum profd_status status = PROFD_OK;
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) {
        status = cannot("sync the directory of", c->path, e);
    }
    whole_close(fd);
    free(directory);
    return status;
}

static enum profd_status backup_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    struct copy c;
    const struct profd_options o = profctl_options(call, ANSWER_MS);
    TRY(copy_open(call->arguments[0], &c, e));
    enum profd_status status = profd_conn_open(&o, &conn, e);
    if (status == PROFD_OK) {
        status = profd_admin(conn, "backup", NULL, 0, copy_take, &c, e);
        profd_conn_close(conn);
    }
    progress_end(&c.progress);
    status = status ? status : copy_keep(&c, e);
    if (c.path) {
        close(c.fd);
        (void)unlink(c.part); /* gone already where all went well */
    }
    free(c.part);
    if (status == PROFD_OK && c.path && call->json) {
        status = json_print(json_pack("{s:I}", "bytes", json_count(c.size)), e);
    } else if (status == PROFD_OK && c.path) {
        char size[32];
        show_bytes(c.size, size, sizeof size);
        printf("%s: %s\n", c.path, size);
    }
    return status;
}

const struct profctl_verb verb_backup = {
    .name = "backup",
    .arguments = "FILE",
    .summary = "Write a copy of all stored data to FILE (- for stdout)",
    .details = "Uploads continue meanwhile. FILE must not exist; it appears when it is complete and synced.\n",
    .arguments_least = 1,
    .arguments_most = 1,
    .run = backup_run,
};

/* ---- tier ---- */

/* Prints the days that the tier holds, of this centre and of others, and its faults. */
static void tier_print(json_t *tier)
{
    const uint64_t sealed = row_number(tier, "days_sealed"), waiting = row_number(tier, "days_waiting"),
                   failures = row_number(tier, "failures");
    const char *to = row_text(tier, "sealed_to"), *error = row_text(tier, "error");
    char bytes[32];
    show_bytes(row_number(tier, "bytes"), bytes, sizeof bytes);
    printf("tier     %s\n", row_text(tier, "url"));
    printf("sealed   %" PRIu64 " %s%s%.10s, with %" PRIu64 " sums of %s\n", sealed, noun_for(sealed, "day", "days"),
           to[0] ? " to " : "", to, row_number(tier, "sums"), bytes);
    printf("waiting  %" PRIu64 " %s", waiting, noun_for(waiting, "day", "days"));
    if (waiting) {
        printf(", the oldest for %.0f min", row_real(tier, "lag_seconds") / 60);
    }
    puts("");
    if (error[0]) {
        printf("FAILED   %" PRIu64 " %s since the start, and the last time: %s\n", failures,
               noun_for(failures, "time", "times"), error);
    } else if (failures) {
        printf("failed   %" PRIu64 " %s since the start, and not the last time\n", failures,
               noun_for(failures, "time", "times"));
    }
    json_t *centre;
    size_t i;
    json_array_foreach(json_object_get(tier, "centres"), i, centre)
    {
        const uint64_t days = row_number(centre, "days"), waiting_blocks = row_number(centre, "waiting_blocks");
        show_bytes(row_number(centre, "bytes"), bytes, sizeof bytes);
        printf("centre   %s to %.10s: %" PRIu64 " %s, with %" PRIu64 " sums of %s", row_text(centre, "name"),
               row_text(centre, "sealed_to"), days, noun_for(days, "day", "days"), row_number(centre, "sums"), bytes);
        printf(waiting_blocks ? "; %" PRIu64 " %s not read yet\n" : "\n", waiting_blocks,
               noun_for(waiting_blocks, "block is", "blocks are"));
    }
    if (row_flag(tier, "adopting")) {
        puts("ADOPTING what this centre had sealed before it was restored; until then uploads of hosts wait");
    }
    static const char *const faults[] = {"centres_error", "centres_refused", "centres_named_alike"};
    for (size_t k = 0; k < COUNT(faults); k++) {
        if (row_text(tier, faults[k])[0]) {
            printf("CENTRES  %s\n", row_text(tier, faults[k]));
        }
    }
}

static enum profd_status tier_run(const struct profctl_call *call, struct profd_error *e)
{
    struct ask_target target;
    struct answer answer;
    json_t *row;
    size_t i;
    if (strcmp(call->arguments[0], "init") == 0) {
        TRY(ask_admin_text(call, "tier-init", NULL, 0, "asking ClickHouse", &answer, e));
        json_array_foreach(answer.rows, i, row)
        {
            printf("ClickHouse %s at %s: the tables in database %s %s, and every statement of profd runs\n",
                   row_text(row, "version"), row_text(row, "server"), row_text(row, "database"),
                   row_flag(row, "made") ? "were made" : "were there");
        }
        return PROFD_OK;
    }
    FAIL_IF(strcmp(call->arguments[0], "status") != 0, e, PROFD_USAGE, "tier: \"%s\" is neither init nor status",
            call->arguments[0]);
    ask_target_init(&target, "/api/v1/status", NULL);
    TRY(ask_fetch_object(call, &target, &answer, e));
    json_t *tier = json_object_get(answer.whole, "tier");
    FAIL_IF(!json_is_object(tier), e, PROFD_NOTHING, "this daemon has no tier: the key tier of profd.conf(5) names it");
    if (call->json) {
        return json_print(json_incref(tier), e);
    }
    tier_print(tier);
    return PROFD_OK;
}

const struct profctl_verb verb_tier = {
    .name = "tier",
    .arguments = "init | status",
    .summary = "Make the tables of the tier in ClickHouse, or show its state",
    .details = "init runs every statement of profd once on each server. It may be repeated: what is there stays.\n",
    .arguments_least = 1,
    .arguments_most = 1,
    .run = tier_run,
};
