/* Exports whose executables are not on this machine: they stay as they are. What is no export is refused. */
#include "profctl/profctl.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static enum profd_status fill_callgrind(const char *text, char **out, size_t *size, struct profd_error *e)
{
    struct export_objects objects = {0};
    char *body = strdup(text);
    FILE *f = open_memstream(out, size);
    const enum profd_status status = export_callgrind_fill(&objects, body, f, e);
    fclose(f);
    free(body);
    export_objects_done(&objects);
    return status;
}

static enum profd_status fill_pprof(const void *body, size_t n, char **out, size_t *size, struct profd_error *e)
{
    struct export_objects objects = {0};
    FILE *f = open_memstream(out, size);
    const enum profd_status status = export_pprof_fill(&objects, body, n, f, e);
    fclose(f);
    export_objects_done(&objects);
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

/* Strings "", "f" and "/nowhere"; function 1 is "f"; mapping 1 is the file; location 1 is at 0x10, in f. */
static const char PROFILE[] = "\x1a\x04\x08\x01\x28\x02"
                              "\x22\x0a\x08\x01\x10\x01\x18\x10\x22\x02\x08\x01"
                              "\x2a\x04\x08\x01\x10\x01"
                              "\x32\x00"
                              "\x32\x01"
                              "f"
                              "\x32\x08"
                              "/nowhere";

Test(export_pprof, without_executables_nothing_changes)
{
    struct profd_error e;
    char *out;
    size_t size;
    cr_assert_eq(fill_pprof(PROFILE, sizeof PROFILE - 1, &out, &size, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(size == sizeof PROFILE - 1 && memcmp(out, PROFILE, size) == 0, "%zu bytes, not %zu", size,
              sizeof PROFILE - 1);
    free(out);
}

/* Cut anywhere inside a field, it is refused; between two fields it is a shorter profile. */
Test(export_pprof, a_part_of_a_profile_is_refused)
{
    static const size_t ENDS[] = {0, 6, 18, 24, 26, 29};
    for (size_t n = 0, k = 0; n < sizeof PROFILE - 1; n++) {
        struct profd_error e;
        char *out;
        size_t size;
        const enum profd_status status = fill_pprof(PROFILE, n, &out, &size, &e);
        const bool whole = k < sizeof ENDS / sizeof *ENDS && ENDS[k] == n;
        cr_assert_eq(status == PROFD_OK, whole, "%zu bytes: %d", n, status);
        cr_assert(whole || status == PROFD_MALFORMED);
        k += whole;
        free(out);
    }
}
