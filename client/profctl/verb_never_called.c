/* profctl never-called: functions that no process entered, by bytes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl.h"
#include "profctl/profctl_ask.h"
#include "profctl/profctl_build.h"
#include "profctl/profctl_csv.h"
#include "profctl/profctl_options.h"
#include "profctl/profctl_rows.h"
#include "profctl/profctl_show.h"
#include "proto/noun.h"

#define ANSWER_MOST ((size_t)256 << 20)

static const struct profctl_option options[] = {
    OPTION_SINCE,  OPTION_UNTIL, OPTION_LABEL, OPTION_MATCH,   {"limit", 0, "N", "number of rows (default all)"},
    OPTION_FORMAT, OPTION_SCOPE, OPTION_UID,   OPTION_PARTIAL,
};

static void print_head(const struct rows *all)
{
    char bytes[40];
    const uint64_t functions = rows_number(all, 0, "functions"), processes = rows_number(all, 0, "processes_started"),
                   reported = rows_number(all, 0, "not_called");
    const double bound = rows_real(all, 0, "bound");
    char reasons[200];
    const char *named = rows_text(all, 0, "symbols"); /* an older daemon does not say it */
    const bool whole = strcmp(named, "exported") != 0 && strcmp(named, "no") != 0;
    if (rows_number(all, 0, "counted_functions") == 0) {
        printf("unknown: no function of this build %s\n",
               whole ? "counts its calls (gcc -pg)"
                     : "that counts its calls has a name; profctl symbols sends its executable or debug file");
        return;
    }
    show_bytes(rows_number(all, 0, "bytes"), bytes, sizeof bytes);
    printf("%" PRIu64 " %s, %s, entered by none of %" PRIu64 " %s", functions,
           noun_for(functions, "function", "functions"), bytes, processes, noun_for(processes, "process", "processes"));
    if (bound > 0) {
        printf(": fewer than %.3g%% of processes enter any one of them (95%%)\n", 100 * bound);
    } else if (!rows_flag(all, 0, "calls_exact")) {
        rows_join(all, 0, "inexact_reasons", reasons, sizeof reasons);
        printf("; calls may be missing (%s), so some may have been entered\n", reasons);
    } else {
        printf("; too few processes for a bound\n");
    }
    printf("Listed are functions that count their calls.%s\n",
           rows_flag(all, 0, "inlined_known")
               ? ""
               : " There is no debug information: code of theirs that was inlined elsewhere may have run.");
    if (!whole) {
        printf("Only exported functions have names, and only these are known: profctl symbols sends a debug file.\n");
    }
    if (reported > functions) {
        printf("A report says %" PRIu64 " not called: there each copy of a function counts, also where another was "
               "entered or inlined,\nand so does start-up code, in all builds of the report.\n",
               reported);
    }
}

static void print_table(const struct rows *all, const struct rows *r)
{
    print_head(all);
    if (rows_count(r) == 0) {
        return;
    }
    printf("%10s %-18s %s\n", "BYTES", "ADDRESS", "FUNCTION");
    for (size_t i = 0; i < rows_count(r); i++) {
        const char *file = rows_text(r, i, "file");
        const uint64_t copies = rows_number(r, i, "copies");
        printf("%10" PRIu64 " %-18s %s%s%s%s", rows_number(r, i, "bytes"), rows_text(r, i, "address"),
               rows_text(r, i, "function"), file[0] != '\0' ? " (" : "", file, file[0] != '\0' ? ")" : "");
        if (rows_flag(r, i, "entered_elsewhere")) {
            printf("  this copy was never entered, another one was");
        } else if (rows_flag(r, i, "inlined")) {
            printf("  never entered, but it is also inlined, where it may have run");
        } else if (copies > 1) {
            printf("  %" PRIu64 " copies", copies);
        }
        printf("\n");
    }
    const uint64_t rest = rows_number(all, 0, "row_count") - rows_count(r);
    if (rest > 0) {
        printf("%" PRIu64 " more; without --limit they are listed\n", rest);
    }
}

static enum profd_status print_answer(size_t format, const char *body, size_t size, struct profd_error *e)
{
    static const char *const FIELDS[] = {"function", "file",    "address",           "bytes",
                                         "copies",   "inlined", "entered_elsewhere", "raw_name"};
    struct rows *all = NULL, *list = NULL;
    if (format == FORMAT_JSON) {
        (void)fwrite(body, 1, size, stdout);
        return PROFD_OK;
    }
    enum profd_status status = rows_parse(body, size, &list, e);
    if (status == PROFD_OK && format == FORMAT_CSV) {
        csv_print_rows(rows_list(list), FIELDS, sizeof FIELDS / sizeof *FIELDS);
    } else if (status == PROFD_OK && (status = rows_parse_object(body, size, &all, e)) == PROFD_OK) {
        print_table(all, list);
    }
    rows_free(list);
    rows_free(all);
    return status;
}

static enum profd_status never_called_run(const struct profctl_call *call, struct profd_error *e)
{
    struct ask_target target;
    char id[160], *body = NULL;
    size_t size = 0, format = FORMAT_TEXT;
    enum profd_status status = profctl_choose_format(call, &format, e);
    status = status == PROFD_OK ? build_find(call, call->arguments[0], id, e) : status;
    if (status == PROFD_OK) {
        ask_target_init(&target, "/api/v1/builds/{}/never-called", id);
        status = ask_target_add_given(&target, call, "since|until|limit|scope|uid", e);
    }
    status = status == PROFD_OK ? ask_fetch(call, &target, ANSWER_MOST, &body, &size, e) : status;
    if (status == PROFD_OK) {
        status = print_answer(format, body, size, e);
    }
    free(body);
    return status;
}

const struct profctl_verb verb_never_called = {
    .name = "never-called",
    .arguments = "PROGRAM|BUILD|EXE",
    .summary = "List the functions that no process entered",
    .details = "Only functions compiled to count their calls (-pg, -mfentry, -finstrument-functions) can be listed.\n",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .arguments_least = 1,
    .arguments_most = 1,
    .run = never_called_run,
};
