#include "profctl/profctl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/noun.h"

#define ID_SIZE 160
#define PREFIX_LEAST 4
#define WHOLE_LEAST 32 /* characters of a build-id, and of no program's name */
#define LISTED_MOST 4  /* builds in a sentence */

static bool is_prefix(const char *text)
{
    return strncmp(text, "sha256-", 7) == 0 ||
           (strlen(text) >= PREFIX_LEAST && text[strspn(text, "0123456789abcdefABCDEF")] == '\0');
}

static bool row_has_name(json_t *build, bool program, const char *name)
{
    return row_flag(build, "is_program") == program && strcmp(row_base(build, "name"), name) == 0;
}

static enum profd_status list_builds(struct profd_conn *conn, json_t *builds, bool program, const char *name,
                                     size_t count, struct profd_error *e)
{
    char list[sizeof e->sentence] = "";
    size_t used = 0, listed = 0, i;
    json_t *build;
    json_array_foreach(builds, i, build)
    {
        if (listed == LISTED_MOST || !row_has_name(build, program, name)) {
            continue;
        }
        /* "5559b53474f7 (version 1.2, last seen 2026-11-22T16:35:09Z)" */
        struct ask_target target;
        struct answer versions = {.whole = NULL};
        const char *id = row_text(build, "build_id");
        ask_target_init(&target, "/api/v1/labels/{}/values", "version");
        ask_target_add(&target, "build_id", id);
        (void)ask_rows(conn, &target, &versions, NULL);
        const size_t known = json_array_size(versions.rows);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.12s (%s%.40s%s%slast seen %.19sZ)",
                                 listed++ ? ", " : "", id, known ? "version " : "",
                                 known ? row_text(json_array_get(versions.rows, 0), "value") : "",
                                 known > 1 ? " and others" : "", known ? ", " : "", row_text(build, "last_seen"));
    }
    if (count > listed) {
        (void)snprintf(list + used, sizeof list - used, ", %zu more", count - listed);
    }
    return profd_error_set(e, PROFD_AMBIGUOUS, "\"%.40s\" is the name of %zu builds; choose one by its build-id: %s",
                           name, count, list);
}

/* Of the programs that are stored, the latest. */
static enum profd_status list_programs(json_t *builds, const char *name, struct profd_error *e)
{
    char list[sizeof e->sentence / 2] = "";
    const char *before[LISTED_MOST];
    size_t used = 0, listed = 0, i;
    json_t *build;
    json_array_foreach(builds, i, build)
    {
        const char *own = row_base(build, "name");
        bool again = listed == LISTED_MOST || !row_flag(build, "is_program") || own[0] == '\0';
        for (size_t k = 0; k < listed; k++) {
            again = again || strcmp(before[k], own) == 0;
        }
        if (!again) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s", listed ? ", " : "", own);
            before[listed++] = own;
        }
    }
    return profd_error_set(e, PROFD_NOT_FOUND,
                           "no program or library \"%.80s\" has profiles%s%s; `profctl builds --all` lists all", name,
                           listed ? "; the latest programs that have are " : "", list);
}

