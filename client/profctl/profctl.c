#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profctl/profctl.h"

extern const unsigned char embed_client_profctl_help_examples_txt[];

#define NAME_SIZE 160

enum profd_status labels_add(const struct profctl_call *call, struct profd_upload *u, struct profd_error *e)
{
    for (size_t i = 0; i < call->given_count; i++) {
        if (strcmp(call->given[i].option->name, "label") != 0) {
            continue;
        }
        const char *text = call->given[i].value, *equals = strchr(text, '=');
        char name[NAME_SIZE];
        FAIL_IF(!equals || (size_t)(equals - text) >= sizeof name, e, PROFD_USAGE, "%s: -l %s is not NAME=VALUE",
                call->verb->name, text);
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        enum profd_status status = profd_upload_add_label(u, name, equals + 1, e);
        if (status != PROFD_OK) {
            return profd_error_wrap(e, status, "%s: -l %s", call->verb->name, text);
        }
    }
    return PROFD_OK;
}

enum profd_status labels_check(const struct profctl_call *call, struct profd_error *e)
{
    struct profd_upload *u;
    enum profd_status status = profd_upload_new(&u, e);
    if (status == PROFD_OK) {
        status = labels_add(call, u, e);
        profd_upload_free(u);
    }
    return status;
}

int profctl_alternative(const char *list, const char *word)
{
    size_t n = strlen(word);
    int index = 0;
    for (const char *at = list; *at; index++) {
        size_t size = strcspn(at, "|");
        if (size == n && memcmp(at, word, n) == 0) {
            return index;
        }
        at += size + (at[size] == '|');
    }
    return -1;
}

#define NEAREST_MOST 32 /* bytes of a word; longer ones are near to none */

/* The number of letters to insert, remove, replace or exchange with the adjacent one. */
static size_t distance_of(const char *a, const char *b)
{
    size_t rows[3][NEAREST_MOST + 1], n = strlen(b);
    for (size_t k = 0; k <= n; k++) {
        rows[0][k] = k;
    }
    for (size_t i = 1; i <= strlen(a); i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= n; k++) {
            size_t least = above[k - 1] + (a[i - 1] != b[k - 1]);
            least = above[k] + 1 < least ? above[k] + 1 : least;
            least = row[k - 1] + 1 < least ? row[k - 1] + 1 : least;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && second[k - 2] + 1 < least) {
                least = second[k - 2] + 1;
            }
            row[k] = least;
        }
    }
    return rows[strlen(a) % 3][n];
}

void nearest_offer(struct nearest *n, const char *candidate)
{
    const size_t size = strlen(candidate);
    if (strlen(n->word) > NEAREST_MOST || size > NEAREST_MOST) {
        return;
    }
    const size_t distance = distance_of(n->word, candidate);
    if (distance <= (size < 6 ? 1 : size / 3) && (!n->best || distance < n->distance)) {
        n->best = candidate;
        n->distance = distance;
    }
}

const char *profctl_value(const struct profctl_call *call, const char *option)
{
    const char *value = NULL;
    for (size_t i = 0; i < call->given_count; i++) {
        if (strcmp(call->given[i].option->name, option) == 0) {
            value = call->given[i].value;
        }
    }
    return value;
}

