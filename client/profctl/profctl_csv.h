/* Comma-separated values, RFC 4180. */
#ifndef PROFD_CLIENT_PROFCTL_CSV_H
#define PROFD_CLIENT_PROFCTL_CSV_H

#include <jansson.h>
#include <stddef.h>

/* Prints the text to stdout in quotes, with a ' before what a spreadsheet would read as a formula: text that begins
 * with = + - @ or '. */
void csv_print_text(const char *text);
/* Prints the fields of an object, separated by commas: text as above, numbers with all their digits, true and false
 * as 1 and 0, a list of texts as one, with spaces between them, nothing for null or for a field that is not there. */
void csv_print_fields(const json_t *row, const char *const *fields, size_t count);
/* Prints a list of objects, the names of their fields first. */
void csv_print_rows(const json_t *list, const char *const *fields, size_t count);

#endif
