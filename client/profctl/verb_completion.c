/* profctl completion: scripts for shells, made from the same tables that parse the command line. */
#include <stdio.h>
#include <string.h>

#include "profctl/profctl.h"

extern const unsigned char embed_client_profctl_completion_bash[], embed_client_profctl_completion_zsh[];

/* What completion scripts offer: the values of options, and names that the daemon knows. */

enum complete_kind { COMPLETE_TEXT, COMPLETE_WORDS, COMPLETE_FILES, COMPLETE_LABELS };

#define ANSWER_MS 2000u /* the user waits for the completion */
#define LABELS_MOST 64

/* How an option's argument is completed; *words are separated by spaces, for COMPLETE_WORDS only. */
static enum complete_kind complete_option(const struct profctl_option *o, const char **words)
{
    static const struct {
        const char *option, *words;
    } examples[] = {
        {"since", "now-1h|now-6h|now-1d|now-7d|now-30d"},
        {"until", "now|now-1h|now-1d"},
        {"window", "10m|1h|6h|1d|7d"},
    };
    if (o->argument[0] < 'A' || o->argument[0] > 'Z') { /* its values themselves */
        *words = o->argument;
        return COMPLETE_WORDS;
    }
    const char *name = strncmp(o->name, "a-", 2) == 0 || strncmp(o->name, "b-", 2) == 0 ? o->name + 2 : o->name;
    for (size_t i = 0; i < COUNT(examples); i++) {
        if (strcmp(examples[i].option, name) == 0) {
            *words = examples[i].words;
            return COMPLETE_WORDS;
        }
    }
    if (strcmp(name, "label") == 0) {
        return COMPLETE_LABELS;
    }
    static const char *const files[] = {"FILE", "PATH", "EXE", "DIR", "GMON"};
    for (size_t i = 0; i < COUNT(files); i++) {
        if (strstr(o->argument, files[i])) {
            return COMPLETE_FILES;
        }
    }
    return COMPLETE_TEXT;
}

static bool complete_takes_build(const struct profctl_verb *v)
{
    return strstr(v->arguments, "BUILD") != NULL;
}

/* Values with characters that the shell interprets are not completed. */
static bool is_plain(const char *text)
{
    return text[0] != '\0' &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@%+,-")] == '\0';
}

/* Words of a list "a|b|c", with blanks between. */
static void print_words(const char *list)
{
    for (; *list; list++) {
        putchar(*list == '|' ? ' ' : *list);
    }
}

