/* profctl upload: profiles of processes, gmon.out and other tools' files, to the daemon. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import_any.h"
#include "profctl/profctl.h"
#include "proto/buildid.h"
#include "proto/noun.h"
#include "proto/object_note.h"

/* ---- Executables that a gmon.out fits as well as the one that was named ---- */

#define FILES_MAX 64     /* that are read */
#define ENTRIES_MAX 4096 /* of a directory */
#define ID_SIZE 129

struct twin_search {
    const struct profd_executable *executable;
    const char *gmon;
    off_t size;           /* of the executable's file */
    char (*ids)[ID_SIZE]; /* of the builds that were looked at; the first is the executable's */
    size_t count;
};

/* Warns if the file is another executable that fits the gmon.out, which states addresses of code, but not the file. id
 * is NULL, or the build-id that the file must still have. */
static void file_try(struct twin_search *s, const char *path, const char *id)
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

/* Tries every file in the directory of a file. */
static void directory_try(struct twin_search *s, const char *beside)
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

/* Warns of each other executable that could have written the gmon.out: of the regular files in the directories of both,
 * and of the programs that the daemon has, if their files are still in place. Reads 64 files at most,
 * which have between half and twice the size of the executable's. */
static void upload_twins_warn(const struct profd_executable *x, const char *gmon, const struct profctl_call *call)
{
    const struct profd_options o = profctl_options(call, 1000);
    struct twin_search s = {.executable = x, .gmon = gmon, .ids = calloc(FILES_MAX + 1, ID_SIZE)};
    struct answer builds = {.whole = NULL};
    struct profd_conn *conn = NULL;
    struct stat st;
    json_t *build;
    size_t i;
    if (!s.ids || stat(profd_executable_path(x), &st) != 0) {
        free(s.ids);
        return;
    }
    s.size = st.st_size;
    (void)snprintf(s.ids[s.count++], ID_SIZE, "%s", profd_executable_build_id(x));
    directory_try(&s, gmon);
    directory_try(&s, profd_executable_path(x));
    if (profd_conn_open(&o, &conn, NULL) == PROFD_OK) {
        (void)ask_builds(conn, &builds, NULL);
        profd_conn_close(conn);
    }
    json_array_foreach(builds.rows, i, build)
    {
        if (row_text(build, "name")[0] == '/') {
            file_try(&s, row_text(build, "name"), row_text(build, "build_id"));
        }
    }
    free(s.ids);
}

/* ---- The verb ---- */

static const struct profctl_option upload_options[] = {
    {"exe", 'e', "EXE", "the executable that was profiled (default ./a.out; other formats name it in the file)"},
    {"format", 'f', IMPORT_FORMATS, "format of the files (default auto: by their content)"},
    {"event", 0, "NAME", "event or sample type to import"},
    {"root", 0, "DIR", "look up executables and libraries below DIR"},
    {"label", 'l', "K=V", "attach a label to these uploads; may be repeated"},
};

struct upload_tally {
    size_t stored, spooled, refused, earlier_stored, executables_refused;
    enum profd_status first; /* of what was refused */
    char why_spooled[sizeof(struct profd_error)];
    char build_id[BUILDID_TEXT_SIZE], name[512]; /* of the first upload's program; "" before */
    bool several;                                /* there were uploads of another program */
    bool imported;                               /* of another tool's file */
    struct import_notes notes;
    struct progress progress;
    size_t sent, files_left; /* uploads of this run, and files that none was read from yet */
};

/* One run of the verb. */
struct upload_run {
    const struct profctl_call *call;
    struct profd_delivery *delivery;
    struct profd_executable *executable; /* for gmon.out; NULL until the first one */
    bool compared;                       /* other executables were tried with a gmon.out */
    enum import_format format;
    const char **executables;
    struct import_shelf shelf;
    struct upload_tally tally;
    const char *file;  /* that is imported now */
    size_t said_count; /* sentences about objects that were said already */
    bool said_more;
    char said[64][sizeof(struct profd_error)];
};

static void refuse(struct upload_tally *t, enum profd_status status, const char *sentence)
{
    t->refused++;
    t->first = t->first == PROFD_OK ? status : t->first;
    profctl_complain("%s", sentence);
}

