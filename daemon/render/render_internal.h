/* What the formats share. Private to render/.
 *
 * formats.c has the table of formats. select.c decides which entries are shown, stacks.c makes a tree of callers and
 * callees, name.c and amount.c make names and numbers that people read, and json_write.c writes pieces of JSON. */
#ifndef PROFD_RENDER_RENDER_INTERNAL_H
#define PROFD_RENDER_RENDER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/report.h"
#include "proto/report_format.h"
#include "proto/status.h"
#include "render/render.h"

/* Pieces of JSON written straight into a buffer: a tree of values costs more than the whole report. Internal to render.
 */

/* Appends a string literal. */
#define JSON_ADD(out, literal) buffer_add((out), (literal), sizeof(literal) - 1)

/* Writes the comma that separates what follows from the value before it; none at the beginning of an object or list.
 * All functions below do so themselves. */
void json_next(struct buffer *out);
/* Begin an object or a list, which JSON_ADD of "}" or "]" ends. key NULL: an element of a list. */
void json_begin(struct buffer *out, const char *key);
void json_list(struct buffer *out, const char *key);
/* A string as an element of a list. */
void json_add_item(struct buffer *out, const char *text);

/* A member of a row as a field of an object. JSON_FIELD finds the kind by the member's type, JSON_AS names it. */
struct json_field {
    const char *key;
    uint16_t at;
    enum json_kind {
        JSON_UINT32,
        JSON_UINT64,
        JSON_DOUBLE,
        JSON_BOOL,
        JSON_TIME, /* int64_t: ns since the epoch */
        JSON_TEXT,
        JSON_CHARS,       /* an array of characters */
        JSON_NAMED,       /* a text; "" becomes null */
        JSON_ADDRESS,     /* uint64_t */
        JSON_SECONDS,     /* int64_t: ns, shown as whole seconds */
        JSON_NANOSECONDS, /* uint64_t: ns, shown as seconds */
        JSON_KNOWN,       /* double; null if it is negative */
        JSON_POSITIVE,    /* double; null unless it is positive */
        JSON_EXACT,       /* uint32_t: message_inexact bits, as json_add_exact shows them; no key */
        JSON_BY           /* add appends one or more fields of the row */
    } kind;
    void (*add)(struct buffer *out, const char *key, const void *row);
};
/* clang-format off */
#define JSON_FIELD(type, key, member)                                                              \
    {key, offsetof(type, member), _Generic(((type *)NULL)->member,                                 \
        uint32_t: JSON_UINT32, uint64_t: JSON_UINT64, double: JSON_DOUBLE, bool: JSON_BOOL,        \
        int64_t: JSON_TIME, const char *: JSON_TEXT), NULL}
/* clang-format on */
#define JSON_AS(type, key, member, as)                                                                                 \
    {                                                                                                                  \
        key, offsetof(type, member), as, NULL                                                                          \
    }
#define JSON_WITH(key, function)                                                                                       \
    {                                                                                                                  \
        key, 0, JSON_BY, function                                                                                      \
    }
#define JSON_COUNT_OF(fields) (sizeof(fields) / sizeof *(fields))
/* Appends the fields of a row. */
void json_add_fields(struct buffer *out, const struct json_field *fields, size_t count, const void *row);
/* Appends n rows, each of this size, as objects. lines: each begins a line. */
void json_add_rows(struct buffer *out, bool lines, const struct json_field *fields, size_t count, const void *rows,
                   size_t n, size_t size);

