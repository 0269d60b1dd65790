/* profctl completion: scripts for shells, made from the same tables that parse the command line. */
#include <stdio.h>
#include <string.h>

#include "client/profctl.h"
#include "client/profctl_parse.h"

/* Verbs whose argument is a build: its ids and files complete it. */
static bool takes_build(const struct profctl_verb *v)
{
    return strstr(v->arguments, "BUILD") != NULL;
}

/* Values that an option's argument can have, separated by spaces; "" for free text, NULL for files. */
static const char *values_of(const struct profctl_option *o)
{
    static const struct {
        const char *option, *values;
    } known[] = {
        {"format", "text json gprof pprof callgrind folded speedscope dot csv flamegraph nodegraph"},
        {"sort", "index self total calls"},
        {"scope", "program build everywhere"},
        {"since", "now-1h now-6h now-1d now-7d now-30d"},
        {"until", "now now-1h now-1d"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].option, o->name) == 0) {
            return known[i].values;
        }
    }
    bool file = o->argument && (strstr(o->argument, "FILE") || strstr(o->argument, "PATH") || strstr(o->argument, "EXE"));
    return file ? NULL : "";
}

/* The i-th option of a verb, then the common ones; NULL at the end. */
static const struct profctl_option *option_at(const struct profctl_verb *v, size_t i)
{
    size_t n;
    const struct profctl_option *common = profctl_common_options(&n);
    return i < v->option_count ? &v->options[i] : i - v->option_count < n ? &common[i - v->option_count] : NULL;
}

static void bash_option_values(const struct profctl_verb *v)
{
    const struct profctl_option *o;
    for (size_t i = 0; (o = option_at(v, i)) != NULL; i++) {
        if (!o->argument) {
            continue;
        }
        const char *values = values_of(o);
        printf("        %s:--%s", v->name, o->name);
        if (o->letter) {
            printf("|%s:-%c", v->name, o->letter);
        }
        if (values) {
            printf(") COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", values);
        } else {
            printf(") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
        }
    }
}

static void bash_verb(const struct profctl_verb *v)
{
    const struct profctl_option *o;
    printf("        %s) [[ $word == -* ]] && COMPREPLY=($(compgen -W '", v->name);
    for (size_t i = 0; !v->run_alone && (o = option_at(v, i)) != NULL; i++) {
        printf("%s--%s", i ? " " : "", o->name);
    }
    printf("' -- \"$word\"))%s ;;\n", takes_build(v) ? " || COMPREPLY=($(compgen -W \"$(_profctl_builds)\" -- \"$word\"))" : "");
}

static void bash_print(const struct profctl_verb *const *verbs, size_t n)
{
    printf("# bash completion for profctl: source it, or put it below bash-completion's folder.\n"
           "_profctl_builds() { profctl builds --all 2>/dev/null | awk 'NR > 1 {print $1}'; }\n"
           "_profctl() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}\n"
           "    COMPREPLY=()\n"
           "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < n; i++) {
        printf("%s%s", verbs[i]->unlisted ? "" : verbs[i]->name, verbs[i]->unlisted ? "" : " ");
    }
    printf("help version' -- \"$word\")); return\n    fi\n    case $verb:$before in\n");
    for (size_t i = 0; i < n; i++) {
        bash_option_values(verbs[i]);
    }
    printf("    esac\n    case $verb in\n");
    for (size_t i = 0; i < n; i++) {
        bash_verb(verbs[i]);
    }
    printf("    esac\n}\ncomplete -o default -F _profctl profctl\n");
}

/* Text between single quotes of zsh and fish, where brackets and colons mean something to zsh. */
static void print_quoted(const char *text, bool zsh)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else if (zsh && strchr("[]:", *text)) {
            printf("\\%c", *text);
        } else {
            putchar(*text);
        }
    }
}