enum profd_status profctl_duration(const struct profctl_call *call, const char *option, const char *otherwise,
                                   char out[24], struct profd_error *e)
{
    static const struct {
        char unit;
        unsigned seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    const char *given = profctl_value(call, option), *text = given ? given : otherwise;
    char *end = NULL;
    const unsigned long n = strtoul(text, &end, 10);
    for (size_t i = 0; i < COUNT(units); i++) {
        if (text[0] >= '0' && text[0] <= '9' && n > 0 && n <= 100000000 && end[0] == units[i].unit && end[1] == '\0') {
            (void)snprintf(out, 24, "%lu", n * units[i].seconds);
            return PROFD_OK;
        }
    }
    return profd_error_set(e, PROFD_USAGE, "%s: --%s is \"%s\", not a time such as 90s, 30m, 1h or 7d",
                           call->verb->name, option, text);
}

enum profd_status profctl_choose(const struct profctl_call *call, const char *option, size_t *out,
                                 struct profd_error *e)
{
    for (size_t i = call->given_count; i-- > 0;) {
        const struct profctl_given *g = &call->given[i];
        if (strcmp(g->option->name, option) != 0) {
            continue;
        }
        int index = profctl_alternative(g->option->argument, g->value);
        FAIL_IF(index < 0, e, PROFD_USAGE, "%s: --%s must be one of %s, not \"%s\"", call->verb->name, option,
                g->option->argument, g->value);
        *out = (size_t)index;
        return PROFD_OK;
    }
    *out = 0;
    return PROFD_OK;
}

enum profd_status profctl_choose_format(const struct profctl_call *call, size_t *out, struct profd_error *e)
{
    TRY(profctl_choose(call, "format", out, e));
    if (call->json) {
        *out = FORMAT_JSON;
    }
    return PROFD_OK;
}

enum profd_status profctl_number(const struct profctl_call *call, const char *option, const char *what,
                                 unsigned long least, unsigned long most, unsigned long *out, struct profd_error *e)
{
    const char *text = profctl_value(call, option);
    char *end = NULL;
    errno = 0;
    const unsigned long n = text ? strtoul(text, &end, 10) : 0;
    FAIL_IF(text && (errno != 0 || *text < '0' || *text > '9' || *end != '\0' || n < least || n > most), e, PROFD_USAGE,
            "%s: --%s \"%s\" is not %s from %lu to %lu", call->verb->name, option, text, what, least, most);
    *out = text ? n : *out;
    return PROFD_OK;
}

/* A verb that works on this machine alone takes only those from COMMON_SOCKET on. */
enum { COMMON_SERVER, COMMON_TOKEN, COMMON_CA, COMMON_JSON, COMMON_SOCKET, COMMON_HELP, COMMON_COUNT };

static const struct profctl_option common[COMMON_COUNT] = {
    [COMMON_SERVER] = {"server", 0, "URL", "unix:/PATH, http://127.0.0.1:PORT or https://HOST[:PORT]"},
    [COMMON_TOKEN] = {"token-file", 0, "FILE", "bearer token for http and https"},
    [COMMON_CA] = {"cacert", 0, "FILE", "certificates of the CAs for https (default: the system's)"},
    [COMMON_JSON] = {"json", 0, NULL, "JSON on stdout"},
    [COMMON_SOCKET] = {"socket", 0, "PATH", "the daemon's Unix socket"},
    [COMMON_HELP] = {"help", 'h', NULL, "print this text"},
};

#define OPTIONS_MAX 32
#define FIRST_LONG 256 /* getopt's value of the first option of a verb */
#define HELP_COLUMN 29 /* where the texts of options begin */

const struct profctl_option *profctl_option_at(const struct profctl_verb *v, size_t i)
{
    const size_t at = i - v->option_count + (v->is_local ? COMMON_SOCKET : 0);
    return i < v->option_count ? &v->options[i] : v->run_alone || at >= COMMON_COUNT ? NULL : &common[at];
}

/* The common option of a word "--NAME" or "--NAME=VALUE"; NULL if it is none. */
static const struct profctl_option *common_find(const char *word)
{
    const size_t n = strcspn(word, "=");
    for (size_t i = 0; i < COMMON_COUNT; i++) {
        if (n == 2 + strlen(common[i].name) && strncmp(word, "--", 2) == 0 &&
            strncmp(word + 2, common[i].name, n - 2) == 0) {
            return &common[i];
        }
    }
    return NULL;
}

enum profd_status profctl_place_verb(int argc, char **argv, struct profd_error *e)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-') {
        const struct profctl_option *o = common_find(argv[at]);
        if (at == 1 && (!strcmp(argv[at], "-h") || !strcmp(argv[at], "-V") || !strcmp(argv[at], "--help") ||
                        !strcmp(argv[at], "--version"))) {
            return PROFD_OK;
        }
        FAIL_IF(!o, e, PROFD_USAGE,
                "\"%s\" must follow the verb; before it only --socket, --server, --token-file, "
                "--cacert and --json may stand",
                argv[at]);
        at += o->argument && !strchr(argv[at], '=') ? 2 : 1;
    }
    if (at > 1 && at < argc) {
        char *verb = argv[at];
        memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof *argv);
        argv[1] = verb;
    }
    return PROFD_OK;
}

/* USAGE and a sentence for an option that getopt_long refused with value, '?' or ':'. */
static enum profd_status option_refuse(const struct profctl_verb *verb, int value, int argc, char **argv,
                                       struct profd_error *e)
{
    const bool by_letter = optopt > 0 && optopt < 256;
    const char letter[3] = {'-', (char)optopt, '\0'};
    const char *word = by_letter ? letter : optind > 0 && optind <= argc && argv[optind - 1] ? argv[optind - 1] : "";
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    struct nearest near = {.word = name + strspn(name, "-")};
    size_t alike = 0;
    const struct profctl_option *o;
    for (size_t i = 0; !by_letter && (o = profctl_option_at(verb, i)) != NULL; i++) {
        alike += strncmp(o->name, near.word, strlen(near.word)) == 0;
        nearest_offer(&near, o->name);
    }
    FAIL_IF(value == ':' || (!by_letter && optopt > 0) || alike > 1, e, PROFD_USAGE,
            "%s: %s \"%s\"; see profctl %s --help", verb->name,
            value == ':' ? "no value given for"
            : alike > 1  ? "more than one option begins with"
                         : "no value may be given for",
            word, verb->name);
    return profd_error_set(e, PROFD_USAGE, "%s: unknown option \"%s\"%s%s%s; see profctl %s --help", verb->name, word,
                           near.best ? " (did you mean --" : "", near.best ? near.best : "", near.best ? "?)" : "",
                           verb->name);
}

