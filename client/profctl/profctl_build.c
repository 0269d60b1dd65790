#include "profctl/profctl_build.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profctl/profctl_ask.h"
#include "profctl/profctl_rows.h"
#include "profctl/run_delivery.h"

#define ID_SIZE 160
#define PREFIX_LEAST 4
#define WHOLE_LEAST 32 /* characters of a build-id, and of no program's name */
#define LISTED_MOST 4  /* builds in a sentence */

static bool is_prefix(const char *text)
{
    return strncmp(text, "sha256-", 7) == 0 ||
           (strlen(text) >= PREFIX_LEAST && text[strspn(text, "0123456789abcdefABCDEF")] == '\0');
}

static bool row_has_name(const struct rows *builds, size_t i, bool program, const char *name)
{
    const char *path = rows_text(builds, i, "name"), *slash = strrchr(path, '/');
    return rows_flag(builds, i, "is_program") == program && strcmp(slash ? slash + 1 : path, name) == 0;
}

static enum profd_status list_builds(struct profd_conn *conn, const struct rows *builds, bool program, const char *name,
                                     size_t count, struct profd_error *e)
{
    char list[sizeof e->sentence] = "", one[128];
    size_t used = 0, listed = 0;
    for (size_t i = 0; i < rows_count(builds) && listed < LISTED_MOST; i++) {
        if (!row_has_name(builds, i, program, name)) {
            continue;
        }
        /* "5559b53474f7 (version 1.2, last seen 2026-11-22T16:35:09Z)" */
        struct ask_target target;
        struct rows *versions = NULL;
        const char *id = rows_text(builds, i, "build_id");
        ask_target_init(&target, "/api/v1/labels/{}/values", "version");
        ask_target_add(&target, "build_id", id);
        bool known = rows_read(conn, &target, &versions, NULL) == PROFD_OK && rows_count(versions) > 0;
        (void)snprintf(one, sizeof one, "%.12s (%s%.40s%s%slast seen %.19sZ)", id, known ? "version " : "",
                       known ? rows_text(versions, 0, "value") : "",
                       known && rows_count(versions) > 1 ? " and others" : "", known ? ", " : "",
                       rows_text(builds, i, "last_seen"));
        rows_free(versions);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", listed ? ", " : "", one);
        listed++;
    }
    if (count > listed) {
        (void)snprintf(list + used, sizeof list - used, ", %zu more", count - listed);
    }
    return profd_error_set(e, PROFD_AMBIGUOUS, "\"%.40s\" is the name of %zu builds; choose one by its build-id: %s",
                           name, count, list);
}

/* Of the programs that are stored, the latest. */
static enum profd_status list_programs(const struct rows *builds, const char *name, struct profd_error *e)
{
    char list[sizeof e->sentence / 2] = "";
    const char *before[LISTED_MOST];
    size_t used = 0, listed = 0;
    for (size_t i = 0; i < rows_count(builds) && listed < LISTED_MOST; i++) {
        const char *path = rows_text(builds, i, "name"), *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
        bool again = !rows_flag(builds, i, "is_program") || own[0] == '\0';
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

static bool begins_id(const struct rows *builds, const char *prefix)
{
    bool found = false;
    for (size_t i = 0; i < rows_count(builds); i++) {
        found = found || strncasecmp(rows_text(builds, i, "build_id"), prefix, strlen(prefix)) == 0;
    }
    return found;
}

/* Counts the programs, or the libraries, with that name; id is the latest. */
static size_t count_named(const struct rows *builds, bool program, const char *name, char id[ID_SIZE])
{
    size_t count = 0;
    for (size_t i = 0; i < rows_count(builds); i++) {
        if (row_has_name(builds, i, program, name) && count++ == 0) {
            (void)snprintf(id, ID_SIZE, "%s", rows_text(builds, i, "build_id"));
        }
    }
    return count;
}

/* A command of that name may be a link to a file with another name. */
static bool find_command(const struct rows *builds, const char *name, char id[ID_SIZE])
{
    char path[RUN_PATH_SIZE], found[ID_SIZE];
    if (!run_delivery_find_command(name, path) || profd_executable_read_id(path, found, ID_SIZE, NULL) != PROFD_OK ||
        !begins_id(builds, found)) {
        return false;
    }
    memcpy(id, found, ID_SIZE);
    return true;
}

/* The build of the program with that name, or of the library if there is no such program. What has the form of the
 * beginning of a build-id is one if no program has the name. */
static enum profd_status find_name(struct profd_conn *conn, const char *name, bool partial, char id[ID_SIZE],
                                   struct profd_error *e)
{
    struct ask_target target;
    struct rows *builds = NULL;
    bool program = true;
    size_t count = 0;
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    ask_target_add(&target, "partial", partial ? "1" : NULL);
    enum profd_status status = rows_read(conn, &target, &builds, e);
    if (status == PROFD_OK) {
        status = rows_sort(builds, "last_seen", true, e);
    }
    if (status == PROFD_OK) {
        count = count_named(builds, true, name, id);
        program = count > 0;
        count = program ? count : count_named(builds, false, name, id);
    }
    if (status == PROFD_OK && count == 0 && find_command(builds, name, id)) {
        count = 1;
    } else if (status == PROFD_OK && count == 0 && !is_prefix(name)) {
        status = list_programs(builds, name, e);
    } else if (status == PROFD_OK && count == 0 && !begins_id(builds, name)) {
        status = profd_error_set(
            e, PROFD_NOT_FOUND,
            "no program or library \"%s\" has profiles, and no stored build-id begins with it; `profctl "
            "builds --all` lists both",
            name);
    } else if (count > 1) {
        status = list_builds(conn, builds, program, name, count, e);
    }
    rows_free(builds);
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
    if (n == 0 || n >= ID_SIZE) {
        return profd_error_set(
            e, PROFD_USAGE,
            "\"%s\" is neither a build-id, nor the name of a program, nor a file; `profctl builds` lists the "
            "programs",
            argument);
    }
    memcpy(id, argument, n + 1);
    if (is_prefix(argument) && n >= WHOLE_LEAST) {
        return PROFD_OK;
    }
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    enum profd_status status = profd_conn_open(&o, &conn, e);
    if (status == PROFD_OK) {
        status = find_name(conn, argument, profctl_value(call, "partial") != NULL, id, e);
        profd_conn_close(conn);
    }
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