static void tally_show(struct upload_tally *t)
{
    char detail[64];
    size_t done = t->stored + t->spooled + t->refused;
    (void)snprintf(detail, sizeof detail, "%zu of %zu", done, t->sent + t->files_left);
    progress_show(&t->progress, "uploading", done, t->sent + t->files_left, detail);
}

static void outcome_take(void *context, const struct profd_outcome *o)
{
    struct upload_tally *t = context;
    tally_show(t);
    if (o->status != PROFD_OK && o->executable) {
        profctl_complain("%s: executable not stored: %s. Its profiles show addresses until you run: profctl symbols %s",
                         o->name, o->sentence, o->name);
        if (!o->earlier) {
            t->executables_refused++;
            t->first = t->first == PROFD_OK ? o->status : t->first;
        }
    } else if (o->status != PROFD_OK) {
        struct profd_error line;
        (void)profd_error_set(&line, o->status, "%s%s: %s", o->earlier ? "from the spool, refused: " : "", o->name,
                              o->sentence);
        if (o->earlier) { /* not a file of this run: it is reported, but does not change the exit status */
            profctl_complain("%s", line.sentence);
        } else {
            refuse(t, o->status, line.sentence);
        }
    } else if (o->earlier) {
        t->earlier_stored += !o->spooled;
    } else if (o->spooled) {
        t->spooled++;
        (void)snprintf(t->why_spooled, sizeof t->why_spooled, "%s", o->sentence);
    } else {
        t->stored++;
        if (o->sentence[0] != '\0') {
            profctl_complain("%s", o->sentence);
        }
    }
}

/* Adds the labels of the command line to an upload, and the name of this host if no host is given, and sends it. Frees
 * it. */
static enum profd_status upload_send(struct upload_run *r, struct profd_upload *u, const char *name,
                                     struct profd_error *e)
{
    struct upload_tally *t = &r->tally;
    char host[256] = "";
    enum profd_status status = labels_add(r->call, u, e);
    if (status == PROFD_OK && !profd_upload_has_label(u, "host") && gethostname(host, sizeof host - 1) == 0 &&
        host[0] != '\0') {
        status = profd_upload_add_label(u, "host", host, e);
    }
    if (status == PROFD_OK) {
        const char *id = profd_upload_build_id(u, 0);
        if (t->build_id[0] == '\0') {
            (void)snprintf(t->build_id, sizeof t->build_id, "%s", id);
            profctl_clean(basename(profd_upload_build_name(u, 0)), t->name, sizeof t->name);
        } else if (strcmp(t->build_id, id) != 0) {
            t->several = true;
        }
        status = profd_delivery_upload(r->delivery, u, name, e);
        t->sent++;
        tally_show(t);
    }
    profd_upload_free(u);
    return status;
}

static enum profd_status import_take(void *context, struct profd_upload *u, const char *process, struct profd_error *e)
{
    struct upload_run *r = context;
    struct profd_error name;
    (void)profd_error_set(&name, PROFD_OK, "%s%s%s", r->file, process[0] ? ": " : "", process);
    return upload_send(r, u, name.sentence, e);
}

static void executable_found(void *context, const struct profd_executable *x)
{
    struct upload_run *r = context;
    (void)profd_delivery_offer(r->delivery, x, NULL); /* without it the names come later: profctl symbols */
}

/* Each sentence once: many processes miss the same library. */
static void note_say(void *context, const char *sentence)
{
    struct upload_run *r = context;
    for (size_t i = 0; i < r->said_count; i++) {
        if (strcmp(r->said[i], sentence) == 0) {
            return;
        }
    }
    if (r->said_count < sizeof r->said / sizeof r->said[0]) {
        (void)snprintf(r->said[r->said_count++], sizeof r->said[0], "%s", sentence);
        profctl_complain("%s", sentence);
    } else if (!r->said_more) {
        r->said_more = true;
        profctl_complain("and more of this kind");
    }
}

