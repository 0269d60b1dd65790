/* Lists and objects of the daemon's JSON. */
#ifndef PROFD_CLIENT_PROFCTL_ROWS_H
#define PROFD_CLIENT_PROFCTL_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profctl/profctl_ask.h"

/* Rows of all pages of a list. */
struct rows;

/* Fetches the target page by page. */
enum profd_status rows_read(struct profd_conn *c, const struct ask_target *t, struct rows **out, struct profd_error *e);
/* One row: the object that the target's answer is. */
enum profd_status rows_read_object(struct profd_conn *c, const struct ask_target *t, struct rows **out,
                                   struct profd_error *e);
/* The rows of a list that is one page, and a document of its own as one row. */
enum profd_status rows_parse(const char *text, size_t n, struct rows **out, struct profd_error *e);
enum profd_status rows_parse_object(const char *text, size_t n, struct rows **out, struct profd_error *e);
/* Accepts NULL. */
void rows_free(struct rows *r);
size_t rows_count(const struct rows *r);
/* The rows as a list of JSON, which lives as long as r. */
const json_t *rows_list(const struct rows *r);
/* Fields of row i; "", 0 or false where there is no such field. Text is fit for a terminal, and lives as long as r. */
const char *rows_text(const struct rows *r, size_t i, const char *field);
/* An object of strings as "name=value name=value". */
const char *rows_pairs(const struct rows *r, size_t i, const char *field);
/* A list of strings as "one, two", cut to size. */
void rows_join(const struct rows *r, size_t i, const char *field, char *out, size_t size);
uint64_t rows_number(const struct rows *r, size_t i, const char *field);
double rows_real(const struct rows *r, size_t i, const char *field);
bool rows_flag(const struct rows *r, size_t i, const char *field);
/* Sets a field of all rows. */
void rows_set_flag(struct rows *r, const char *field, bool value);
/* The number of calls of a row as people read it: "~12" where calls were sampled and not counted, "-" where
 * none was sampled either. */
void rows_calls(const struct rows *r, size_t i, char *out, size_t size);
/* {"rows":[…]} with all rows to stdout: the daemon's own bytes where one page holds them. */
enum profd_status rows_print_json(const struct rows *r, struct profd_error *e);

/* Sorts by a field, descending numbers or ascending text, equal rows in the order they had. O(n log n). */
enum profd_status rows_sort(struct rows *r, const char *field, bool descending, struct profd_error *e);

#endif
