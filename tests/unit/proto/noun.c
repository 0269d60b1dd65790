/* Where a name ends in a list of names. */
#include "proto/noun.h"

#include <criterion/criterion.h>
#include <string.h>

static void check(const char *list, const char *first)
{
    const size_t n = noun_list_end(list, strlen(list));
    cr_assert(n == strlen(first) && memcmp(list, first, n) == 0, "%s: %zu bytes", list, n);
}

Test(noun, a_comma_ends_a_name)
{
    check("", "");
    check("parse", "parse");
    check(",parse", "");
    check("parse,render", "parse");
    check("parse(int, int),render", "parse(int, int)");
    check("ns::g<int, int>,h", "ns::g<int, int>");
    check("f(g<a, b>, c)::lambda,h", "f(g<a, b>, c)::lambda");
}

Test(noun, brackets_of_operators_enclose_nothing)
{
    check("operator<,parse", "operator<");
    check("operator<<,parse", "operator<<");
    check("a::operator->,parse", "a::operator->");
    check("operator<=>,parse", "operator<=>");
    check("operator(),parse", "operator()");
    check("operator()(int, int),parse", "operator()(int, int)");
    check("operator,(a, b),parse", "operator,(a, b)");
    check("operator<<(std::ostream&, int),parse", "operator<<(std::ostream&, int)");
    check("operators<int, int>,parse", "operators<int, int>");
    check("my_operator<int, int>,parse", "my_operator<int, int>");
    check("operator", "operator");
    check("operator,parse", "operator");
    check("operator new,parse", "operator new");
}

Test(noun, text_after_the_length_is_not_read)
{
    cr_assert_eq(noun_list_end("operator<,parse", 8), 8);
    cr_assert_eq(noun_list_end("a,b", 1), 1);
    cr_assert_eq(noun_list_end("operator()", 9), 9);
}
