/* profctl symbols: sends executables of builds that have no symbols yet. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_debuginfod.h"
#include "profctl/profctl_find.h"
#include "proto/object_note.h"

static const struct profctl_option options[] = {
    {"code", 0, NULL, "also store the instructions, for the dashboard"},
    {"debuginfod", 0, NULL, "download names of stored builds from a debuginfod server, and send them"},
    {"url", 0, "URL", "the debuginfod server (default: those of DEBUGINFOD_URLS)"},
    {"timeout", 0, "SECONDS", "time for one file, 1 to 86400 (default 120)"},
};

/* Where function names may come from. Servers know build-ids only, not our hashes of code. */
static void symbols_advise(const char *path, const char *id)
{
    char download[256] = "";
    if (strncmp(id, "sha256-", 7) != 0) {
        (void)snprintf(download, sizeof download,
                       ", or download it: profctl symbols \"$(debuginfod-find debuginfo %.128s)\"", id);
    }
    profctl_complain("%s (build %.12s) is stored, but it has no function names and its debug file is not installed. "
                     "Install that (on Debian the package with -dbgsym at the end of its name) and repeat this "
                     "command%s",
                     path, id, download);
}

static enum profd_status answer_ignore(void *context, const struct profd_answer *answer, const void *bytes, size_t n,
                                       struct profd_error *e)
{
    (void)context;
    (void)answer;
    (void)bytes;
    (void)n;
    (void)e;
    return PROFD_OK;
}

static enum profd_status executable_put(struct profd_conn *conn, void *executable, profd_sink sink, void *context,
                                        struct profd_error *e)
{
    return profd_put_executable(conn, executable, sink, context, e);
}

static enum profd_status symbols_send(struct profd_conn *conn, const struct profctl_call *call, const char *path,
                                      const char *build_id, struct profd_error *e)
{
    struct profd_executable *x;
    /* Opens a file, which must be of the build if one is given. */
    enum profd_status status = profd_executable_open(path, &x, e);
    if (status == PROFD_OK && build_id && strcmp(profd_executable_build_id(x), build_id) != 0) {
        status = profd_error_set(e, PROFD_WRONG_BUILD, "%s: the server sent a file of build %.12s for build %.12s",
                                 path, profd_executable_build_id(x), build_id);
        profd_executable_free(x);
    }
    TRY(status);
    if (profctl_value(call, "code")) {
        profd_executable_include_code(x);
    }
    status = strncmp(profd_conn_server(conn), "http", 4) == 0 ? ask_by(conn, executable_put, x, answer_ignore, NULL, e)
                                                              : profd_conn_send_executable(conn, x, e);
    if (status != PROFD_OK) {
        (void)profd_error_wrap(e, status, "%s", path);
    } else if (call->json) {
        status = json_print(
            json_pack("{s:s,s:b}", "build_id", profd_executable_build_id(x), "names", profd_executable_has_names(x)),
            e);
    } else if (profd_executable_has_names(x)) {
        char name[512];
        profctl_clean(path, name, sizeof name);
        printf("names of %s (build %.12s) stored\n", name, profd_executable_build_id(x));
    } else {
        symbols_advise(path, profd_executable_build_id(x));
    }
    profd_executable_free(x);
    return status;
}

/* Downloads and sends the names of one build. */
static enum profd_status build_fetch(struct profd_conn *conn, const struct profctl_call *call, const char *build_id,
                                     unsigned seconds, struct profd_error *e)
{
    char *path = NULL;
    const struct debuginfod_file file = {
        .url = profctl_value(call, "url"), .build_id = build_id, .kind = DEBUGINFOD_DEBUG, .seconds = seconds};
    enum profd_status status = debuginfod_fetch(&file, &path, e);
    if (status == PROFD_OK) {
        status = symbols_send(conn, call, path, build_id, e);
        if (status == PROFD_WRONG_BUILD || status == PROFD_MALFORMED) {
            (void)unlink(path); /* or the cache would give it again */
        }
    }
    free(path);
    return status;
}

