/* C++ names without what a reader of numbers does not need. Internal to render. */
#ifndef PROFD_RENDER_NAME_SHORT_H
#define PROFD_RENDER_NAME_SHORT_H

#include <stdbool.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/report.h"

#define NAME_SHORT_WHOLE 8u /* depth at which a name is left whole */

/* Appends a demangled C++ name. Template arguments more than `depth` levels deep become "<…>"; std::__cxx11:: and
 * libc++'s std::__1:: become std::, std::basic_string<char, …> and <wchar_t, …> become std::string and std::wstring,
 * and an argument that is a std::allocator goes. Text that is no well-formed name is copied. O(length). */
void name_add_short(struct buffer *out, const char *name, unsigned depth);

/* n names, shortened: those of C++ to depth 0, and deeper where two different names would become equal. In the arena;
 * the given string where nothing changes. NULL when exhausted. O(total length · log n), for colliding names times
 * NAME_SHORT_WHOLE. */
const char **name_short_list(const char *const *whole, const bool *cplusplus, uint32_t n, struct arena *a);

/* The same for the functions of a report, by position; symbols that begin with _Z are C++. */
const char **name_short_functions(const struct report *report, struct arena *a);

#endif