static void bash_option_values(const struct profctl_verb *v)
{
    const struct profctl_option *o;
    for (size_t i = 0; (o = profctl_option_at(v, i)) != NULL; i++) {
        if (!o->argument) {
            continue;
        }
        const char *words = "";
        enum complete_kind kind = complete_option(o, &words);
        printf("        %s:--%s", v->name, o->name);
        if (o->letter) {
            printf("|%s:-%c", v->name, o->letter);
        }
        if (kind == COMPLETE_FILES) {
            printf(") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
        } else if (kind == COMPLETE_LABELS) {
            printf(") _profctl_label; return ;;\n");
        } else {
            printf(") COMPREPLY=($(compgen -W '");
            print_words(words);
            printf("' -- \"$word\")); return ;;\n");
        }
    }
}

/* Prints the script up to the next @@, and returns what is behind it. */
static const char *script_print(const char *script)
{
    const char *mark = strstr(script, "@@");
    printf("%.*s", (int)(mark ? (size_t)(mark - script) : strlen(script)), script);
    return mark ? mark + 2 : "";
}

static void bash_print(const struct profctl_row *verbs, size_t n)
{
    const struct profctl_option *option;
    const char *script = script_print((const char *)embed_client_profctl_completion_bash);
    for (size_t i = 0; i < n; i++) {
        printf("%s ", verbs[i].verb->name);
    }
    script = script_print(script);
    for (size_t i = 0; i < n; i++) {
        bash_option_values(verbs[i].verb);
    }
    script = script_print(script);
    for (size_t i = 0; i < n; i++) {
        const struct profctl_verb *v = verbs[i].verb;
        printf("        %s) [[ $word == -* ]] && COMPREPLY=($(compgen -W '", v->name);
        for (size_t k = 0; (option = profctl_option_at(v, k)) != NULL; k++) {
            printf("%s--%s", k ? " " : "", option->name);
        }
        printf("' -- \"$word\"))%s ;;\n",
               complete_takes_build(v) ? " || COMPREPLY=($(compgen -W \"$(_profctl_builds)\" -- \"$word\"))" : "");
    }
    (void)script_print(script);
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

static void zsh_print(const struct profctl_row *verbs, size_t n)
{
    const struct profctl_option *o;
    const char *script = script_print((const char *)embed_client_profctl_completion_zsh);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || verbs[i].group != verbs[i - 1].group) {
            puts("        verbs=(");
        }
        printf("            '%s:", verbs[i].verb->name);
        print_quoted(verbs[i].verb->summary, true);
        puts("'");
        if (i + 1 == n || verbs[i].group != verbs[i + 1].group) {
            printf("        ); _describe -t %s '%s' verbs\n", verbs[i].group->name, verbs[i].group->title);
        }
    }
    script = script_print(script);
    for (size_t i = 0; i < n; i++) {
        printf("        %s) _arguments -s \\\n", verbs[i].verb->name);
        for (size_t k = 0; (o = profctl_option_at(verbs[i].verb, k)) != NULL; k++) {
            const char *words = "";
            enum complete_kind kind = o->argument ? complete_option(o, &words) : COMPLETE_TEXT;
            if (o->letter) {
                printf("            '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
            } else {
                printf("            '--%s[", o->name);
            }
            print_quoted(o->help, true);
            putchar(']');
            if (o->argument) {
                printf(":%s:", o->name);
                if (kind == COMPLETE_FILES || kind == COMPLETE_LABELS) {
                    fputs(kind == COMPLETE_FILES ? "_files" : "_profctl_labels", stdout);
                } else if (kind == COMPLETE_WORDS) {
                    putchar('(');
                    print_words(words);
                    putchar(')');
                }
            }
            puts("' \\");
        }
        printf("            '*:argument:%s' ;;\n",
               complete_takes_build(verbs[i].verb) ? "_profctl_builds"
               : (strstr(verbs[i].verb->arguments, "EXE") != NULL || strstr(verbs[i].verb->arguments, "FILE") != NULL ||
                  verbs[i].verb->has_command || verbs[i].verb->run_alone != NULL)
                   ? "_files"
                   : "");
    }
    (void)script_print(script);
}

static void fish_print(const struct profctl_row *verbs, size_t n)
{
    const struct profctl_option *o;
    puts("# fish completion for profctl\n"
         "function __profctl_builds; profctl completion builds 2>/dev/null; end");
    for (size_t i = 0; i < n; i++) {
        printf("complete -c profctl -n __fish_use_subcommand -f -a %s -d '%s: ", verbs[i].verb->name,
               verbs[i].group->name);
        print_quoted(verbs[i].verb->summary, false);
        puts("'");
        if (complete_takes_build(verbs[i].verb)) {
            printf("complete -c profctl -n '__fish_seen_subcommand_from %s' -a '(__profctl_builds)'\n",
                   verbs[i].verb->name);
        }
        for (size_t k = 0; (o = profctl_option_at(verbs[i].verb, k)) != NULL; k++) {
            const char *words = "";
            enum complete_kind kind = o->argument ? complete_option(o, &words) : COMPLETE_TEXT;
            printf("complete -c profctl -n '__fish_seen_subcommand_from %s' -l %s", verbs[i].verb->name, o->name);
            if (o->letter) {
                printf(" -s %c", o->letter);
            }
            if (o->argument) {
                printf(" -r%s", kind == COMPLETE_FILES ? " -F" : " -f");
            }
            if (kind == COMPLETE_WORDS) {
                printf(" -a '");
                print_words(words);
                putchar('\'');
            } else if (kind == COMPLETE_LABELS) {
                printf(" -a '(profctl completion labels 2>/dev/null)'");
            }
            printf(" -d '");
            print_quoted(o->help, false);
            puts("'");
        }
    }
}

static enum profd_status completion_run(const struct profctl_call *call, struct profd_error *e)
{
    static const struct {
        const char *shell;
        void (*print)(const struct profctl_row *verbs, size_t n);
    } shells[] = {{"bash", bash_print}, {"zsh", zsh_print}, {"fish", fish_print}};
    const char *what = call->arguments[0];
    const bool builds = strcmp(what, "builds") == 0;
    for (size_t i = 0; i < COUNT(shells); i++) {
        if (strcmp(shells[i].shell, what) == 0) {
            shells[i].print(call->verbs, call->verb_count);
            return PROFD_OK;
        }
    }
    FAIL_IF(!builds && strcmp(what, "labels") != 0, e, PROFD_USAGE,
            "completion: the shell must be bash, zsh or fish, not \"%s\"", what);

    /* The scripts themselves ask for builds (id, tab, program) and labels (NAME=VALUE). Without a daemon there are
     * none. */
    const struct profd_options o = profctl_options(call, ANSWER_MS);
    struct profd_conn *conn = NULL;
    struct ask_target target;
    struct answer list = {.whole = NULL}, values = {.whole = NULL};
    json_t *row, *value;
    size_t i, k;
    if (profd_conn_open(&o, &conn, NULL) != PROFD_OK) {
        return PROFD_OK;
    }
    ask_target_init(&target, "/api/v1/labels", NULL);
    (void)(builds ? ask_builds(conn, &list, NULL) : ask_rows(conn, &target, &list, NULL));
    json_array_foreach(list.rows, i, row)
    {
        const char *name = row_text(row, builds ? "build_id" : "name");
        if (!is_plain(name) || (!builds && i >= LABELS_MOST)) {
            continue;
        }
        if (builds) {
            printf("%s\t%s\n", name, row_text(row, "name"));
            continue;
        }
        ask_target_init(&target, "/api/v1/labels/{}/values", name);
        (void)ask_rows(conn, &target, &values, NULL);
        json_array_foreach(values.rows, k, value)
        {
            if (is_plain(row_text(value, "value"))) {
                printf("%s=%s\n", name, row_text(value, "value"));
            }
        }
    }
    profd_conn_close(conn);
    return PROFD_OK;
}

const struct profctl_verb verb_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "Print a completion script for a shell",
    .details =
        "bash: source <(profctl completion bash); zsh: profctl completion zsh > _profctl in a directory of fpath;\n"
        "fish: profctl completion fish | source.\n",
    .arguments_least = 1,
    .arguments_most = 1,
    .run = completion_run,
};
