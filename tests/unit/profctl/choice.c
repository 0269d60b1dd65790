/* Lists of values, as "auto|always|never": one list is what help shows, completion offers and the verbs accept. */
#include <criterion/criterion.h>
#include <string.h>

#include "import/import_any.h"
#include "profctl/profctl.h"

Test(profctl_choice, a_word_is_found_by_its_whole_name)
{
    cr_assert_eq(profctl_alternative("auto|always|never", "auto"), 0);
    cr_assert_eq(profctl_alternative("auto|always|never", "never"), 2);
    cr_assert_eq(profctl_alternative("auto|always|never", "al"), -1);
    cr_assert_eq(profctl_alternative("auto|always|never", "auto|always"), -1);
    cr_assert_eq(profctl_alternative("auto|always|never", ""), -1);
    cr_assert_eq(profctl_alternative("", "auto"), -1);
}

Test(profctl_choice, the_last_value_of_an_option_counts)
{
    static const struct profctl_option options[] = {{"color", 0, "auto|always|never", ""}, {"sort", 0, "a|b", ""}};
    static const struct profctl_verb verb = {.name = "report"};
    struct profctl_given given[] = {{&options[0], "never"}, {&options[1], "b"}, {&options[0], "always"}};
    struct profctl_call call = {.verb = &verb, .given = given, .given_count = 3};
    struct profd_error e = {""};
    size_t index = 7;
    cr_assert_eq(profctl_choose(&call, "color", &index, &e), PROFD_OK);
    cr_assert_eq(index, 1);
    cr_assert_eq(profctl_choose(&call, "view", &index, &e), PROFD_OK);
    cr_assert_eq(index, 0, "what is not given is the first");
    given[2].value = "sometimes";
    cr_assert_eq(profctl_choose(&call, "color", &index, &e), PROFD_USAGE);
    cr_assert_str_eq(e.sentence, "report: --color must be one of auto|always|never, not \"sometimes\"");
}

Test(profctl_choice, formats_of_files_stand_in_the_order_of_their_enum)
{
    cr_assert_eq(profctl_alternative(IMPORT_FORMATS, "auto"), IMPORT_AUTO);
    cr_assert_eq(profctl_alternative(IMPORT_FORMATS, "gmon"), IMPORT_GMON);
    cr_assert_eq(profctl_alternative(IMPORT_FORMATS, "pprof"), IMPORT_PPROF);
    cr_assert_eq(profctl_alternative(IMPORT_FORMATS, "callgrind"), IMPORT_CALLGRIND);
    cr_assert_eq(profctl_alternative(IMPORT_FORMATS, "perf"), IMPORT_PERF);
}
