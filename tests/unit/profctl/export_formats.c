/* Exports whose executables are not on this machine: they stay as they are. What is no export is refused. */
#include "profctl/profctl.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static enum profd_status fill_callgrind(const char *text, char **out, size_t *size, struct profd_error *e)
{
    char *body = strdup(text);
    FILE *f = open_memstream(out, size);
    struct arena *a = arena_new(0);
    const enum profd_status status = export_lines_fill(a, NULL, body, f, e);
    arena_free(a);
    fclose(f);
    free(body);
    return status;
}

Test(export_callgrind, without_executables_nothing_changes)
{
    static const char text[] = "# callgrind format\nversion: 1\npositions: instr line\nevents: us\n\n"
                               "ob=(1) /nowhere/program\nfl=(1) a.c\nfn=(1) main\n0x10 0 5\n"
                               "cob=(2) /nowhere/library\ncfi=(2) b.c\ncfn=(2) callee\ncalls=3 0x20 0\n0x14 0 7\n\n"
                               "ob=(2)\nfl=(2)\nfn=(2)\n0x20 0 7\n\ntotals: 12\n";
    struct profd_error e;
    char *out;
    size_t size;
    cr_assert_eq(fill_callgrind(text, &out, &size, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_str_eq(out, text);
    free(out);
}

Test(export_callgrind, a_line_of_something_else_is_refused)
{
    struct profd_error e;
    char *out;
    size_t size;
    cr_assert_eq(fill_callgrind("fn=(1) f\n0x10\n", &out, &size, &e), PROFD_MALFORMED);
    cr_assert_str_eq(e.sentence, "\"0x10\" is no cost line");
    free(out);
}
