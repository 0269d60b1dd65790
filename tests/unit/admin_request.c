/* What operators may ask for, and in which words they are told otherwise. */
#include <criterion/criterion.h>
#include <string.h>

#include "admin/request.h"

Test(admin_request, verbs_and_their_arguments)
{
    static const char *const build[] = {"abcd"};
    struct request r;
    struct profd_error e;

    cr_assert_eq(request_parse("delete", build, 1, &r, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(r.verb == REQUEST_DELETE && !strcmp(r.build, "abcd"));
    cr_assert_eq(request_parse("verify", NULL, 0, &r, &e), PROFD_OK);
    cr_assert(r.verb == REQUEST_VERIFY && !*r.build);
    cr_assert_eq(request_parse("backup", NULL, 0, &r, &e), PROFD_OK);
    cr_assert_eq(r.verb, REQUEST_BACKUP);
}

Test(admin_request, what_is_refused_is_named)
{
    static char longest[161];
    static const char *const one[] = {"x"}, *const two[] = {"x", "y"}, *const none[] = {""}, *const too_long[] = {longest};
    static const struct {
        const char *verb;
        const char *const *arguments;
        size_t n;
        enum profd_status status;
        const char *words;
    } cases[] = {
        {"pause", NULL, 0, PROFD_METHOD, "\"pause\""},
        {"", NULL, 0, PROFD_METHOD, "\"\""},
        {"Delete", one, 1, PROFD_METHOD, "\"Delete\""},
        {"delete", NULL, 0, PROFD_USAGE, "delete takes 1 argument, not 0"},
        {"delete", two, 2, PROFD_USAGE, "delete takes 1 argument, not 2"},
        {"verify", one, 1, PROFD_USAGE, "verify takes 0 arguments, not 1"},
        {"backup", one, 1, PROFD_USAGE, "backup takes 0 arguments, not 1"},
        {"delete", none, 1, PROFD_USAGE, "0 bytes"},
        {"delete", too_long, 1, PROFD_USAGE, "160 bytes: it has 1 to 159"},
    };
    memset(longest, 'a', 160);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct request r = {.verb = REQUEST_BACKUP, .build = "untouched"};
        struct profd_error e = {""};

        cr_assert_eq(request_parse(cases[i].verb, cases[i].arguments, cases[i].n, &r, &e), cases[i].status, "case %zu", i);
        cr_assert_not_null(strstr(e.sentence, cases[i].words), "%s", e.sentence);
        cr_assert_str_eq(r.build, "untouched");
    }
}