static bool begins_id(json_t *builds, const char *prefix)
{
    json_t *build;
    size_t i;
    json_array_foreach(builds, i, build)
    {
        if (strncasecmp(row_text(build, "build_id"), prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

/* Counts the programs, or the libraries, with that name; id is the latest. */
static size_t count_named(json_t *builds, bool program, const char *name, char id[ID_SIZE])
{
    size_t count = 0, i;
    json_t *build;
    json_array_foreach(builds, i, build)
    {
        if (row_has_name(build, program, name) && count++ == 0) {
            (void)snprintf(id, ID_SIZE, "%s", row_text(build, "build_id"));
        }
    }
    return count;
}

/* Finds the build of the program with that name, or of the library if there is no such program. If neither exists, the
 * name of a command in PATH is tried, and then the beginning of a build-id. */
static enum profd_status find_name(struct profd_conn *conn, const char *name, bool partial, char id[ID_SIZE],
                                   struct profd_error *e)
{
    struct ask_target target;
    struct answer builds;
    char path[COMMAND_PATH_SIZE], found[ID_SIZE];
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    ask_target_add(&target, "partial", partial ? "1" : NULL);
    TRY(ask_rows(conn, &target, &builds, e));
    enum profd_status status = answer_sort(&builds, "last_seen", true, e);
    size_t count = status == PROFD_OK ? count_named(builds.rows, true, name, id) : 1;
    const bool program = count > 0;
    count = program ? count : count_named(builds.rows, false, name, id);
    if (count > 1) {
        status = list_builds(conn, builds.rows, program, name, count, e);
    } else if (count == 0 && command_find(name, path) &&
               profd_executable_read_id(path, found, ID_SIZE, NULL) == PROFD_OK && begins_id(builds.rows, found)) {
        memcpy(id, found, ID_SIZE); /* of a command that is a link to a file with another name */
    } else if (count == 0 && !is_prefix(name)) {
        status = list_programs(builds.rows, name, e);
    } else if (count == 0 && !begins_id(builds.rows, name)) {
        status = profd_error_set(
            e, PROFD_NOT_FOUND,
            "no program or library \"%s\" has profiles, and no stored build-id begins with it; `profctl "
            "builds --all` lists both",
            name);
    }
    return status;
}

enum profd_status build_find(const struct profctl_call *call, const char *argument, char id[ID_SIZE],
                             struct profd_error *e)
{
    struct stat s;
    struct profd_conn *conn;
    if (strchr(argument, '/') || (stat(argument, &s) == 0 && S_ISREG(s.st_mode))) {
        return profd_executable_read_id(argument, id, ID_SIZE, e);
    }
    size_t n = strlen(argument);
    FAIL_IF(n == 0 || n >= ID_SIZE, e, PROFD_USAGE,
            "\"%s\" is neither a build-id, nor the name of a program, nor a file; `profctl builds` lists the "
            "programs",
            argument);
    memcpy(id, argument, n + 1);
    if (is_prefix(argument) && n >= WHOLE_LEAST) {
        return PROFD_OK;
    }
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    TRY(profd_conn_open(&o, &conn, e));
    enum profd_status status = find_name(conn, argument, profctl_value(call, "partial") != NULL, id, e);
    profd_conn_close(conn);
    return status;
}

bool build_is_file(const char *path, const char *id)
{
    struct profd_executable *x = NULL;
    bool same = access(path, R_OK) == 0 && profd_executable_open(path, &x, NULL) == PROFD_OK &&
                strcmp(profd_executable_build_id(x), id) == 0;
    profd_executable_free(x);
    return same;
}

/* PROGRAM@LABEL=VALUE, in its parts. */
struct side {
    char program[ID_SIZE], label[ID_SIZE];
    const char *value, *text; /* text: LABEL=VALUE */
};

/* False if the argument has another form, or is a file. */
static bool side_split(const char *argument, struct side *out)
{
    const char *at = strrchr(argument, '@'), *equals = at ? strchr(at, '=') : NULL;
    struct stat s;
    if (!equals || at == argument || equals == at + 1 || strlen(argument) >= ID_SIZE || stat(argument, &s) == 0) {
        return false;
    }
    (void)snprintf(out->program, sizeof out->program, "%.*s", (int)(at - argument), argument);
    (void)snprintf(out->label, sizeof out->label, "%.*s", (int)(equals - at - 1), at + 1);
    out->value = equals + 1;
    out->text = at + 1;
    return true;
}

/* Finds the one program of the side's name, or with such an id, that has uploads with its label. option is the option
 * that gives a build a label. */
static enum profd_status side_find(const struct profctl_call *call, struct side *side, const char *option,
                                   char id[ID_SIZE], struct profd_error *e)
{
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct profd_conn *conn;
    struct ask_target target;
    struct answer builds = {.whole = NULL}, values = {.whole = NULL};
    json_t *build, *row;
    size_t found = 0, i, k;
    if (strchr(side->program, '/')) {
        char path[ID_SIZE];
        memcpy(path, side->program, sizeof path);
        TRY(profd_executable_read_id(path, side->program, sizeof side->program, e));
    }
    TRY(profd_conn_open(&o, &conn, e));
    enum profd_status status = ask_builds(conn, &builds, e);
    json_array_foreach(builds.rows, i, build)
    {
        const char *own = row_text(build, "build_id");
        bool labelled = false;
        if (!row_has_name(build, true, side->program) &&
            (!row_flag(build, "is_program") || strncmp(own, side->program, strlen(side->program)) != 0)) {
            continue;
        }
        ask_target_init(&target, "/api/v1/labels/{}/values", side->label);
        ask_target_add(&target, "build_id", own);
        (void)ask_rows(conn, &target, &values, NULL);
        json_array_foreach(values.rows, k, row)
        {
            labelled = labelled || strcmp(row_text(row, "value"), side->value) == 0;
        }
        if (labelled && found++ > 0) {
            status = profd_error_set(e, PROFD_AMBIGUOUS,
                                     "%s@%s: builds %.12s and %.12s both have this label; choose one by its build-id, "
                                     "and give %s %s",
                                     side->program, side->text, id, own, option, side->text);
            break;
        }
        if (labelled) {
            (void)snprintf(id, ID_SIZE, "%s", own);
        }
    }
    profd_conn_close(conn);
    if (status == PROFD_OK && found == 0) {
        status = profd_error_set(e, PROFD_NOT_FOUND,
                                 "%s@%s: no program of this name has profiles with this label; `profctl labels %s` "
                                 "lists its values",
                                 side->program, side->text, side->label);
    }
    return status;
}

enum profd_status side_add(const struct profctl_call *call, const char *argument, const char *name,
                           struct ask_target *t, struct profd_error *e)
{
    struct side side;
    char id[ID_SIZE], prefix[8], option[16];
    if (!side_split(argument, &side)) {
        TRY(build_find(call, argument, id, e));
        ask_target_add(t, name, id);
        return PROFD_OK;
    }
    (void)snprintf(prefix, sizeof prefix, "%s.", name);
    (void)snprintf(option, sizeof option, "--%s-label", name);
    TRY(side_find(call, &side, option, id, e));
    ask_target_add(t, name, id);
    return ask_target_add_label(t, call, prefix, side.text, e);
}

enum profd_status side_take(struct profctl_call *call, struct profd_error *e)
{
    struct side side;
    const struct profctl_verb *verb = call->verb;
    const struct profctl_option *label = NULL;
    for (size_t i = 0; i < verb->option_count; i++) {
        label = strcmp(verb->options[i].name, "label") == 0 ? &verb->options[i] : label;
    }
    if (!label || !strstr(verb->arguments, SIDE_BUILD) || call->argument_count < verb->arguments_most ||
        !side_split(call->arguments[0], &side)) {
        return PROFD_OK;
    }
    TRY(side_find(call, &side, "-l", call->build_id, e));
    call->given[call->given_count++] = (struct profctl_given){label, side.text};
    call->arguments[0] = call->build_id;
    return PROFD_OK;
}

#define SHOWN 4 /* of several functions that are meant */

/* How well a name fits: 0 it has the text in it, 1 without its parameters it is the text, 2 it is the text. */
static int function_judge(json_t *row, const char *text)
{
    const char *name = row_text(row, "name");
    const size_t n = strlen(text);
    if (strcmp(name, text) == 0 || strcmp(row_text(row, "raw_name"), text) == 0) {
        return 2;
    }
    return strncmp(name, text, n) == 0 && name[n] == '(';
}

static enum profd_status function_choose(json_t *found, const char *text, struct function_place *out,
                                         struct profd_error *e)
{
    int best = -1;
    json_t *row, *chosen = NULL;
    size_t count = 0, i;
    json_array_foreach(found, i, row)
    {
        int fit = function_judge(row, text);
        if (fit > best) {
            best = fit;
            count = 0;
            chosen = row;
        }
        count += fit == best;
    }
    FAIL_IF(count == 0, e, PROFD_NOT_FOUND,
            "no function with %.100s in its name has calls or time in this "
            "selection",
            text);
    if (count > 1) {
        char list[400] = "";
        size_t shown = 0;
        json_array_foreach(found, i, row)
        {
            if (shown < SHOWN && function_judge(row, text) == best) {
                const size_t used = strlen(list);
                (void)snprintf(list + used, sizeof list - used, "%s%.60s at %s", shown++ > 0 ? ", " : "",
                               row_text(row, "name"), row_text(row, "address"));
            }
        }
        return profd_error_set(e, PROFD_AMBIGUOUS,
                               "%.100s: %zu functions have this name: %s%s; give the address of one", text, count, list,
                               count > shown ? ", …" : "");
    }
    (void)snprintf(out->name, sizeof out->name, "%s", row_text(chosen, "name"));
    (void)snprintf(out->build_id, sizeof out->build_id, "%s", row_text(chosen, "build_id"));
    (void)snprintf(out->address, sizeof out->address, "%s", row_text(chosen, "address"));
    return PROFD_OK;
}

enum profd_status function_find(const struct profctl_call *call, const char *build_id, const char *text,
                                struct function_place *out, struct profd_error *e)
{
    struct ask_target target;
    struct answer found;
    *out = (struct function_place){.name = ""};
    if (strncmp(text, "0x", 2) == 0 && strlen(text) < sizeof out->address) {
        (void)snprintf(out->address, sizeof out->address, "%s", text);
        (void)snprintf(out->build_id, sizeof out->build_id, "%s", build_id);
        return PROFD_OK;
    }
    ask_target_init(&target, "/api/v1/builds/{}/functions", build_id);
    ask_target_add(&target, "name", text);
    ask_target_add(&target, "limit", "1000");
    TRY(ask_target_add_given(&target, call, "since|until|scope|uid|dimension", e));
    TRY(ask_fetch_rows(call, &target, &found, e));
    return function_choose(found.rows, text, out, e);
}

void function_target_init(struct ask_target *target, const char *path, const char *build_id,
                          const struct function_place *place)
{
    ask_target_init_two(target, path, build_id, place->address);
    ask_target_add(target, "build_id", strcmp(place->build_id, build_id) != 0 ? place->build_id : NULL);
}

void function_print_reasons(const json_t *answer, const char *indentation)
{
    char reasons[1024];
    row_join(answer, "inexact_reasons", reasons, sizeof reasons);
    if (reasons[0]) {
        printf("%snot exact: %s\n", indentation, reasons);
    }
}

void function_print_calls(const json_t *answer)
{
    const uint64_t calls = row_number(json_object_get(answer, "function"), "calls");
    const bool sampled = row_is_sampled(answer);
    if (calls == 0) {
        printf("no call by others was counted\n");
        return;
    }
    printf("%s%" PRIu64 " %s by others\n",
           row_flag(answer, "calls_exact") ? ""
           : sampled                       ? "~"
                                           : "at least ",
           calls, noun_for(calls, "call", "calls"));
    if (sampled) {
        printf("~: sampled, at least in part: how often a tick found the function below its caller\n");
    }
}