/* Sends the profiles of one argument. Fails only if the others cannot be sent either. */
static enum profd_status file_send(struct upload_run *r, const char *path, struct profd_error *e)
{
    struct profd_error why = {""};
    enum import_format format = r->format;
    enum profd_status status = PROFD_OK;
    if (format == IMPORT_AUTO && strcmp(path, "-") != 0) {
        status = import_any_detect(path, &format, &why);
    }
    if (status == PROFD_OK && format == IMPORT_GMON) {
        const char *exe = profctl_value(r->call, "exe");
        struct profd_upload *u = NULL;
        if (!r->executable) { /* one for all gmon.out files */
            status = profd_executable_open(exe ? exe : "./a.out", &r->executable, e);
            FAIL_IF(status == PROFD_NO_INPUT && !exe, e, status,
                    "upload: no executable named; use -e EXE for the program that wrote the "
                    "gmon.out (./a.out, the default, cannot be opened)");
            TRY(status);
            TRY(profd_delivery_offer(r->delivery, r->executable, e));
        }
        status = profd_executable_import(r->executable, path, &u, &why);
        if (status == PROFD_OK && !r->compared) { /* with the first file: the others are of the same executable */
            upload_twins_warn(r->executable, path, r->call);
            r->compared = true;
        }
        status = status ? status : upload_send(r, u, path, &why);
        if (status == PROFD_WRONG_BUILD) {
            const struct profd_error cause = why;
            profd_error_set(&why, status, "%s; name the executable that ran with -e", cause.sentence);
        }
    } else if (status == PROFD_OK) {
        const struct import_request request = {.format = format,
                                               .event = profctl_value(r->call, "event"),
                                               .shelf = &r->shelf,
                                               .notes = &r->tally.notes,
                                               .take = import_take,
                                               .context = r};
        r->file = path;
        r->tally.imported = true;
        status = import_any_file(&request, path, &why);
    }
    if (status != PROFD_OK) {
        refuse(&r->tally, status, why.sentence);
    }
    return PROFD_OK;
}

static enum profd_status summary_print(const struct upload_run *r, struct profd_error *e)
{
    const struct upload_tally *t = &r->tally;
    char what[600];
    if (t->build_id[0] == '\0') {
        (void)snprintf(what, sizeof what, "nothing");
    } else if (t->several) {
        (void)snprintf(what, sizeof what, "several programs");
    } else {
        (void)snprintf(what, sizeof what, "%s (build %.12s)", t->name, t->build_id);
    }
    enum profd_status status = PROFD_OK;
    if (r->call->json) {
        const struct import_notes *n = &t->notes;
        json_t *object =
            json_pack("{s:s,s:I,s:I,s:I,s:I,s:I}", "build_id", t->build_id, "stored", json_count(t->stored), "spooled",
                      json_count(t->spooled), "refused", json_count(t->refused), "executables_refused",
                      json_count(t->executables_refused), "stored_from_spool", json_count(t->earlier_stored));
        json_t *notes = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "ticks", json_count(n->ticks), "ticks_outside",
                                  json_count(n->outside_ticks), "calls", json_count(n->calls), "calls_outside",
                                  json_count(n->outside_calls), "ambiguous", json_count(n->ambiguous), "nameless",
                                  json_count(n->nameless), "left_out", json_count(n->left_out));
        if (t->imported && json_object_update(object, notes) != 0) {
            json_decref(object);
            object = NULL;
        }
        json_decref(notes);
        status = json_print(object, e);
    } else if (t->stored == 0 && t->earlier_stored == 0 && t->spooled == 0 && t->refused > 0) {
        printf("Nothing stored: %zu %s refused.\n", t->refused, noun_for(t->refused, "file", "files"));
    } else if (t->stored || t->spooled == 0) {
        printf("%zu %s of %s stored", t->stored, noun_for(t->stored, "upload", "uploads"), what);
        if (t->refused) {
            printf(", %zu refused", t->refused);
        }
        if (t->executables_refused) {
            printf(", without %s", noun_for(t->executables_refused, "its executable", "their executables"));
        }
        if (t->earlier_stored) {
            printf("; and %zu from the spool", t->earlier_stored);
        }
        if (t->notes.outside_ticks || t->notes.outside_calls) {
            printf("; %llu of %llu ticks (left out)", (unsigned long long)t->notes.outside_ticks,
                   (unsigned long long)t->notes.ticks);
            if (t->notes.calls) {
                printf(" and %llu of %llu calls", (unsigned long long)t->notes.outside_calls,
                       (unsigned long long)t->notes.calls);
            }
            printf(" are in no known build (kernel, generated code, missing files)");
        }
        if (t->notes.ambiguous) {
            printf("; %llu function %s ambiguous: counted for the first function of that name",
                   (unsigned long long)t->notes.ambiguous, noun_for(t->notes.ambiguous, "name is", "names are"));
        }
        if (t->notes.nameless) {
            printf("; %llu %s in no symbol table: stored as outside", (unsigned long long)t->notes.nameless,
                   noun_for(t->notes.nameless, "function is", "functions are"));
        }
        if (t->notes.left_out) {
            printf("; %llu %s entirely in the kernel or generated code: left out",
                   (unsigned long long)t->notes.left_out, noun_for(t->notes.left_out, "process was", "processes were"));
        }
        putchar('\n');
    }
    if (t->spooled) {
        profctl_complain("%s: %zu %s of %s kept in the spool until the next upload", t->why_spooled, t->spooled,
                         noun_for(t->spooled, "upload", "uploads"), t->several ? what : t->name);
    }
    return status;
}

