/* profctl: the table of verbs. */
#include "profctl/profctl.h"

#include <stdio.h>
#include <string.h>

#include "profctl/profctl_parse.h"
#include "profctl/profctl_side.h"

static const struct profctl_verb *const verbs[] = {
    &verb_run_command, &verb_record,    &verb_ps,       &verb_pause,      &verb_resume,       &verb_upload,
    &verb_symbols,     &verb_builds,    &verb_report,   &verb_open,       &verb_export,       &verb_groups,
    &verb_diff,        &verb_functions, &verb_callers,  &verb_annotate,   &verb_never_called, &verb_cycles,
    &verb_labels,      &verb_status,    &verb_spool,    &verb_gprof,      &verb_top,          &verb_delete,
    &verb_verify,      &verb_backup,    &verb_reload,   &verb_ca,         &verb_token,        &verb_enroll,
    &verb_hosts,       &verb_reader,    &verb_verdicts, &verb_completion,
};
#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

static void usage_print(void)
{
    puts("usage: profctl VERB [options] [arguments]\n\nRuns programs under the profd collector, sends profiles, and "
         "prints reports.\n\nverbs:");
    for (size_t i = 0; i < VERB_COUNT; i++) {
        printf("  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    }
    puts("  help       Print this text, or the options of a verb\n  version    Print the version\n\nprofctl VERB "
         "--help describes a verb.");
}

static const struct profctl_verb *verb_find(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i]->name, name) == 0) {
            return verbs[i];
        }
    }
    return NULL;
}

static enum profd_status verb_run(const struct profctl_verb *verb, int argc, char **argv, int *exit_status,
                                  struct profd_error *e)
{
    struct profctl_call call;
    bool help = false;
    enum profd_status status = profctl_parse(verb, argc, argv, &call, &help, e);
    call.verbs = verbs;
    call.verb_count = VERB_COUNT;
    call.exit_status = exit_status;
    if (status == PROFD_OK && help) {
        profctl_print_help(verb);
    } else if (status == PROFD_OK) {
        status = side_take(&call, e);
        status = status == PROFD_OK ? verb->run(&call, e) : status;
    }
    profctl_parse_done(&call);
    return status;
}

static enum profd_status dispatch(int argc, char **argv, int *exit_status, struct profd_error *e)
{
    const char *word = argc > 1 ? argv[1] : "";
    bool help = strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    if (strcmp(word, "version") == 0 || strcmp(word, "--version") == 0) {
        printf("profctl %s\n", profd_version());
        return PROFD_OK;
    }
    if (help && (argc == 2 || strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        usage_print();
        return PROFD_OK;
    }
    if (argc < 2) {
        return profd_error_set(e, PROFD_USAGE, "no verb given; see profctl help");
    }
    const struct profctl_verb *verb = verb_find(help ? argv[2] : word);
    if (!verb) {
        return profd_error_set(e, PROFD_USAGE, "unknown verb \"%s\"; see profctl help", help ? argv[2] : word);
    }
    if (help) {
        profctl_print_help(verb);
        return PROFD_OK;
    }
    return verb_run(verb, argc - 1, argv + 1, exit_status, e);
}

/* True if a verb that does everything itself is called: by its name, or through a link of its name. */
static bool verb_run_alone(int argc, char **argv, int *status)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const struct profctl_verb *verb = argc > 0 ? verb_find(slash ? slash + 1 : argv[0]) : NULL;
    if (verb && verb->run_alone) {
        *status = verb->run_alone(argv[0], argc, argv);
        return true;
    }
    bool help = argc > 2 && strcmp(argv[1], "help") == 0;
    verb = argc > 1 ? verb_find(argv[help ? 2 : 1]) : NULL;
    if (!verb || !verb->run_alone) {
        return false;
    }
    char program[64], option[] = "--help", *words[] = {argv[0], option, NULL};
    (void)snprintf(program, sizeof program, "profctl %s", verb->name);
    *status = help ? verb->run_alone(program, 2, words) : verb->run_alone(program, argc - 1, argv + 1);
    return true;
}

int main(int argc, char **argv)
{
    int exit_status = 0;
    if (verb_run_alone(argc, argv, &exit_status)) {
        return exit_status;
    }
    struct profd_error e = {""};
    enum profd_status status = dispatch(argc, argv, &exit_status, &e);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        status = status == PROFD_OK ? profd_error_set(&e, PROFD_IO, "cannot write to stdout") : status;
    }
    if (status != PROFD_OK && e.sentence[0]) { /* a verb that said it all leaves it empty */
        profctl_complain("%s", e.sentence);
    }
    return status == PROFD_OK ? exit_status : profd_status_exit(status);
}
