/* What operators may ask for, and in which words they are told otherwise. */
#include <criterion/criterion.h>
#include <string.h>

#include "requests/admin.h"

Test(requests_admin, verbs_and_their_arguments)
{
    static const char *const build[] = {"abcd"};
    struct admin_request r;
    struct profd_error e;

    cr_assert_eq(admin_parse("delete", build, 1, &r, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(r.verb == ADMIN_DELETE && !strcmp(r.build, "abcd"));
    cr_assert_eq(admin_parse("verify", NULL, 0, &r, &e), PROFD_OK);
    cr_assert(r.verb == ADMIN_VERIFY && !*r.build);
    cr_assert_eq(admin_parse("backup", NULL, 0, &r, &e), PROFD_OK);
    cr_assert_eq(r.verb, ADMIN_BACKUP);
}

Test(requests_admin, what_is_refused_is_named)
{
    static char longest[161];
    static const char *const one[] = {"x"}, *const two[] = {"x", "y"}, *const none[] = {""},
                             *const too_long[] = {longest};
    static const char *const hex[] = {"abc"}, *const empty_name[] = {"=v"}, *const rate[] = {"rate=5"},
                             *const rates[] = {"1", "rate=10001"}, *const words[] = {"1", "rate=ten"},
                             *const many[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
    static const struct {
        const char *verb;
        const char *const *arguments;
        size_t n;
        enum profd_status status;
        const char *words;
    } cases[] = {
        {"stop", NULL, 0, PROFD_METHOD, "\"stop\""},
        {"pause", NULL, 0, PROFD_USAGE, "pause: no process given"},
        {"pause", one, 1, PROFD_USAGE, "\"x\" is neither"},
        {"resume", hex, 1, PROFD_USAGE, "\"abc\" is neither"},
        {"resume", empty_name, 1, PROFD_USAGE, "\"=v\" is neither"},
        {"resume", rate, 1, PROFD_USAGE, "resume: no process given"},
        {"pause", rates, 2, PROFD_USAGE, "\"rate=10001\" is not a rate from 0 to 10000"},
        {"pause", words, 2, PROFD_USAGE, "\"rate=ten\""},
        {"pause", many, 9, PROFD_USAGE, "at most 8 arguments, not 9"},
        {"", NULL, 0, PROFD_METHOD, "\"\""},
        {"Delete", one, 1, PROFD_METHOD, "\"Delete\""},
        {"delete", NULL, 0, PROFD_USAGE, "delete takes 1 argument, not 0"},
        {"delete", two, 2, PROFD_USAGE, "delete takes 1 argument, not 2"},
        {"verify", one, 1, PROFD_USAGE, "verify takes 0 arguments, not 1"},
        {"backup", one, 1, PROFD_USAGE, "backup takes 0 arguments, not 1"},
        {"delete", none, 1, PROFD_USAGE, "0 bytes"},
        {"delete", too_long, 1, PROFD_USAGE, "160 bytes; it must have 1 to 159"},
    };
    memset(longest, 'a', 160);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct admin_request r = {.verb = ADMIN_BACKUP, .build = "untouched"};
        struct profd_error e = {""};

        cr_assert_eq(admin_parse(cases[i].verb, cases[i].arguments, cases[i].n, &r, &e), cases[i].status, "case %zu",
                     i);
        cr_assert_not_null(strstr(e.sentence, cases[i].words), "%s", e.sentence);
        cr_assert_str_eq(r.build, "untouched");
    }
}

Test(requests_admin, live_processes_are_chosen_by_number_label_and_instance)
{
    static const char *const words[] = {"4711", "team=db=1", "00ff", "12345678", "empty=", "rate=250"};
    struct admin_request r;
    struct profd_error e;

    cr_assert_eq(admin_parse("pause", words, 6, &r, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(r.verb == ADMIN_PAUSE && r.processes.selector_count == 5 && r.processes.has_rate &&
              r.processes.rate == 250);
    cr_assert(r.processes.selectors[0].kind == LIVE_PID && r.processes.selectors[0].pid == 4711);
    cr_assert(r.processes.selectors[1].kind == LIVE_LABEL && r.processes.selectors[1].name_size == 4 &&
              !strcmp(r.processes.selectors[1].value, "db=1"));
    cr_assert(r.processes.selectors[2].kind == LIVE_INSTANCE && !strcmp(r.processes.selectors[2].text, "00ff"));
    cr_assert(r.processes.selectors[3].kind == LIVE_INSTANCE); /* no number of a process is that long */
    cr_assert(r.processes.selectors[4].kind == LIVE_LABEL && !*r.processes.selectors[4].value);
    cr_assert_eq(admin_parse("resume", words, 1, &r, &e), PROFD_OK);
    cr_assert(r.verb == ADMIN_RESUME && r.processes.selector_count == 1 && !r.processes.has_rate);
}