static enum profd_status upload_run(const struct profctl_call *call, struct profd_error *e)
{
    struct upload_run *r = calloc(1, sizeof *r);
    const struct profd_options o = profctl_options(call, 30000);
    size_t format = IMPORT_AUTO;
    if (!r || !(r->executables = calloc(call->given_count + 1, sizeof *r->executables))) {
        free(r);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for uploads");
    }
    r->call = call;
    for (size_t i = 0; i < call->given_count; i++) {
        if (strcmp(call->given[i].option->name, "exe") == 0) {
            r->executables[r->shelf.executable_count++] = call->given[i].value;
        }
    }
    r->shelf.root = profctl_value(call, "root");
    r->shelf.executables = r->executables;
    r->shelf.found = executable_found;
    r->shelf.context = r;
    r->tally.notes.say = note_say;
    r->tally.notes.context = r;
    enum profd_status status = profctl_choose(call, "format", &format, e);
    r->format = (enum import_format)format;
    if (status == PROFD_OK && labels_check(call, e) != PROFD_OK) {
        status = PROFD_USAGE;
    }
    status = status ? status : profd_delivery_open(&o, outcome_take, &r->tally, &r->delivery, e);
    if (status == PROFD_OK) {
        for (size_t i = 0; i < call->argument_count && status == PROFD_OK; i++) {
            r->tally.files_left = call->argument_count - i - 1;
            status = file_send(r, call->arguments[i], e);
        }
        enum profd_status finished = profd_delivery_finish(r->delivery, status == PROFD_OK ? e : NULL);
        progress_end(&r->tally.progress);
        if (status == PROFD_OK) {
            status = finished;
            status = status ? status : summary_print(r, e);
        }
    }
    profd_delivery_close(r->delivery);
    import_shelf_done(&r->shelf);
    profd_executable_free(r->executable);
    free(r->executables);
    status = status != PROFD_OK ? status : r->tally.first;
    free(r);
    return status;
}

const struct profctl_verb verb_upload = {
    .name = "upload",
    .arguments = "[-e EXE] [-l K=V]... FILE...",
    .summary = "Send profiles: gmon.out, pprof, callgrind, perf script",
    .details = "FILE is the gmon.out of one process, or a file of another tool (- for standard input). A file that EXE "
               "did not\n"
               "write is refused. Without a daemon, uploads are kept in the spool and sent with the next upload.\n",
    OPTIONS(upload_options),
    .arguments_least = 1,
    .arguments_most = (size_t)-1,
    .run = upload_run,
};

/* profctl symbols: sends executables of builds that have no symbols yet. */

static const struct profctl_option symbols_options[] = {
    {"code", 0, NULL, "also store the instructions, for the dashboard"},
    {"debuginfod", 0, NULL, "download names of stored builds from a debuginfod server, and send them"},
    {"url", 0, "URL", "the debuginfod server (default: those of DEBUGINFOD_URLS)"},
    {"timeout", 0, "SECONDS", "time for one file, 1 to 86400 (default 120)"},
};

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

/* Sends the names of a file, which must be of the build if one is given. */
static enum profd_status symbols_send(struct profd_conn *conn, const struct profctl_call *call, const char *path,
                                      const char *build_id, struct profd_error *e)
{
    struct profd_executable *x;
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
        /* Servers know build-ids only, not our hashes of code. */
        const char *id = profd_executable_build_id(x);
        char download[256] = "";
        if (strncmp(id, "sha256-", 7) != 0) {
            (void)snprintf(download, sizeof download,
                           ", or download it: profctl symbols \"$(debuginfod-find debuginfo %.128s)\"", id);
        }
        profctl_complain(
            "%s (build %.12s) is stored, but it has no function names and its debug file is not installed. "
            "Install that (on Debian the package with -dbgsym at the end of its name) and repeat this "
            "command%s",
            path, id, download);
    }
    profd_executable_free(x);
    return status;
}

