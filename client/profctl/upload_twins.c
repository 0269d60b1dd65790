#include "profctl/upload_twins.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"

#define FILES_MAX 64     /* that are read */
#define ENTRIES_MAX 4096 /* of a directory */
#define ID_SIZE 129

struct search {
    const struct profd_executable *executable;
    const char *gmon;
    off_t size;           /* of the executable's file */
    char (*ids)[ID_SIZE]; /* of the builds that were looked at; the first is the executable's */
    size_t count;
};

/* id: NULL, or the build-id that the file must still have. */
static void file_try(struct search *s, const char *path, const char *id)
{
    struct profd_executable *other = NULL;
    struct profd_upload *upload = NULL;
    struct stat st;
    char *own = s->ids[s->count];
    if (s->count == FILES_MAX || stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IXUSR) ||
        st.st_size < s->size / 2 || st.st_size > s->size * 2 ||
        profd_executable_read_id(path, own, ID_SIZE, NULL) != PROFD_OK || (id && strcmp(id, own) != 0)) {
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->ids[i], own) == 0) {
            return;
        }
    }
    s->count++;
    if (profd_executable_open(path, &other, NULL) == PROFD_OK &&
        profd_executable_import(other, s->gmon, &upload, NULL) == PROFD_OK) {
        profctl_complain("%s: it fits %s (build %.12s), too; it is stored as a profile of %s, which is wrong if the "
                         "other one wrote it",
                         s->gmon, profd_executable_path(other), own, profd_executable_path(s->executable));
    }
    profd_upload_free(upload);
    profd_executable_free(other);
}

/* The directory of a file. */
static void directory_try(struct search *s, const char *beside)
{
    char folder[4096], path[4096 + 256];
    const char *slash = strrchr(beside, '/');
    const size_t n = slash ? (size_t)(slash - beside) + 1 : 0;
    if (n >= sizeof folder) {
        return;
    }
    memcpy(folder, beside, n);
    folder[n] = '\0';
    DIR *d = opendir(n ? folder : ".");
    struct dirent *entry = d ? readdir(d) : NULL;
    for (size_t i = 0; entry && i < ENTRIES_MAX; i++, entry = readdir(d)) {
        (void)snprintf(path, sizeof path, "%s%s", folder, entry->d_name);
        file_try(s, path, NULL);
    }
    if (d) {
        closedir(d);
    }
}

static void stored_try(struct search *s, const struct profd_options *server)
{
    struct ask_target target;
    struct answer builds = {.whole = NULL};
    struct profd_conn *conn = NULL;
    json_t *build;
    size_t i;
    ask_target_init(&target, "/api/v1/builds", NULL);
    ask_target_add(&target, "limit", "1000");
    if (profd_conn_open(server, &conn, NULL) == PROFD_OK) {
        (void)ask_rows(conn, &target, &builds, NULL);
        profd_conn_close(conn);
    }
    json_array_foreach(builds.rows, i, build)
    {
        if (row_text(build, "name")[0] == '/') {
            file_try(s, row_text(build, "name"), row_text(build, "build_id"));
        }
    }
    answer_free(&builds);
}

void upload_twins_warn(const struct profd_executable *x, const char *gmon, const struct profd_options *server)
{
    struct search s = {.executable = x, .gmon = gmon, .ids = calloc(FILES_MAX + 1, ID_SIZE)};
    struct stat st;
    if (!s.ids || stat(profd_executable_path(x), &st) != 0) {
        free(s.ids);
        return;
    }
    s.size = st.st_size;
    (void)snprintf(s.ids[s.count++], ID_SIZE, "%s", profd_executable_build_id(x));
    directory_try(&s, gmon);
    directory_try(&s, profd_executable_path(x));
    stored_try(&s, server);
    free(s.ids);
}
