#include "profctl/annotate_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profctl/code_lines.h"
#include "profctl/profctl_build.h"
#include "profctl/profctl_debuginfod.h"
#include "profctl/profctl_pipe.h"

static enum profd_status fetch(const struct annotate_fetch *f, enum debuginfod_kind kind, const char *source,
                               char **path, struct profd_error *e)
{
    const struct debuginfod_file what = {
        .url = f->url, .build_id = f->build_id, .kind = kind, .source = source, .seconds = f->seconds};
    enum profd_status status = debuginfod_fetch(&what, path, e);
    if (status == PROFD_OK && kind != DEBUGINFOD_SOURCE && !build_is_file(*path, f->build_id)) {
        (void)unlink(*path); /* or the cache would give it again */
        free(*path);
        *path = NULL;
        status = profd_error_set(e, PROFD_WRONG_BUILD, "a debuginfod server sent another file than one of build %.12s",
                                 f->build_id);
    }
    return status;
}

enum profd_status annotate_fetch_executable(const struct annotate_fetch *f, char **path, struct profd_error *e)
{
    return fetch(f, DEBUGINFOD_EXECUTABLE, NULL, path, e);
}

static bool ignore(void *context, char *line)
{
    (void)context;
    (void)line;
    return true;
}

static enum profd_status join(const char *executable, const char *debug, char **path, struct profd_error *e)
{
    const char *folder = getenv("TMPDIR");
    char name[1024];
    (void)snprintf(name, sizeof name, "%.900s/profctl-XXXXXX", folder && folder[0] ? folder : "/tmp");
    const int fd = mkstemp(name);
    if (fd < 0) {
        return profd_error_set(e, PROFD_CANT_CREATE, "%s cannot be created", name);
    }
    close(fd);
    const char *words[] = {"eu-unstrip", "-o", name, executable, debug, NULL};
    enum profd_status status = pipe_read_lines(words, "elfutils", ignore, NULL, e);
    *path = status == PROFD_OK ? strdup(name) : NULL;
    if (!*path) {
        (void)unlink(name);
    }
    return status == PROFD_OK && !*path ? profd_no_memory(e) : status;
}

enum profd_status annotate_fetch_lines(const struct annotate_fetch *f, const char *executable, char **path,
                                       struct profd_error *e)
{
    struct code_lines *lines = NULL;
    struct profd_error why = {""};
    char *debug = NULL;
    *path = NULL;
    enum profd_status status = code_lines_open(executable, f->build_id, &lines, e);
    const bool has = lines != NULL;
    code_lines_close(lines);
    if (status != PROFD_OK || has) {
        return status;
    }
    status = fetch(f, DEBUGINFOD_DEBUG, NULL, &debug, &why);
    if (status == PROFD_NOT_FOUND) {
        profctl_complain("%s", why.sentence);
        return PROFD_OK;
    }
    status = status == PROFD_OK ? join(executable, debug, path, e) : profd_error_set(e, status, "%s", why.sentence);
    free(debug);
    return status;
}

char *annotate_fetch_source(const void *context, const char *name)
{
    char *path = NULL;
    struct profd_error why = {""};
    if (name[0] != '/') {
        return NULL;
    }
    enum profd_status status = fetch(context, DEBUGINFOD_SOURCE, name, &path, &why);
    if (status != PROFD_OK && status != PROFD_NOT_FOUND) {
        profctl_complain("%s", why.sentence);
    }
    return status == PROFD_OK ? path : NULL;
}