enum profd_status profctl_parse(const struct profctl_verb *verb, int argc, char **argv, struct profctl_call *call,
                                bool *help, struct profd_error *e)
{
    struct option longs[OPTIONS_MAX + 1] = {{NULL, 0, NULL, 0}};
    char letters[3 * OPTIONS_MAX];
    const struct profctl_option *o;
    size_t at = 0;
    *call = (struct profctl_call){.verb = verb};
    call->given = calloc((size_t)argc + 1, sizeof *call->given); /* one may be added: side_take */
    FAIL_IF(!call->given, e, PROFD_NO_MEMORY, "no memory for the command line");
    if (verb->has_command) {
        letters[at++] = '+';
    }
    letters[at++] = ':'; /* a missing argument is distinguished */
    for (size_t i = 0; i < OPTIONS_MAX && (o = profctl_option_at(verb, i)) != NULL; i++) {
        longs[i] = (struct option){o->name, o->argument ? required_argument : no_argument, NULL, FIRST_LONG + (int)i};
        if (o->letter) {
            letters[at++] = o->letter;
            letters[at] = ':';
            at += o->argument != NULL;
        }
    }
    letters[at] = '\0';
    opterr = 0;
    optind = 1;
    for (int value; (value = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (value == '?' || value == ':') {
            return option_refuse(verb, value, argc, argv, e);
        }
        size_t i = 0;
        while ((o = profctl_option_at(verb, i)) != NULL && value != FIRST_LONG + (int)i &&
               (value >= FIRST_LONG || value != o->letter)) {
            i++;
        }
        if (o < common || o >= common + COMMON_COUNT) {
            call->given[call->given_count++] = (struct profctl_given){o, optarg ? optarg : ""};
        } else if (o == &common[COMMON_SERVER] || o == &common[COMMON_SOCKET]) {
            const char *prefix = o == &common[COMMON_SOCKET] ? "unix:" : "";
            FAIL_IF(call->server, e, PROFD_USAGE, "--socket and --server: one of them, once");
            const size_t n = strlen(prefix) + strlen(optarg) + 1;
            call->server = malloc(n);
            FAIL_IF(!call->server, e, PROFD_NO_MEMORY, "no memory for the command line");
            (void)snprintf(call->server, n, "%s%s", prefix, optarg);
        } else if (o == &common[COMMON_TOKEN]) {
            call->token_file = optarg;
        } else if (o == &common[COMMON_CA]) {
            call->ca_file = optarg;
        } else if (o == &common[COMMON_JSON]) {
            call->json = true;
        } else {
            *help = true;
            return PROFD_OK;
        }
    }
    call->arguments = argv + optind;
    call->argument_count = (size_t)(argc - optind);
    const char *missing = call->argument_count > 0 ? "an argument is missing"
                          : verb->has_command      ? "no command given"
                                                   : "no argument given";
    FAIL_IF(call->argument_count < verb->arguments_least, e, PROFD_USAGE, "%s: %s; usage: profctl %s [options] %s",
            verb->name, missing, verb->name, verb->arguments);
    FAIL_IF(call->argument_count > verb->arguments_most, e, PROFD_USAGE,
            "%s: unexpected argument \"%s\"; usage: profctl %s [options]%s%s", verb->name,
            call->arguments[verb->arguments_most], verb->name, verb->arguments[0] ? " " : "", verb->arguments);
    return PROFD_OK;
}

void profctl_parse_done(struct profctl_call *call)
{
    free(call->given);
    free(call->server);
}

void profctl_print_help(const struct profctl_verb *verb)
{
    const struct profctl_option *o;
    printf("usage: profctl %s [options]%s%s\n\n%s.\n%s%s%s\noptions:\n", verb->name, verb->arguments[0] ? " " : "",
           verb->arguments, verb->summary, verb->details[0] ? "\n" : "", verb->details,
           strstr(verb->arguments, "PROGRAM|BUILD|EXE")
               ? "\nPROGRAM is a name that `profctl builds` lists, BUILD a build-id or its first characters, at least "
                 "four,\nand EXE an executable file.\n"
               : "");
    for (size_t i = 0; (o = profctl_option_at(verb, i)) != NULL; i++) { /* two lines if the first column is too long */
        const char letter[] = {o->letter ? '-' : ' ', o->letter ? o->letter : ' ', o->letter ? ',' : ' ', '\0'};
        int width = printf("  %s --%s%s%s", letter, o->name, o->argument ? " " : "", o->argument ? o->argument : "");
        bool fits = width < HELP_COLUMN;
        printf("%s%*s%s\n", fits ? "" : "\n", fits ? HELP_COLUMN - width : HELP_COLUMN, "", o->help);
    }
    char heading[32];
    (void)snprintf(heading, sizeof heading, "\n%s\n", verb->name);
    const char *example = strstr((const char *)embed_client_profctl_help_examples_txt, heading);
    printf("\nexamples:\n");
    for (example = example ? example + strlen(heading) : ""; *example == ' '; example += strcspn(example, "\n") + 1) {
        printf("%.*s\n", (int)strcspn(example, "\n"), example);
    }
    printf("\nprofctl-%s(1) describes the verb in full.\n", verb->name);
}
