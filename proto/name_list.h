/* Lists of functions' names, as people type them: parse,std::map<int, int>::at,operator<. */
#ifndef PROFD_PROTO_NAME_LIST_H
#define PROFD_PROTO_NAME_LIST_H

#include <stddef.h>

/* Bytes of the first name in a list of n bytes: up to the first comma outside of parentheses and angle brackets, where
 * those of an operator's name are none. O(n). */
size_t name_list_end(const char *text, size_t n);

#endif