static void zsh_option(const struct profctl_option *o)
{
    const char *values = o->argument ? values_of(o) : NULL;
    if (o->letter) {
        printf("            '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    } else {
        printf("            '--%s[", o->name);
    }
    print_quoted(o->help, true);
    putchar(']');
    if (o->argument) {
        printf(":%s:", o->argument);
        if (!values) {
            fputs("_files", stdout);
        } else if (values[0]) {
            printf("(%s)", values);
        }
    }
    puts("' \\");
}

static void zsh_print(const struct profctl_verb *const *verbs, size_t n)
{
    const struct profctl_option *o;
    printf("#compdef profctl\n"
           "_profctl_builds() { local -a ids; ids=(${(f)\"$(profctl builds --all 2>/dev/null | awk 'NR > 1 {print $1}')\"}); "
           "_describe build ids; _files }\n"
           "_profctl() {\n    local -a verbs=(\n");
    for (size_t i = 0; i < n; i++) {
        if (verbs[i]->unlisted) {
            continue;
        }
        printf("        '%s:", verbs[i]->name);
        print_quoted(verbs[i]->summary, true);
        puts("'");
    }
    printf("    )\n    if ((CURRENT == 2)); then _describe verb verbs; return; fi\n"
           "    local verb=$words[2]\n    shift words; ((CURRENT--))\n    case $verb in\n");
    for (size_t i = 0; i < n; i++) {
        printf("        %s) _arguments -s \\\n", verbs[i]->name);
        for (size_t k = 0; !verbs[i]->run_alone && (o = option_at(verbs[i], k)) != NULL; k++) {
            zsh_option(o);
        }
        printf("            '*:argument:%s' ;;\n", takes_build(verbs[i]) ? "_profctl_builds" : "_files");
    }
    printf("    esac\n}\n_profctl \"$@\"\n");
}

static void fish_option(const struct profctl_verb *v, const struct profctl_option *o)
{
    const char *values = o->argument ? values_of(o) : NULL;
    printf("complete -c profctl -n '__fish_seen_subcommand_from %s' -l %s", v->name, o->name);
    if (o->letter) {
        printf(" -s %c", o->letter);
    }
    if (o->argument) {
        printf(" -r%s", values ? " -f" : " -F");
    }
    if (values && values[0]) {
        printf(" -a '%s'", values);
    }
    printf(" -d '");
    print_quoted(o->help, false);
    puts("'");
}

static void fish_print(const struct profctl_verb *const *verbs, size_t n)
{
    const struct profctl_option *o;
    puts("# fish completion for profctl\n"
         "function __profctl_builds; profctl builds --all 2>/dev/null | awk 'NR > 1 {print $1}'; end");
    for (size_t i = 0; i < n; i++) {
        if (verbs[i]->unlisted) {
            continue;
        }
        printf("complete -c profctl -n __fish_use_subcommand -f -a %s -d '", verbs[i]->name);
        print_quoted(verbs[i]->summary, false);
        puts("'");
        if (takes_build(verbs[i])) {
            printf("complete -c profctl -n '__fish_seen_subcommand_from %s' -a '(__profctl_builds)'\n", verbs[i]->name);
        }
        for (size_t k = 0; !verbs[i]->run_alone && (o = option_at(verbs[i], k)) != NULL; k++) {
            fish_option(verbs[i], o);
        }
    }
}

static enum profd_status completion_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct {
        const char *shell;
        void (*print)(const struct profctl_verb *const *verbs, size_t n);
    } shells[] = {{"bash", bash_print}, {"zsh", zsh_print}, {"fish", fish_print}};
    size_t n;
    const struct profctl_verb *const *verbs = profctl_verbs(&n);
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].shell, call->arguments[0]) == 0) {
            shells[i].print(verbs, n);
            return PROFD_OK;
        }
    }
    return profd_error_set(e, PROFD_USAGE, "completion: \"%s\" is none of bash, zsh, fish", call->arguments[0]);
}

const struct profctl_verb verb_completion = {
    .name = "completion", .arguments = "bash|zsh|fish", .summary = "Print a completion script for a shell",
    .details = "bash: source <(profctl completion bash); zsh: profctl completion zsh > _profctl in a folder of fpath;\n"
               "fish: profctl completion fish | source.\n",
    .arguments_least = 1, .arguments_most = 1, .run = completion_run,
};
