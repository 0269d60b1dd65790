/* Words in texts that people read and type, the same in the daemon's texts, its log and profctl. */
#ifndef PROFD_PROTO_NOUN_H
#define PROFD_PROTO_NOUN_H

#include <stddef.h>
#include <stdint.h>

/* Returns the noun for a number: "tick" for 1 tick, "ticks" for 0 and 2 ticks. */
static inline const char *noun_for(uint64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

/* Lists of functions' names are typed as parse,std::map<int, int>::at,operator<. Returns the bytes of the first name in
 * a list of n bytes: up to the first comma outside of parentheses and angle brackets, where those of an operator's name
 * are none. O(n). */
size_t noun_list_end(const char *text, size_t n);

#endif