/* Is it one of the builds asked for? Without arguments: does it lack names, and can a server know it? */
static bool build_is_wanted(json_t *build, const char *prefix)
{
    const char *id = row_text(build, "build_id");
    if (prefix) {
        return strncmp(id, prefix, strlen(prefix)) == 0;
    }
    return strncmp(id, "sha256-", 7) != 0 &&
           (!row_flag(build, "symbols") || strstr(row_text(build, "note"), OBJECT_NOTE_EXPORTED) != NULL);
}

/* A server that does not answer is not asked again. */
static bool is_end(enum profd_status status)
{
    return status == PROFD_TIMEOUT || status == PROFD_UNAVAILABLE || status == PROFD_USAGE;
}

static enum profd_status builds_fetch(struct profd_conn *conn, const struct profctl_call *call, json_t *builds,
                                      const char *prefix, unsigned seconds)
{
    enum profd_status first = PROFD_OK, status = PROFD_OK;
    size_t wanted = 0, missing = 0, i;
    json_t *build;
    json_array_foreach(builds, i, build)
    {
        struct profd_error why = {""};
        if (is_end(status) || !build_is_wanted(build, prefix)) {
            continue;
        }
        wanted++;
        status = build_fetch(conn, call, row_text(build, "build_id"), seconds, &why);
        if (status != PROFD_OK) {
            profctl_complain("%s", why.sentence);
            bool lacks = status == PROFD_NOT_FOUND && !prefix; /* of many builds a server has some */
            missing += lacks;
            first = first == PROFD_OK && !lacks ? status : first;
        }
    }
    first = first == PROFD_OK && wanted > 0 && missing == wanted ? PROFD_NOT_FOUND : first;
    if (wanted == 0 && !prefix && !call->json) {
        puts("All stored builds have names.");
    }
    return first;
}

static enum profd_status debuginfod_run(struct profd_conn *conn, const struct profctl_call *call, struct profd_error *e)
{
    char id[160];
    unsigned seconds = 0;
    struct ask_target target;
    struct answer builds;
    TRY(debuginfod_read_timeout(call, &seconds, e));
    ask_target_init(&target, "/api/v1/builds", NULL);
    TRY(ask_rows(conn, &target, &builds, e));
    enum profd_status first =
        call->argument_count == 0 ? builds_fetch(conn, call, builds.rows, NULL, seconds) : PROFD_OK;
    for (size_t i = 0; i < call->argument_count; i++) {
        struct profd_error why = {""};
        enum profd_status status = build_find(call, call->arguments[i], id, &why);
        if (status != PROFD_OK) {
            profctl_complain("%s", why.sentence);
        } else {
            status = builds_fetch(conn, call, builds.rows, id, seconds);
        }
        first = first == PROFD_OK ? status : first;
    }
    answer_free(&builds);
    return first;
}

static enum profd_status symbols_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    bool download = profctl_value(call, "debuginfod") != NULL;
    if (download ? false : call->argument_count == 0 || profctl_value(call, "url") || profctl_value(call, "timeout")) {
        return profd_error_set(e, PROFD_USAGE,
                               call->argument_count == 0 ? "symbols: no file given; see profctl symbols --help"
                                                         : "symbols: --url and --timeout are for --debuginfod");
    }
    if (download && profctl_value(call, "code")) {
        return profd_error_set(e, PROFD_USAGE,
                               "symbols: --code needs the executable; --debuginfod downloads debug "
                               "files, which have no code");
    }
    TRY(profd_conn_open(&o, &conn, e));
    enum profd_status first = download ? debuginfod_run(conn, call, e) : PROFD_OK;
    for (size_t i = 0; !download && i < call->argument_count; i++) { /* one bad file does not keep the others back */
        struct profd_error why = {""};
        enum profd_status status = symbols_send(conn, call, call->arguments[i], NULL, &why);
        if (status != PROFD_OK) {
            profctl_complain("%s", why.sentence);
            first = first == PROFD_OK ? status : first;
        }
    }
    profd_conn_close(conn);
    return first;
}

const struct profctl_verb verb_symbols = {
    .name = "symbols",
    .arguments = "FILE... | --debuginfod [BUILD...]",
    .summary = "Send executables with the function names of stored profiles",
    .details = "Names may be sent before or after the profiles. A separate debug file is found and sent, too.\n",
    OPTIONS(options),
    .arguments_most = (size_t)-1,
    .run = symbols_run,
};