/* Each appends "key":value; a key is plain ASCII. */
void json_add_count(struct buffer *out, const char *key, uint64_t value); /* and "key_str" beyond 2^53 */
void json_add_number(struct buffer *out, const char *key, double value);
/* null where the value is not known, and for a value that no JSON number has. */
void json_add_known(struct buffer *out, const char *key, double value, bool known);
/* self_seconds, children_seconds and total_seconds, in the unit of the report's dimension. */
void json_add_times(struct buffer *out, double self, double children);
void json_add_text(struct buffer *out, const char *key, const char *text); /* NULL becomes null */
void json_add_flag(struct buffer *out, const char *key, bool value);
void json_add_time(struct buffer *out, const char *key, int64_t nanoseconds);    /* 0 becomes null */
void json_add_seconds(struct buffer *out, const char *key, int64_t nanoseconds); /* whole ones */
/* "window":{"since":…,"until":…}: the edges that were used. */
void json_add_window(struct buffer *out, int64_t since, int64_t until);
void json_add_address(struct buffer *out, const char *key, uint64_t address); /* "0x401230" */
/* `"exact":…,"inexact_reasons":[…]` from message_inexact bits. */
void json_add_exact(struct buffer *out, uint32_t inexact);
/* `"inexact_meanings":[…]`: sentences, in the order of the reasons. */
void json_add_meanings(struct buffer *out, uint32_t inexact);
/* `"calls_exact":…,"ticks_exact":…`: which of the two the reasons concern. */
void json_add_exact_parts(struct buffer *out, uint32_t inexact);

/* Appends JSON that has the escapes of RFC 8259: those that reports have besides are added. */
void json_add_document(struct buffer *out, const char *text, size_t n);

/* Names that are safe on a terminal and distinct. Internal to render. */

/* Appends text as utf8_escape shows it: nothing in it moves a cursor, reorders a line or is invisible. */
void name_add_safe(struct buffer *out, const char *text);
/* The same as a string of the arena; text itself when nothing needs spelling out. */
const char *name_make_safe(struct arena *a, const char *text);
/* What follows the last '/'. */
const char *name_find_base(const char *path);

struct name_list {
    const char *const *text; /* one per function of the report */
    const uint32_t *length;
};

/* Safe names of all functions, shortened if is_short; those of the same name get " (FILE)", else "
 * (BUILD)" when builds differ, and " [0xADDRESS]" where that does not tell them apart either. O(total length). */
void name_list_make(const struct report *report, bool is_short, struct arena *a, struct name_list *out);

/* C++ names without what a reader of numbers does not need. Internal to render. */

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

/* The answer of a comparison in words. Internal to render. */

/* Returns a sentence in the arena that says what changed: first the CPU time of a process, then the functions that only
 * one side has, with DIFF_ALONE_LEAST of its time, then other changes by the metric of diff_lead, the largest share
 * first, then how many probably changed. It says that no function changed only if none is new, gone, changed or
 * probably changed. */
const char *diff_sentence(const struct render_diff *in);
/* The metric that the sentence describes: the share of self time, or else the first one that could be compared. */
enum diff_metric diff_lead(const struct render_diff *in);
/* Returns the verdict of a row in a few words such as "new" or "probably slower". */
const char *diff_words(const struct render_diff *in, enum diff_metric metric, const struct diff_item *x);

/* Times and shares as people read them, and their widths in tables. What is above 0 never reads 0. */

/* Adds value with two decimals, right-aligned in at least width bytes: "1.94"; "<0.01" for what is above 0 and would
 * read 0.00. */
void amount_add(struct buffer *out, double value, int width);
/* Bytes of what amount_add adds with width 0. */
int amount_width(double value);

/* Significant digits that a time of that many ticks has: 1 below 10 ticks, 2 below 1,000, otherwise 3. By chance alone,
 * 10 ticks may as well be 7 or 13, and 1,000 ticks 968 or 1,032. */
int amount_digits(double ticks);

/* The report has samples of time, but fewer than 30: its times and percentages are rough. A sample may bring several
 * ticks. */
bool amount_is_rough(const struct report *r);

/* Adds a time with a unit of its own, right-aligned in at least width bytes: rounded to digits significant digits,
 * from 1 to 3, without zeros at their end, "350ns", "1.2us", "4.53ms", "2.1s"; from 1000 s on whole seconds, "12345s";
 * "<0.01ns" for what is shorter. seconds is finite and above 0. */
void amount_add_duration(struct buffer *out, double seconds, int digits, int width);
/* Bytes of what amount_add_duration adds with width 0. */
int amount_duration_width(double seconds, int digits);

