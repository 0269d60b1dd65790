/* profctl: the table of verbs. */
#include "profctl/profctl.h"

#include <stdio.h>
#include <string.h>

static const struct profctl_group run = {"run", "Run programs, watch them, and send profiles"},
                                  look = {"look", "Look at a profile"}, compare = {"compare", "Compare profiles"},
                                  data = {"data", "Maintain stored data and the daemon"},
                                  fleet = {"fleet", "Set up hosts and a centre"}, help_group = {"help", "Get help"};

/* clang-format off */
static const struct profctl_row verbs[] = {
    {&run, &verb_run_command}, {&run, &verb_record}, {&run, &verb_ps}, {&run, &verb_top}, {&run, &verb_pause},
    {&run, &verb_upload}, {&look, &verb_report}, {&look, &verb_functions}, {&look, &verb_callers},
    {&look, &verb_annotate}, {&look, &verb_cycles}, {&look, &verb_never_called}, {&look, &verb_export},
    {&look, &verb_gprof}, {&compare, &verb_diff}, {&compare, &verb_groups}, {&data, &verb_builds},
    {&data, &verb_labels}, {&data, &verb_symbols}, {&data, &verb_delete}, {&data, &verb_verify}, {&data, &verb_backup},
    {&data, &verb_status}, {&data, &verb_health}, {&data, &verb_reload}, {&data, &verb_retention},
    {&fleet, &verb_hosts}, {&fleet, &verb_token}, {&fleet, &verb_relay}, {&fleet, &verb_tier},
    {&help_group, &verb_completion},
};
/* clang-format on */
#define VERB_COUNT (COUNT(verbs))

static const struct profctl_verb *verb_find(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i].verb->name, name) == 0) {
            return verbs[i].verb;
        }
    }
    return NULL;
}

static enum profd_status verb_run(struct profctl_call *call, struct profd_error *e)
{
    ARENA_BOUNDARY(call->arena, profd_no_memory(e));
    TRY(side_take(call, e));
    return call->verb->run(call, e);
}

static enum profd_status dispatch(int argc, char **argv, int *exit_status, struct profd_error *e)
{
    const char *word = argc > 1 ? argv[1] : "";
    bool help = strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    if (strcmp(word, "version") == 0 || strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("profctl %s\n", profd_version());
        return PROFD_OK;
    }
    if (help && (argc == 2 || argv[2][0] == '-' || strcmp(argv[2], "help") == 0 || strcmp(argv[2], "version") == 0)) {
        puts("usage: profctl VERB [options] [arguments]\n\n"
             "Runs programs under the profd collector, sends profiles, and prints reports.");
        for (size_t i = 0; i < VERB_COUNT; i++) {
            if (i == 0 || verbs[i].group != verbs[i - 1].group) {
                printf("\n%s:\n", verbs[i].group->title);
            }
            printf("  %-12s %s\n", verbs[i].verb->name, verbs[i].verb->summary);
        }
        puts("  help         Print this text, or the options of a verb\n  version      Print the version\n\n"
             "profctl VERB --help describes a verb.");
        return PROFD_OK;
    }
    FAIL_IF(argc < 2 || word[0] == '-', e, PROFD_USAGE, "no verb given; `profctl help` lists all verbs");
    const struct profctl_verb *verb = verb_find(help ? argv[2] : word);
    if (!verb) {
        struct nearest near = {.word = help ? argv[2] : word};
        for (size_t i = 0; i < VERB_COUNT; i++) {
            nearest_offer(&near, verbs[i].verb->name);
        }
        nearest_offer(&near, "help");
        nearest_offer(&near, "version");
        return profd_error_set(e, PROFD_USAGE, "unknown verb \"%s\"%s%s%s; `profctl help` lists all verbs", near.word,
                               near.best ? " (did you mean " : "", near.best ? near.best : "", near.best ? "?)" : "");
    }
    if (help) {
        profctl_print_help(verb);
        return PROFD_OK;
    }
    struct profctl_call call;
    enum profd_status status = profctl_parse(verb, argc - 1, argv + 1, &call, &help, e);
    call.verbs = verbs;
    call.verb_count = VERB_COUNT;
    call.exit_status = exit_status;
    if (status == PROFD_OK && help) {
        profctl_print_help(verb);
    } else if (status == PROFD_OK) {
        call.arena = arena_new(0);
        status = call.arena ? verb_run(&call, e) : profd_no_memory(e);
        arena_free(call.arena);
    }
    answers_free();
    profctl_parse_done(&call);
    return status;
}

/* The verb with the name of the program, which may be called through a link; NULL if there is none. */
static const struct profctl_verb *verb_linked(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    return argc > 0 ? verb_find(slash ? slash + 1 : argv[0]) : NULL;
}

/* True if a verb that does everything itself is called: by its name, or through a link of its name. */
static bool verb_run_alone(int argc, char **argv, int *status)
{
    const struct profctl_verb *verb = verb_linked(argc, argv);
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
    struct profd_error e = {""};
    enum profd_status status = verb_linked(argc, argv) ? PROFD_OK : profctl_place_verb(argc, argv, &e);
    if (status == PROFD_OK && verb_run_alone(argc, argv, &exit_status)) {
        return exit_status;
    }
    status = status ? status : dispatch(argc, argv, &exit_status, &e);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        status = status ? status : profd_error_set(&e, PROFD_IO, "cannot write to stdout");
    }
    if (status != PROFD_OK && e.sentence[0]) { /* a verb that said it all leaves it empty */
        profctl_complain("%s", e.sentence);
    }
    return status == PROFD_OK ? exit_status : profd_status_exit(status);
}
