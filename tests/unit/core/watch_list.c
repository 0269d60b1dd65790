/* The watch list of a configuration: what a line means, and what is refused in which words. */
#include "core/watch_list.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct watch_list parse(struct arena *a, const char *text)
{
    struct watch_list list;
    struct profd_error e = {0};
    cr_assert_eq(watch_list_parse(text, a, &list, &e), PROFD_OK, "%s: %s", text, e.sentence);
    return list;
}

static void refuse(const char *text, const char *sentence)
{
    struct arena *a = arena_new(0);
    struct watch_list list = {.count = 77};
    struct profd_error e = {0};
    cr_assert_eq(watch_list_parse(text, a, &list, &e), PROFD_CONFIG, "%s", text);
    cr_assert_str_eq(e.sentence, sentence);
    cr_assert_eq(list.count, 77, "untouched on failure");
    arena_free(a);
}

Test(watch_list, a_line_is_labels_and_functions)
{
    struct arena *a = arena_new(0);
    struct watch_list list =
        parse(a, "service=api:parse,render\n  service=shop , zone=eu : std::map<int, int>::at(int, "
                 "int) , operator<  ");
    cr_assert_eq(list.count, 2);
    const struct watch *w = &list.watches[0];
    cr_assert_str_eq(w->name, "service=api");
    cr_assert(w->label_count == 1 && w->function_count == 2);
    cr_assert_str_eq(w->labels[0], "service=api");
    cr_assert_str_eq(w->functions[0], "parse");
    cr_assert_str_eq(w->functions[1], "render");
    w = &list.watches[1];
    cr_assert(w->label_count == 2 && w->function_count == 2);
    cr_assert_str_eq(w->labels[0], "service=shop");
    cr_assert_str_eq(w->labels[1], "zone=eu");
    cr_assert_str_eq(w->functions[0], "std::map<int, int>::at(int, int)");
    cr_assert_str_eq(w->functions[1], "operator<");
    cr_assert_eq(parse(a, NULL).count, 0);
    cr_assert_eq(parse(a, "").count, 0);
    arena_free(a);
}

Test(watch_list, what_is_no_watch_is_refused)
{
    static const char form[] = "not NAME=VALUE[,NAME=VALUE]:FUNCTION[,FUNCTION] of at most 1024 bytes";
    static const char *const lines[] = {"parse", ":parse", "service=api:", ":", "\nservice=api:f"};
    char text[200];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(text, sizeof text, "watch is \"%.*s\", %s", (int)strcspn(lines[i], "\n"), lines[i], form);
        refuse(lines[i], text);
    }
    refuse("service:f", "watch \"service\": \"service\" is not NAME=VALUE");
    refuse("service=:f", "watch \"service=\": \"service=\" is not NAME=VALUE");
    refuse("=api:f", "watch \"=api\": \"=api\" is not NAME=VALUE");
    refuse("service!=api:f", "watch \"service!=api\": \"service!=api\" is not NAME=VALUE");
    refuse("service=~a:f", "watch \"service=~a\": \"service=~a\" is not NAME=VALUE");
    refuse("a=1,,b=2:f", "watch \"a=1,,b=2\": \"\" is not NAME=VALUE");
    refuse("a=1:f,,g", "watch \"a=1\": a function has between 1 and 256 bytes");
    refuse("a=1:f,g,f", "watch \"a=1\" names f twice");
    refuse("a=1:f\na=1:g", "watch \"a=1\" occurs twice; name all functions in one");
}

/* n items, item(i) = before + i, joined by between. */
static char *make_items(const char *begin, const char *before, const char *between, unsigned n)
{
    char *text = calloc(1, 100 + n * 40);
    strcpy(text, begin);
    for (unsigned i = 0; i < n; i++) {
        sprintf(text + strlen(text), "%s%s%u", i > 0 ? between : "", before, i);
    }
    return text;
}

Test(watch_list, limits)
{
    struct arena *a = arena_new(0);
    char *functions = make_items("a=1:", "f", ",", WATCH_LIST_FUNCTIONS),
         *more = make_items("a=1:", "f", ",", WATCH_LIST_FUNCTIONS + 1);
    cr_assert_eq(parse(a, functions).watches[0].function_count, 20);
    refuse(more, "watch \"a=1\" has more than 20 functions");
    free(functions);
    free(more);
    char *labels = make_items("", "a=", ",", WATCH_LIST_LABELS), *line = calloc(1, 1000);
    sprintf(line, "%s:f", labels);
    cr_assert_eq(parse(a, line).watches[0].label_count, 8);
    sprintf(line, "%s,b=1:f", labels);
    refuse(line, "watch \"a=0,a=1,a=2,a=3,a=4,a=5,a=6,a=7,b=1\" has more than 8 labels");
    free(labels);
    free(line);
    char *watches = calloc(1, 1000);
    strcpy(watches, "x=0:f");
    for (unsigned i = 1; i < WATCH_LIST_MOST; i++) {
        sprintf(watches + strlen(watches), "\nx=%u:f", i);
    }
    cr_assert_eq(parse(a, watches).count, 20);
    strcat(watches, "\nx=20:f");
    refuse(watches, "watch occurs more than 20 times");
    free(watches);
    arena_free(a);
}

Test(watch_list, a_function_is_meant_with_or_without_its_parameters)
{
    cr_assert(watch_list_means("parse", "parse"));
    cr_assert(watch_list_means("parse", "parse(int)"));
    cr_assert(watch_list_means("parse(int)", "parse(int)"));
    cr_assert(!watch_list_means("parse", "parser"));
    cr_assert(!watch_list_means("parse", "parse<int>(int)"));
    cr_assert(!watch_list_means("parse(int)", "parse"));
    cr_assert(!watch_list_means("parse", ""));
}
