/* profctl annotate: ticks and calls by line or instruction of one function. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profctl/annotate_fetch.h"
#include "profctl/annotate_print.h"
#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_debuginfod.h"
#include "profctl/profctl_find.h"
#include "profctl/profctl_options.h"

#define FOLDERS_MOST 32

static const struct profctl_option options[] = {
    {"source", 0, NULL, "show source lines (the default)"},
    {"asm", 0, NULL, "show instructions"},
    {"source-path", 0, "DIR", "look for sources in DIR first; may be repeated"},
    {"exe", 'e', "FILE", "the executable or library with the function, if it was moved"},
    {"debuginfod", 0, NULL, "download missing files from a debuginfod server"},
    {"url", 0, "URL", "the debuginfod server (default: those of DEBUGINFOD_URLS)"},
    {"timeout", 0, "SECONDS", "time for one file, and for all sources together, 1 to 86400 (default 120)"},
    OPTION_FORMAT,
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_UID,
    OPTION_PARTIAL,
    OPTION_LABEL,
    OPTION_MATCH,
    OPTION_SCOPE,
    OPTION_DIMENSION,
};

/* The file with the function's code: --exe, the argument, or the path that the process had, if it is that build. */
static enum profd_status find_executable(const struct profctl_call *call, const json_t *answer, const char **out,
                                         struct profd_error *e)
{
    const json_t *f = json_object_get(answer, "function");
    const char *id = row_raw(f, "build_id");
    const char *candidates[] = {profctl_value(call, "exe"), call->arguments[0], row_raw(f, "object")};
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        if (candidates[i] && build_is_file(candidates[i], id)) {
            *out = candidates[i];
            return PROFD_OK;
        }
        if (i == 0 && candidates[i]) {
            return profd_error_set(e, PROFD_NOT_FOUND, "--exe %s: not a readable file of build %.12s", candidates[i],
                                   id);
        }
    }
    return profd_error_set(e, PROFD_NOT_FOUND,
                           "%.200s: not a readable file of build %.12s on this machine; --exe names another path",
                           row_raw(f, "object"), id);
}

/* Files that annotate reads: the executable, where it was downloaded or joined with its debug file. */
struct files {
    struct annotate_fetch fetch;
    const char *executable;
    char *downloaded, *joined;
};

static enum profd_status find_files(const struct profctl_call *call, const json_t *answer, struct files *f,
                                    struct profd_error *e)
{
    enum profd_status status = find_executable(call, answer, &f->executable, e);
    if (!profctl_value(call, "debuginfod")) {
        return status;
    }
    f->fetch.url = profctl_value(call, "url");
    f->fetch.build_id = row_raw(json_object_get(answer, "function"), "build_id");
    if (status == PROFD_NOT_FOUND && !profctl_value(call, "exe")) {
        status = annotate_fetch_executable(&f->fetch, &f->downloaded, e);
        f->executable = f->downloaded;
    }
    if (status == PROFD_OK) {
        status = annotate_fetch_lines(&f->fetch, f->executable, &f->joined, e);
        f->executable = f->joined ? f->joined : f->executable;
    }
    return status;
}

static enum profd_status find_sources(const struct profctl_call *call, struct files *files, const struct code *code,
                                      struct source *sources, struct profd_error *e)
{
    const char *folders[FOLDERS_MOST];
    struct source_finder finder = {.executable = files->executable,
                                   .folders = folders,
                                   .fetch = profctl_value(call, "debuginfod") ? annotate_fetch_source : NULL,
                                   .context = &files->fetch};
    enum profd_status status = PROFD_OK;
    for (size_t i = 0; i < call->given_count && finder.folder_count < FOLDERS_MOST; i++) {
        if (strcmp(call->given[i].option->name, "source-path") == 0) {
            folders[finder.folder_count++] = call->given[i].value;
        }
    }
    for (size_t i = 0; status == PROFD_OK && i < code->place_count; i++) {
        size_t first = 0; /* one text for all places of a file; the first frees it */
        while (strcmp(code->places[first].file, code->places[i].file) != 0) {
            first++;
        }
        if (first < i) {
            sources[i] = sources[first];
        } else if (code->places[i].file[0]) {
            status = source_find(&finder, code->places[i].file, &sources[i], e);
        }
    }
    return status;
}

