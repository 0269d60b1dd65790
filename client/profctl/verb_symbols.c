/* profctl symbols: sends executables of builds that have no symbols yet. */
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_json.h"

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

static enum profd_status symbols_send(struct profd_conn *conn, const char *path, bool json, struct profd_error *e)
{
    struct profd_executable *x;
    enum profd_status status = profd_executable_open(path, &x, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = strncmp(profd_conn_server(conn), "http", 4) == 0 ? ask_by(conn, executable_put, x, answer_ignore, NULL, e)
                                                              : profd_conn_send_executable(conn, x, e);
    if (status != PROFD_OK) {
        (void)profd_error_wrap(e, status, "%s", path);
    } else if (json) {
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

static enum profd_status symbols_run(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_conn *conn;
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    enum profd_status first = profd_conn_open(&o, &conn, e);
    if (first != PROFD_OK) {
        return first;
    }
    for (size_t i = 0; i < call->argument_count; i++) { /* one bad file does not keep the others back */
        struct profd_error why = {""};
        enum profd_status status = symbols_send(conn, call->arguments[i], call->json, &why);
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
    .arguments = "FILE...",
    .summary = "Send executables with the function names of stored profiles",
    .details =
        "Names may be sent before or after the profiles; both are stored by build-id. An installed debug file is "
        "found by\nbuild-id and .gnu_debuglink and sent, too. A debug file can also be named itself.\n\nTo an http or "
        "https server an "
        "administrator of its readers may send them; they name functions of that\nreader's tenants.\n",
    .arguments_least = 1,
    .arguments_most = (size_t)-1,
    .run = symbols_run,
};
