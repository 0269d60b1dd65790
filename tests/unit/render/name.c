/* Names shortened for people: what goes, what stays, and that different functions keep different names. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "render/render_internal.h"

static void is(const char *name, unsigned depth, const char *wanted)
{
    struct buffer b;
    buffer_init(&b, 1 << 20);
    name_add_short(&b, name, depth);
    buffer_add_char(&b, '\0');
    cr_assert_str_eq(b.data, wanted);
    buffer_done(&b);
}

Test(render_name, short_names)
{
    is("main", 0, "main");
    is("std::vector<int, std::allocator<int> >::push_back(int const&)", 0, "std::vector<…>::push_back(int const&)");
    is("std::vector<int, std::allocator<int> >::push_back(int const&)", 1, "std::vector<int>::push_back(int const&)");
    is("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::append(char const*)", 0,
       "std::string::append(char const*)");
    is("std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, int, "
       "std::less<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >, "
       "std::allocator<std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > "
       "const, int> > >::find()",
       1, "std::map<std::string, int, std::less<…>>::find()");
    is("std::__cxx11::list<T*, std::allocator<T*> >::sort()", 1, "std::list<T*>::sort()");
    is("std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char>>::size() const", 0,
       "std::string::size() const");
    is("f(std::__cxx11::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >)", 0,
       "f(std::wstring)");
    is("void f<>()", 0, "void f<>()");
}

Test(render_name, operators_are_no_brackets)
{
    is("bool operator< <int>(A<int> const&, A<int> const&)", 0, "bool operator< <…>(A<…> const&, A<…> const&)");
    is("std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)", 0,
       "std::ostream& std::operator<< <…>(std::ostream&, char const*)");
    is("A::operator->() const", 0, "A::operator->() const");
    is("A<int>::operator>>(int)", 0, "A<…>::operator>>(int)");
    is("A::operator<=>(B<C<1> >) const", 0, "A::operator<=>(B<…>) const");
    is("my_operator<int>()", 0, "my_operator<…>()");
    is("decltype (x->y) f<int, (A)1>(int)", 0, "decltype (x->y) f<…>(int)");
    is("g<(anonymous namespace)::T, {lambda(int)#1}>::operator()(int) const", 1,
       "g<(anonymous namespace)::T, {lambda(int)#1}>::operator()(int) const");
}

Test(render_name, what_is_not_well_formed_is_copied)
{
    is("a<b", 0, "a<b");
    is("a<b(c>", 0, "a<b(c>");
    is("<cycle 1>", 0, "<cycle 1>");
    is("a>", 0, "a>");
    char deep[2001];
    memset(deep, 0, sizeof deep);
    for (int i = 0; i < 1000; i++) {
        memcpy(deep + 2 * i, "a<", 2);
    }
    is(deep, 0, deep);
    is(deep, 3, deep);
}

Test(render_name, different_functions_keep_different_names)
{
    struct arena *a = arena_new(0);
    static const struct report_function f[] = {
        {.name = "v<int, std::allocator<int> >::push(int)", .raw = "_Z1"},
        {.name = "v<long, std::allocator<long> >::push(int)", .raw = "_Z2"},
        {.name = "w<a<int> >::f()", .raw = "_Z3"},
        {.name = "w<a<long> >::f()", .raw = "_Z4"},
        {.name = "u<int>::g()", .raw = "_Z5"},
        {.name = "u<int>::g()", .raw = "_Z5"},     /* in another build: the same name is no collision */
        {.name = "less<int>", .raw = "less<int>"}, /* not C++ */
    };
    struct report r = {.function_count = 7, .functions = f};
    const char **names = name_short_functions(&r, a);
    cr_assert_not_null(names);
    static const char *const wanted[] = {"v<int>::push(int)", "v<long>::push(int)", "w<a<int>>::f()", "w<a<long>>::f()",
                                         "u<…>::g()",         "u<…>::g()",          "less<int>"};
    for (int i = 0; i < 7; i++) {
        cr_assert_str_eq(names[i], wanted[i]);
    }
    arena_free(a);
}