/* Downloads and sends the names of the builds whose ids begin with prefix; with NULL of those that lack names and that
 * a server can know. A server that does not answer is not asked again. Returns the first failure. */
static enum profd_status builds_fetch(struct profd_conn *conn, const struct profctl_call *call, json_t *builds,
                                      const char *prefix, unsigned seconds)
{
    enum profd_status first = PROFD_OK, status = PROFD_OK;
    size_t wanted = 0, missing = 0, i;
    json_t *build;
    json_array_foreach(builds, i, build)
    {
        const char *id = row_text(build, "build_id");
        struct profd_error why = {""};
        char *path = NULL;
        const bool lacks_names =
                       !row_flag(build, "symbols") || strstr(row_text(build, "note"), OBJECT_NOTE_EXPORTED) != NULL,
                   hashed = strncmp(id, "sha256-", 7) == 0;
        if (status == PROFD_TIMEOUT || status == PROFD_UNAVAILABLE || status == PROFD_USAGE) {
            break;
        }
        if (prefix ? strncmp(id, prefix, strlen(prefix)) != 0 : hashed || !lacks_names) {
            continue;
        }
        wanted++;
        const struct debuginfod_file file = {
            .url = profctl_value(call, "url"), .build_id = id, .kind = DEBUGINFOD_DEBUG, .seconds = seconds};
        status = debuginfod_fetch(&file, &path, &why);
        if (status == PROFD_OK) {
            status = symbols_send(conn, call, path, id, &why);
            if (status == PROFD_WRONG_BUILD || status == PROFD_MALFORMED) {
                (void)unlink(path); /* or the cache would give it again */
            }
        }
        free(path);
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

static enum profd_status symbols_run(const struct profctl_call *call, struct profd_error *e)
{
    const struct profd_options o = profctl_options(call, ASK_ANSWER_MS);
    struct profd_conn *conn;
    struct answer builds = {.whole = NULL};
    char id[160];
    unsigned seconds = 0;
    const bool download = profctl_value(call, "debuginfod") != NULL;
    FAIL_IF(!download && (call->argument_count == 0 || profctl_value(call, "url") || profctl_value(call, "timeout")), e,
            PROFD_USAGE,
            call->argument_count == 0 ? "symbols: no file given; see profctl symbols --help"
                                      : "symbols: --url and --timeout are for --debuginfod");
    FAIL_IF(download && profctl_value(call, "code"), e, PROFD_USAGE,
            "symbols: --code needs the executable; --debuginfod downloads debug "
            "files, which have no code");
    TRY(debuginfod_read_timeout(call, &seconds, e));
    TRY(profd_conn_open(&o, &conn, e));
    enum profd_status first = download ? ask_builds(conn, &builds, e) : PROFD_OK;
    if (first != PROFD_OK) {
        profd_conn_close(conn);
        return first;
    }
    if (download && call->argument_count == 0) {
        first = builds_fetch(conn, call, builds.rows, NULL, seconds);
    }
    for (size_t i = 0; i < call->argument_count; i++) { /* one bad argument does not keep the others back */
        const char *argument = call->arguments[i];
        struct profd_error why = {""};
        enum profd_status status =
            download ? build_find(call, argument, id, &why) : symbols_send(conn, call, argument, NULL, &why);
        if (status != PROFD_OK) {
            profctl_complain("%s", why.sentence);
        } else if (download) {
            status = builds_fetch(conn, call, builds.rows, id, seconds);
        }
        first = first == PROFD_OK ? status : first;
    }
    profd_conn_close(conn);
    return first;
}

const struct profctl_verb verb_symbols = {
    .name = "symbols",
    .arguments = "FILE... | --debuginfod [BUILD...]",
    .summary = "Send executables with the function names of stored profiles",
    .details = "Names may be sent before or after the profiles. A separate debug file is found and sent, too.\n",
    OPTIONS(symbols_options),
    .arguments_most = (size_t)-1,
    .run = symbols_run,
};