static enum profd_status print(size_t format, const struct annotate_print *p, struct profd_error *e)
{
    if (format == FORMAT_JSON) {
        return json_print(annotate_print_json(p), e);
    }
    if (format == FORMAT_CSV) {
        annotate_print_csv(p);
    } else {
        annotate_print_text(p);
    }
    return PROFD_OK;
}

static enum profd_status annotate(const struct profctl_call *call, size_t format, const json_t *answer,
                                  struct profd_error *e)
{
    const json_t *f = json_object_get(answer, "function");
    const uint64_t low = strtoull(row_raw(f, "address"), NULL, 16);
    const uint64_t bytes = (uint64_t)json_integer_value(json_object_get(f, "bytes"));
    struct files files = {.executable = NULL};
    struct code code = {.count = 0};
    struct annotate_sum sum = {.span = NULL};
    struct source *sources = NULL;
    enum profd_status status = debuginfod_read_timeout(call, &files.fetch.seconds, e);
    status = status == PROFD_OK ? find_files(call, answer, &files, e) : status;
    status =
        status == PROFD_OK ? code_read(files.executable, row_raw(f, "build_id"), low, low + bytes, &code, e) : status;
    if (status == PROFD_OK) {
        sources = calloc(code.place_count + 1, sizeof *sources);
        if (!sources || !annotate_sum_make(answer, &code, &sum)) {
            status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for %zu instructions", code.count);
        } else {
            status = find_sources(call, &files, &code, sources, e);
        }
    }
    if (status == PROFD_OK) {
        const struct annotate_print p = {.answer = answer,
                                         .code = &code,
                                         .sum = &sum,
                                         .sources = sources,
                                         .instructions = profctl_value(call, "asm") != NULL};
        status = print(format, &p, e);
    }
    for (size_t i = 0; sources && i < code.place_count; i++) {
        for (size_t k = i + 1; k < code.place_count; k++) {
            if (sources[k].text == sources[i].text) {
                sources[k].text = NULL;
                sources[k].lines = NULL;
            }
        }
        source_done(&sources[i]);
    }
    free(sources);
    annotate_sum_done(&sum);
    code_done(&code);
    if (files.joined) {
        (void)unlink(files.joined);
    }
    free(files.joined);
    free(files.downloaded);
    return status;
}

static enum profd_status annotate_run(const struct profctl_call *call, struct profd_error *e)
{
    struct function_place place;
    struct ask_target target;
    struct answer answer;
    char id[160];
    size_t format = FORMAT_TEXT;
    TRY(profctl_choose_format(call, &format, e));
    if (profctl_value(call, "asm") && profctl_value(call, "source")) {
        return profd_error_set(e, PROFD_USAGE, "annotate: --source and --asm are given both; choose one");
    }
    if (!profctl_value(call, "debuginfod") && (profctl_value(call, "url") || profctl_value(call, "timeout"))) {
        return profd_error_set(e, PROFD_USAGE, "annotate: --url and --timeout are for --debuginfod");
    }
    TRY(build_find(call, call->arguments[0], id, e));
    TRY(function_find(call, id, call->arguments[1], &place, e));
    function_target_init(&target, "/api/v1/builds/{}/functions/{}/addresses", id, &place);
    TRY(ask_target_add_given(&target, call, "since|until|scope|uid|dimension", e));
    TRY(ask_fetch_object(call, &target, &answer, e));
    enum profd_status status = json_is_object(json_object_get(answer.whole, "function"))
                                   ? annotate(call, format, answer.whole, e)
                                   : profd_error_set(e, PROFD_PROTOCOL, "the daemon's answer is no list of addresses");
    answer_free(&answer);
    return status;
}

const struct profctl_verb verb_annotate = {
    .name = "annotate",
    .arguments = "PROGRAM|BUILD|EXE FUNCTION",
    .summary = "Show ticks and calls of a function by line or instruction",
    .details = "The executable and the sources are read on this machine. CALLS are exact numbers of calls from each "
               "call site.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 2,
    .arguments_most = 2,
    .run = annotate_run,
};
