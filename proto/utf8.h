/* UTF-8 as RFC 3629 defines it: shortest form, no surrogates, up to U+10FFFF. */
#ifndef PROFD_PROTO_UTF8_H
#define PROFD_PROTO_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that text begins with (1–4); 0 if none of the n bytes or no valid character is there. */
size_t utf8_length(const uint8_t *text, size_t n);

/* True if all n bytes are valid characters other than NUL. O(n). */
bool utf8_valid(const uint8_t *text, size_t n);

/* Makes NUL-terminated text from strangers fit for terminals, logs and JSON: bytes that are not UTF-8 and
 * control characters (C0, DEL, C1) become '?', in place. O(n). */
void utf8_scrub(char *text);

#endif