/* A percentage of that many ticks as amount_add_percent shows it: below 1,000 ticks with two significant digits. */
double amount_round_percent(double percent, double ticks);
/* Adds it: with two decimals as amount_add does, below 1,000 ticks as "2%", "0.25%", "81%". */
void amount_add_percent(struct buffer *out, double percent, double ticks);

/* Adds a ratio of counts, right-aligned in at least width bytes: with as many decimals as make four digits, 4 at most,
 * without zeros at their end, "0.3333", "1.5", "12.35", "20000"; "<0.0001" for what is above 0 and would read 0. */
void amount_add_ratio(struct buffer *out, double value, int width);

/* Decimal digits of a count. */
int amount_count_width(uint64_t value);

/* Which entries of a report are shown, and in which order. Internal to render. */

struct selection {
    uint32_t entry_count;
    const uint32_t *entries; /* position in functions, or REPORT_CYCLE | position in cycles */
    uint32_t function_count; /* functions among them */
    uint32_t hidden;         /* other functions that are entries of the report: limit, focus or only left them out */
    double hidden_seconds;   /* their self seconds */
};

/* Applies focus, only, sort and limit. A cycle is shown when one of its members is: in its own place when
 * sorted by index, else before its first member. O(n log n). */
void selection_make(const struct render_input *in, struct arena *a, struct selection *out);
/* For a picture: those with most time, unless another order than the index was asked for. shown[i]: function i is among
 * them; of the arena. */
void selection_make_picture(const struct render_input *in, struct arena *a, struct selection *out, bool **shown);

/* Rows of a list that are shown, and what the others have. */
struct row_cut {
    uint32_t first, count;
    uint32_t left;  /* rows that are not shown */
    uint64_t calls; /* theirs; stopped at SUM_MAX */
    double seconds; /* self and children, theirs */
};

/* The heaviest `most` rows of the list, which is in the report's order; 0: all. last_is_heaviest: callers are listed
 * so. O(n). */
struct row_cut row_cut_make(const struct report_arc *rows, uint32_t n, uint32_t most, bool last_is_heaviest);

/* A tree of callers and callees: the stacks that were seen, if the report is measured by them; else derived from arcs.
 *
 * Stacks derived from arcs: a tree of callers and callees in which every time is divided as the report divides it.
 * These stacks were never observed, and every format must mark them "synthetic". Exact are the totals of functions, as
 * far as paths were followed, and of depth one and two. Internal to render. */

#define STACKS_NONE UINT32_MAX
#define STACKS_CUT 0x7fffffffu /* frame of time that lies below paths that were not followed */
#define STACKS_NODES 16384u
#define STACKS_DEPTH 512u

struct stack_node {
    uint32_t parent;    /* its place in the list; STACKS_NONE for a root */
    uint32_t frame;     /* position in functions, REPORT_CYCLE | position in cycles, or STACKS_CUT */
    uint32_t depth;     /* 0 for a root */
    double total, self; /* seconds; self: what is not in the node's children */
    bool inferred;      /* report_frame */
};

struct stacks_flow;

/* Depth first: a node precedes its children, which are ordered by descending total. */
struct stack_tree {
    uint32_t count;
    const struct stack_node *nodes;
    double total;                   /* Σ roots */
    double cut;                     /* seconds below paths that were not followed */
    bool synthetic;                 /* derived, never seen */
    const struct stacks_flow *flow; /* NULL unless synthetic: which cycles are undivided, and where they are placed */
};

/* Follows the paths with most time first, until STACKS_NODES nodes or STACKS_DEPTH frames; what is below goes to nodes
 * of frame STACKS_CUT. A cycle is one frame. Below it stand its members with their own times, and the functions outside
 * that they called; nothing says in which order members called one another. A cycle with several callers stands where
 * struct stacks_flow says. O(nodes · (log nodes + callees) + (functions + arcs) · log functions). */
void stacks_make(const struct report *report, struct arena *a, struct stack_tree *out);

/* The frame of name "[synthetic stacks]" for formats without comments; NULL where stacks were seen. */
const char *stacks_mark(const struct stack_tree *s);

/* The text of a frame. */
const char *stacks_frame_name(const struct name_list *names, const struct report *report, uint32_t frame,
                              struct arena *a);

