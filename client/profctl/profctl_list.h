/* Lists: one way from the daemon's rows to text, JSON and comma-separated values. */
#ifndef PROFD_CLIENT_PROFCTL_LIST_H
#define PROFD_CLIENT_PROFCTL_LIST_H

#include "profctl/profctl_ask.h"

#define LIST_CELL 224
#define LIST_COLUMNS_MOST 16
#define LIST_FIT 1000000 /* a width: as wide as its cells, up to LIST_FIT_MOST, aligned to the left */
#define LIST_FIT_MOST 40

struct list_column {
    const char *title;
    int width;         /* as printf's: negative is aligned to the left; 0 for the last column; or LIST_FIT */
    const char *field; /* member of the row */
    /* What the row shows of the member: text of the row, or out. NULL: the list's tail prints it. */
    const char *(*cell)(json_t *row, const char *field, char out[LIST_CELL]);
    bool cut; /* to its width */
};

/* The usual cells. */
const char *cell_text(json_t *row, const char *field, char out[LIST_CELL]);
const char *cell_base(json_t *row, const char *field, char out[LIST_CELL]); /* of a path its last part */
const char *cell_dash(json_t *row, const char *field, char out[LIST_CELL]); /* text; "-" for none */
const char *cell_number(json_t *row, const char *field, char out[LIST_CELL]);
const char *cell_amount(json_t *row, const char *field, char out[LIST_CELL]); /* show_amount */
const char *cell_yes(json_t *row, const char *field, char out[LIST_CELL]);    /* "yes" or "no" */
const char *cell_join(json_t *row, const char *field, char out[LIST_CELL]);   /* a list of texts */
/* A number of calls: "~12" where calls were sampled and not counted, "-" where none was sampled either. */
const char *cell_calls(json_t *row, const char *field, char out[LIST_CELL]);
/* The same where the row's member calls_sampled tells it; "-" for none in any case. */
const char *cell_counted(json_t *row, const char *field, char out[LIST_CELL]);

/* The titles, then a line for each row. tail: prints what follows the last column; NULL: nothing does. */
void list_print_table(json_t *rows, const struct list_column *columns, size_t n, void (*tail)(json_t *row));

/* Prints the members of an object, separated by commas, as RFC 4180 has it: text as csv_print_text, numbers with all
 * their digits, true and false as 1 and 0, a list of texts as one, with spaces between them, nothing for null or for a
 * member that is not there. members: their names, separated by commas. */
void csv_print_row(const json_t *row, const char *members);
/* Prints the text to stdout in quotes, with a ' before what a spreadsheet would read as a formula: text that begins
 * with = + - @ or '. */
void csv_print_text(const char *text);

struct listing;
/* A list that a verb shows. */
struct list {
    const char *route;      /* with {} where the verb's first argument is a build */
    const char *limit;      /* rows of a page, or of the text where --limit is not given */
    bool limit_is_text;     /* JSON and CSV have all rows */
    bool is_one_page;       /* the rows after --limit stay with the daemon */
    const char *parameters; /* options that are parameters, "since|until" */
    const char *csv;        /* members of a row, which are the header, too */
    const struct list_column *columns;
    size_t column_count;
    const char *empty; /* what is printed instead of a table without rows; NULL: the titles are */
    void (*tail)(json_t *row);
    /* Each of these may be NULL: checks the options, and adds more parameters; judges the rows, and prepares them for
     * the format; prints the text in place of the table, and CSV where csv is NULL. */
    enum profd_status (*ask)(struct listing *l, struct profd_error *e);
    enum profd_status (*prepare)(struct listing *l, struct profd_error *e);
    void (*print)(struct listing *l);
};

/* A list that is being shown. */
struct listing {
    struct list list; /* a copy: ask and prepare may change it */
    const struct profctl_call *call;
    size_t format;
    struct ask_target target;
    struct answer answer;
};

/* Asks, and prints in the format of the call. */
enum profd_status list_run(const struct profctl_call *call, const struct list *list, struct profd_error *e);

#endif