/* Which time derived stacks may show below which function. Internal to render.
 *
 * The report divides the time of a cycle among its callers by their numbers of calls. For a cycle with several callers
 * this says nothing about the paths that led into it: a caller that calls once may account for nearly all of the time.
 * Such a cycle is undivided: its whole time belongs below the deepest function that every path to the cycle passes (its
 * immediate dominator), and below none of its callers. All else is divided as the report divides it. */

#define STACKS_ROOT UINT32_MAX /* below no function: the paths have no function in common */

/* Entities are the functions outside cycles, by position, and behind function_count the cycles. */
struct stacks_flow {
    const struct report *report;
    double *total;       /* of each entity: its time with all that is shown below it, in the unit of the report; of a
                          * class of addresses, which has nothing below it in the stack of a caller, its self time */
    double *rooted;      /* of each entity: the part of total that no caller accounts for; of a class of addresses also
                          * all that it calls */
    bool *undivided;     /* of each entity: a cycle with several callers */
    uint32_t *dominator; /* of each entity: immediate dominator, or STACKS_ROOT */
    uint32_t *first, *next; /* undivided cycles below an entity: first[entity], then next[]; STACKS_ROOT ends a list */
};

/* Functions, cycles and their rows in JSON. Field by field: schema/report.schema.json. Internal to render. */

/* measured_self, measured_total and the others of m; nothing if it is NULL. */
void json_add_measured(struct buffer *out, const struct report_measured *m);
/* `"stacks":{…}`: what measured times rest on, and which times sort; nothing where the report has no stacks. */
void json_add_stacks(struct buffer *out, const struct report *report);
/* raw_name, build_id and address of a function; identity: its name before them. */
void json_add_place(struct buffer *out, const struct report *report, const struct report_function *f);
void json_add_identity(struct buffer *out, const struct report *report, const struct report_function *f);
/* Id of a build of the report, "" for what is outside all. */
const char *json_find_build(const struct report *report, uint32_t build);
/* "columns":{…}: equally long arrays, one for each column of the flat profile, of the functions of the selection. */
void json_add_columns(struct buffer *out, const struct render_input *in, const struct selection *s, struct arena *a);

/* Why counts are not exact, for exports that can be imported again. */

/* "threads-unknown, caller-bucket", as message_inexact_parse reads it; "none" if all is exact. Ticks inside collectors,
 * which an export has no place for, are left out of it: "ticks-outside". NULL: no memory. */
const char *reasons_list(const struct render_input *in, struct arena *a);

/* The parts of format=text. Columns are those of gprof's listing, widened as the numbers require and always separated
 * by a blank. Internal to render. */

struct text_parts {
    const struct render_input *in;
    const struct selection *shown;      /* in the graph */
    const struct selection *flat_shown; /* in the flat profile */
    const struct name_list *names;
    struct arena *arena;
    struct buffer *out;
};

/* What was asked, where the numbers come from, and what is missing. At most six lines, unless something is wrong: each
 * further line says what is, or is there because the query says verbose. */
void text_add_heading(const struct text_parts *t);
/* True if a line of the heading that is of interest only where something is wrong is to be there. */
static inline bool text_wants(const struct text_parts *t, bool wrong)
{
    return wrong || t->in->show.verbose != 0;
}
/* The line below the flat profile with the time inside the collector: width of its number, and of the following blanks;
 * nothing if there was none. */
void text_add_inside(const struct text_parts *t, int before, int width);
/* "~" where calls were sampled and not counted, else "": before a number of calls, or the heading of their column. */
const char *text_calls_mark(const struct render_input *in);

/* The functions of the formats (proto/report_format.h). Contract: struct render_format. gprof_render needs in->object
 * and in->counts (one build), and view drops the flat profile or the graph. Formats of other tools say "synthetic" in
 * the payload of what is derived and not observed. */

#define PROTOTYPE(name, word, content_type, wants_report, lists_rows, functions)                                       \
    enum profd_status name##_render(const struct render_input *in, struct arena *a, struct buffer *out,                \
                                    struct profd_error *e);
REPORT_FORMATS(PROTOTYPE)
#undef PROTOTYPE

#endif
