/* What the files of a query share. Private to query/.
 *
 * From the outside in: run.c finds the handler of a path, and answers. report_work.c makes the report of a build.
 * functions.c, groups.c, joined.c and compare.c make other answers of the same sums, and catalogue.c lists what is
 * stored. Below them options.c reads parameters, load.c adds up what is stored, and cache.c keeps what was made. */
#ifndef PROFD_QUERY_QUERY_INTERNAL_H
#define PROFD_QUERY_QUERY_INTERNAL_H

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/arena.h"
#include "core/buffer.h"
#include "core/coding.h"
#include "core/coverage.h"
#include "core/figures.h"
#include "core/hashmap.h"
#include "core/object.h"
#include "core/profile.h"
#include "core/rows.h"
#include "core/report.h"
#include "core/shares.h"
#include "core/row_table.h"
#include "proto/buildid.h"
#include "proto/counts.h"
#include "proto/limits.h"
#include "proto/status.h"
#include "query/params.h"
#include "query/answer.h"
#include "render/render.h"
#include "store/store.h"

/* Validators of answers: what was asked, and the state of the data it was asked of. */

/* 32 hex digits, quoted: a strong validator. They are HMAC-SHA-256 of the epoch's number and the canonical question,
 * keyed with the epoch's salt: a reader cannot compute the number, which counts what all users have stored. */
void etag_make(const char *canonical, size_t n, const struct store_epoch *epoch, char out[ETAG_SIZE]);
/* True if an If-None-Match field (a list, weak or strong, or *) names the tag. Weak comparison (RFC 9110, 13.1.2). */
bool etag_match(const char *if_none_match, const char *etag);

/* One query in progress. */

struct query_request;
struct query_answer;
struct query_answers;

struct job {
    struct store *store;
    const struct query_request *request;
    const struct params *params;
    const char *build;             /* full id of the build that the path names, once it is known */
    struct arena *arena;           /* everything the job computes */
    struct query_answer *answer;   /* body, content type and ETag are the handler's */
    struct query_answers *answers; /* NULL: the answer depends on the moment of asking, or none are kept */
    char tag[ETAG_SIZE];           /* of the answer uncoded, "" while there is none */
    bool unsettled; /* by the handler, before job_set_etag: rolling up changes the answer; it has no tag */
    bool kept;      /* the answer was made before, for the same tag */
};

/* A handler appends the body and returns OK, or a status with a sentence (what it appended is then dropped). A handler
 * that returns JOB_ANSWERED has nothing to append, because the answer is there; run.c makes OK of it. */
#define JOB_ANSWERED ((enum profd_status) - 1)
typedef enum profd_status (*job_handler)(struct job *job, struct profd_error *e);

/* Sets the answer's ETag, on data of that epoch. Version, visibility, path and all parameters are part of it, so that
 * no parameter can be forgotten; resolved (n bytes) is what they do not say: what relative times and short ids meant,
 * and the edges of the window that were used. JOB_ANSWERED if the asker holds this answer, and the status is 304, or if
 * it was made before: nothing remains to be done. Does nothing for an unsettled answer. */
enum profd_status job_set_etag(struct job *job, const void *resolved, size_t n, const struct store_epoch *epoch);
/* The same for lists: the state is that of all builds. */
enum profd_status job_set_list_etag(struct job *job, struct profd_error *e);
/* limit= of a list of pages. As everywhere it is the most rows that are wanted, 0 for all; a page has no more than
 * LIMIT_PAGE of them, and its cursor leads to the others. */
enum profd_status job_parse_page(const struct job *job, unsigned long long *limit, struct profd_error *e);
/* A copy in the arena. NULL is "". */
const char *job_copy(struct job *job, const char *text);

/* A page of a list: from the parameters limit= and cursor=, by rows in the arena, to JSON. */

struct list_page {
    struct job *job;
    enum render_list kind;
    size_t size;              /* bytes of a row */
    unsigned long long limit; /* rows of the page */
    const char *cursor;       /* NULL: the first page */
    void *rows;
    uint32_t count, capacity;
    bool more; /* there are rows behind the page */
};

/* Parses limit= (job_parse_page). row: bytes of a row, whose type kind says. */
enum profd_status list_begin(struct job *job, enum render_list kind, size_t row, struct list_page *out,
                             struct profd_error *e);
/* The cursor of a list of builds is the id of the last one. *after keeps its value on the first page. BAD_QUERY. */
enum profd_status list_parse_build_cursor(const struct list_page *l, struct buildid *after, struct profd_error *e);
/* A new row, all zeros; valid until the next call. NULL, and l->more is true: the page is full. */
void *list_add(struct list_page *l);
/* Cuts the page out of all rows: at most limit rows behind the first `skip`. Returns where it ends in all rows. */
size_t list_cut(struct list_page *l, unsigned long long skip, unsigned long long limit);
/* Appends the page to the answer. next: the cursor of the following one; NULL: this is the last. */
void list_show(const struct list_page *l, const char *next);

/* The parameters of a report, understood. */

enum options_scope {
    OPTIONS_SCOPE_PROGRAM,    /* uploads of this program, all builds together */
    OPTIONS_SCOPE_BUILD,      /* the same uploads, this build alone */
    OPTIONS_SCOPE_EVERYWHERE, /* uploads of every process that had the build, this build alone */
    OPTIONS_SCOPE_DEFAULT,    /* program if the build ever was a main executable, else everywhere */
};

/* Parameters that choose what is summed, as RENDER_CHOICES are those that choose what is shown. scope: enum
 * options_scope. empty_is_error: a selection without uploads is answered with NOTHING instead of an empty report.
 * geometry: 0 if not given. time: enum report_time. dimension: of the samples; NULL: the usual one. */
#define OPTIONS_LIST(X)                                                                                                \
    X(uint32_t, scope, "scope", ANY_MODE, WORDS("program, build, everywhere"))                                         \
    X(uint32_t, static_arcs, "static", TRUE_MODE, SWITCH())                                                            \
    X(uint32_t, empty_is_error, "empty", ANY_MODE, WORDS("report, error"))                                             \
    X(uint32_t, geometry, "geometry", COMPAT_MODE, NUMBERS(1, LIMIT_HISTOGRAMS))                                       \
    X(uint32_t, time, "time", TRUE_MODE, WORDS("best, measured, calls"))                                               \
    X(const char *, dimension, "dimension", TRUE_MODE, TEXT)

struct options {
#define X(type, field, parameter, modes, values) type field;
    OPTIONS_LIST(X)
#undef X
    struct render_choice show;
    int64_t since, until; /* 0: open */
    size_t matcher_count;
    struct store_matcher matchers[LIMIT_MATCHERS];
    const char *match; /* the same as text, joined by ", "; NULL: none */
    const struct render_format *format;
    struct store_scope visible; /* of the asker, narrowed by uid= */
};

/* The parameters of a report, ended by NULL. */
extern const char *const options_of_report[];

/* http: a limit applies unless another one is given. compat: that mode is the default unless mode= or format= is given.
 * Strings live in the params or in the arena. BAD_QUERY with the value; FORBIDDEN for uid= of another user. */
enum profd_status options_parse(const struct params *p, const struct store_scope *scope, bool http, int64_t now,
                                bool compat, struct arena *a, struct options *out, struct profd_error *e);

/* The matchers of "match" and "label.K"; *count, which was 0, is how many there are. Strings live in the params or in
 * the arena. BAD_QUERY. */
enum profd_status options_parse_matchers(const struct params *p, struct arena *a,
                                         struct store_matcher out[LIMIT_MATCHERS], size_t *count,
                                         struct profd_error *e);

/* The matchers of a selector as Prometheus and Grafana write it, {K="V", K=~"V"}; "" selects everything. *count and
 * out as before. BAD_QUERY. */
enum profd_status options_parse_selector(const char *text, struct arena *a, struct store_matcher out[LIMIT_MATCHERS],
                                         size_t *count, struct profd_error *e);

/* Stored uploads and sums become one profile. */

struct load_request {
    struct store *store;
    struct store_scope scope;
    struct store_filter filter;
    bool alone;         /* only the filter's build: its histograms and the arcs with an end in it; other ends become
                           COUNTS_NOWHERE */
    bool arcs_only;     /* for the arcs ever observed */
    struct set *loaded; /* rows that another load has: they are left out. NULL: none */
    enum load_stacks { LOAD_STACKS_NONE, LOAD_STACKS_TOTALS, LOAD_STACKS_SHARES } stacks; /* not with arcs_only */
    struct arena *shares;            /* bins and arcs by random group, too; then all counts are in this arena, and the
                                        filter must ask for the spread. NULL: not wanted */
    struct query_cache *cache;       /* of sums added up before; NULL: none */
    const struct downtime *downtime; /* NULL: unknown */
    const struct store_row *row;     /* the only one that is loaded; NULL: those that the filter selects */
};

struct load {
    struct profile *profile;
    const char *const *names; /* one per build of the profile, as first delivered */
    struct provenance provenance;
    struct set *rows; /* that are in it */
};

/* Sums every matching upload, single or in a sum already; the same profile whichever (orders within an upload apart, if
 * alone). Everything lives in the arena, unless it has one for shares. O(bins + arcs) of all rows. LIMIT if a label
 * pattern of the filter could not be decided. */
enum profd_status load_profile(const struct load_request *request, struct arena *a, struct load *out,
                               struct profd_error *e);

/* From a report's parameters to what a renderer needs: load → symbolize → graph → cycles → propagate. */

struct report_work {
    struct options options;
    struct buildid id;
    const char *name; /* of the build */
    bool is_program;
    int64_t first_seen, last_seen;  /* of the build: earliest start and latest end of an upload */
    enum options_scope scope;       /* never the default */
    int64_t used_since, used_until; /* the edges at the resolution of the stored data */
    bool by_host;                   /* the answer tells hosts apart (store_filter) */
    struct arena *shares;           /* the load has the random groups, too, and its counts in this arena; set between
                                       work_find and work_load. NULL: it has not */
    bool stacks_only;               /* as in struct report_request */
    bool without_errors;            /* no standard errors of measured times are shown: the load lacks what they take */
    struct load load;
    const struct object *const *objects; /* one for each build of the profile, NULL if it was not sent */
    struct coverage coverage;            /* of the load */
    struct report *report;
    const char *const *disputed;        /* likewise: which hosts have different names; NULL: none do */
    const bool *has_names;              /* one per build of the report; the order is not that of the profile */
    const char *const *report_disputed; /* likewise */
};

/* Reads the options, finds the build and the edges of the window, and sets the ETag. compat: as
 * options_parse. JOB_ANSWERED: nothing was loaded. */
enum profd_status work_begin(struct job *job, bool compat, struct report_work *w, struct profd_error *e);
/* The same for one build of several: reads the options of these parameters, finds the build and the edges. Nothing is
 * known of a tag. */
enum profd_status work_find(struct job *job, const struct params *p, const char *build, bool compat,
                            struct report_work *w, struct profd_error *e);
/* What the options select of the build. */
struct store_filter work_make_filter(const struct report_work *w);
/* Reports state the window of the loaded data, but uploads may have been rolled up since: determines the edges again.
 * moved: they have changed, w has the new ones, and the caller must load again. Edges only move outward, so this ends.
 */
enum profd_status work_check_edges(struct job *job, struct report_work *w, bool *moved, struct profd_error *e);
/* Loads the sum. alone: one build whatever the scope says. */
enum profd_status work_load(struct job *job, struct report_work *w, bool alone, struct profd_error *e);
/* Fetches what names functions. */
enum profd_status work_find_objects(struct job *job, struct report_work *w, struct profd_error *e);
/* The arcs ever observed that the load does not have; NULL: the options narrow nothing, so that it has them all. */
enum profd_status work_load_ever(struct job *job, const struct report_work *w, const struct profile **ever,
                                 struct profd_error *e);
/* Loads the arcs ever observed and computes the report. */
enum profd_status work_build_report(struct job *job, struct report_work *w, struct profd_error *e);
/* All of this: begins, loads, and computes the report. For a list made from a report, limit is not NULL: *limit becomes
 * that of limit= (SIZE_MAX: all), and the status is NOTHING if no upload is selected. JOB_ANSWERED as work_begin. */
enum profd_status work_make_report(struct job *job, struct report_work *w, size_t *limit, struct profd_error *e);
/* What renderers are given. Points into w. */
struct render_input work_make_input(const struct report_work *w);

/* Subreports: a query over steps of time, or over programs, makes one report for each step or program. Each is computed
 * completely, and its memory is reused for the next. */

struct pprof_parts;
struct subreport_object;

struct subreport {
    struct job job;                   /* the query's, with an arena that lasts until the next report */
    struct arena *kept;               /* holds the objects, which most of the reports share */
    struct subreport_object *objects; /* of the users of the latest report */
    uint32_t object_count, object_capacity;
    uint32_t *uids;
    uint32_t uid_count;
    bool any;
    const struct profile *ever; /* the caller's: arcs of all time; NULL: each report loads them */
    uint64_t gone_through;
};

void subreport_init(struct subreport *p, const struct job *job);

/* Loads what w's options select of w's build. w->load, and everything derived from it, is valid until the next call.
 * w->load.provenance.uploads is 0 if nothing was selected. LIMIT if all reports so far processed more than LIMIT_WORK.
 */
enum profd_status subreport_load(struct subreport *p, struct report_work *w, struct profd_error *e);
/* The dimension of all subreports: the requested one, else "seconds". A subreport without samples of it has none. */
const char *subreport_dimension(const struct options *o);
/* Computes the report from the loaded data. */
enum profd_status subreport_make(struct subreport *p, struct report_work *w, struct profd_error *e);
/* Computes it, and appends it to others as a profile in the format of pprof. */
enum profd_status subreport_append(struct subreport *p, struct report_work *w, struct buffer *out,
                                   struct pprof_parts *parts, struct profd_error *e);

/* The programs of a query over all builds. Each one has a subreport. */

/* The ETag of such an answer while it is made. It is a digest of the state of the data, and of the windows of each
 * program with their edges. Zeroed is the initial state. */
struct programs_tag {
    bool begun;
    struct sha256_ctx sha;
    struct store_epoch epoch;
};

struct programs {
    struct job *job;
    struct options options;
    struct programs_tag *tag; /* NULL: the answer has none */
    struct program {
        struct buildid id;
        const char *name, *base; /* base: without its directory */
        int64_t first_seen, last_seen;
        uint64_t nanoseconds;
        int64_t used_since, used_until; /* of its report, once the list of functions has it */
    } * list;                           /* by id */
    uint32_t count, left, capacity;     /* left: how many are selected and not read, as they have the least CPU time */
};

/* Finds the programs that may have uploads in the window of the options, and adds window and edges to the tag, if there
 * is one. If there are more than a query reads, only those are found that have uploads with the options' labels. */
enum profd_status programs_find(struct programs *p, struct profd_error *e);
/* Sets the ETag as job_set_etag does. Must be called after the programs of all windows were found. */
enum profd_status programs_set_tag(struct job *job, struct programs_tag *tag);
/* Returns what the options select of a program. If a matcher's `absent` is not NULL, it becomes the program's name, or
 * its id if the label is build_id. */
struct report_work programs_work(const struct programs *p, uint32_t i);

/* Steps of time that a window is divided into. */

#define STEPS_HOUR INT64_C(3600000000000)

/* step= in ns; usual (0 or one of them) when it is absent. BAD_QUERY naming those there are. An answer of steps below
 * an hour is unsettled: what they have moves into one of them when their hour is rolled up. */
enum profd_status steps_parse(struct job *job, int64_t usual, int64_t *step, struct profd_error *e);

/* Where data of the build can be: its uploads' times, cut by the options' window; nothing when *begin ≥ *end. BAD_QUERY
 * if it has more than LIMIT_STEPS steps. step 0: any. */
enum profd_status steps_find_span(const struct report_work *w, int64_t step, int64_t *begin, int64_t *end,
                                  struct profd_error *e);

/* What a row of the store holds. */

/* The value of a label; "" if the row does not have it. */
const char *row_find_label(const struct store_row *row, const char *name);
/* Decodes the counts of a row into the arena, which is reset. DAMAGED or NO_MEMORY. */
enum profd_status row_decode_counts(const struct store_row *row, struct arena *a, struct counts *out,
                                    struct profd_error *e);

/* Uploads added up by the values of labels, by time, or both. */

#define GROUPS_LABELS 3       /* that a query string may group by */
#define GROUPS_LABELS_MOST 20 /* that a request may group by */

struct groups_request {
    struct store *store;
    struct store_scope scope;
    struct store_filter filter;
    const char *dimension; /* of the samples; NULL: the usual one, as for a report (core/report.h) */
    bool may_lack;         /* uploads without samples of the dimension have 0 seconds */
    bool alone;            /* ticks and calls of the filter's build only, as for a load */
    const char *labels[GROUPS_LABELS_MOST];
    size_t label_count;
    int64_t step; /* ns; 0: none, and nothing below is looked at */
    int64_t grid; /* 0: steps begin where days do. Else step k is (grid + (k − 1) · step, grid + k · step], and rows
                     of the store that have a width keep their own time and width */
    int64_t begin, end; /* with steps: where data can be; begin < end */
};

/* Rows by ascending time and values, without those that have no uploads. If steps are shorter than an hour, an hourly
 * sum or a wider slice of a live process becomes a row of its own width, at its beginning. Everything lives in the
 * arena. *dimension: that of the seconds of all rows. LIMIT if a label pattern could not be decided; BAD_QUERY naming
 * the existing dimensions if the requested one is not among them. */
enum profd_status groups_add_up(const struct groups_request *r, struct arena *a, struct group_row **rows, size_t *count,
                                const char **dimension, struct profd_error *e);

/* Which groups have hours in which something of a host is missing. */

/* A mark of the hosts of one name, of all hosts, or of local users. */
struct groups_mark {
    uint32_t host; /* 1 + the number of its name in the set; 0: every host; UINT32_MAX: local users */
    uint32_t reasons;
    int64_t hour; /* since the epoch */
};

struct groups_marks {
    struct arena *arena;
    size_t label; /* which of the labels is the host */
    bool by_host; /* one is */
    struct set names;
    struct groups_mark *list; /* ascending by host and hour */
    uint32_t count, capacity;
};

/* Loads the marks that the filter selects, in one pass over them. labels: by which groups are made. Everything lives in
 * the arena. */
enum profd_status groups_marks_load(struct store *s, const struct store_scope *scope, const struct store_filter *filter,
                                    const char *const *labels, size_t label_count, struct arena *a,
                                    struct groups_marks *out, struct profd_error *e);
/* The reasons of a group of these origins with these values of the labels, in a window as in store_filter.
 * O(log n + hours of the window that are marked). */
uint32_t groups_marks_find(const struct groups_marks *m, enum store_origin of, const char *const *values, int64_t since,
                           int64_t until);

/* One static function has another file where its program was built in another directory. */

/* Of functions of one name, the ends of their files' paths say which is which: as many parts of a path as tell apart
 * all of one report. Two of one report are never the same. */
struct joined_files {
    struct arena *arena;
    struct set names;
    uint32_t *parts, capacity;
    uint32_t steps; /* of the rows' trends */
};

void joined_files_init(struct joined_files *x, struct arena *a);

/* Takes the files of a report's functions. scratch: what only this call needs. O(n log n), and of one name with k files
 * O(k²), where k ≤ 64: functions of a name with more are only the same if their files are equal. */
void joined_files_add(struct joined_files *x, const struct report *r, struct arena *scratch);

/* Adds up rows of one name, one object and one end of the file, in the place of the first; the file becomes the end
 * that their files have in common. Each name and file is one row before. *count: of rows. O(rows) expected. */
void joined_files_merge(const struct joined_files *x, struct joined_row *rows, uint32_t *count);

/* A cache of entries by a key of bytes. The least recently used entry is removed first. The caller holds a lock around
 * each call. */

/* First member of an entry, which is one block of malloc. */
struct lru_entry {
    TAILQ_ENTRY(lru_entry) use; /* the most recently used first */
    struct lru_entry **slot;    /* the table's value: this entry */
    size_t bytes;
};

struct lru {
    struct query_lock lock;
    size_t limit, entries_max;
    size_t bytes, entries;
    struct hashmap map; /* key → struct lru_entry * */
    TAILQ_HEAD(lru_list, lru_entry) list;
};

/* Holds at most limit bytes in at most entries_max entries. lru_clear ends it. */
void lru_init(struct lru *l, size_t limit, size_t entries_max, const struct query_lock *lock);
/* Frees every entry. */
void lru_clear(struct lru *l);

void lru_lock(struct lru *l);
void lru_unlock(struct lru *l);

/* The entry of a key, or NULL. It does not count as used. */
void *lru_find(struct lru *l, const void *key, size_t key_size);
/* It is now the most recently used. */
void lru_use(struct lru *l, void *entry);
/* Adds an entry with a new key; bytes is the size of its block. Other entries are removed until it fits. False, and the
 * entry stays the caller's, if it alone exceeds the limit or memory is exhausted. */
bool lru_put(struct lru *l, const void *key, size_t key_size, void *entry, size_t bytes);
/* Removes an entry and frees it. */
void lru_remove(struct lru *l, void *entry);

/* The last step of a query: an answer's body in a coding that the client accepts. */

/* Text, JSON, SVG and messages of Connect: what becomes much smaller. */
bool coded_suits(const char *content_type);

/* The inside of the cache of finished answers. */

/* Gives the answer that was made when the question had this tag (uncoded, not ""). Its generation becomes the
 * request's. */
bool answers_take(struct query_answers *answers, const struct query_request *request, const char *tag,
                  struct query_answer *answer);
/* Keeps a copy of a 200, or, of a 304, that the tag is the current one. A failure is silent: nothing is kept. */
void answers_put(struct query_answers *answers, const struct query_request *request, const char *tag,
                 const struct query_answer *answer);

/* The table of paths: what answers each, and with which parameters. */

struct route {
    const char *pattern; /* "{}" matches one segment */
    enum query_source source;
    enum query_kind kind;
    job_handler handler;        /* NULL: the daemon answers, not a query */
    const char *const *allowed; /* parameters, ended by NULL */
    bool report;                /* made from uploads: may be kept by the asker and revalidated */
};

/* NOT_FOUND, naming the path, if no route has it. */
enum profd_status route_find(const char *target, const struct route **out, struct profd_error *e);

/* The handlers of the paths; the table is in run.c. Contract: job_handler. */

enum profd_status builds_list(struct job *job, struct profd_error *e);
enum profd_status builds_show(struct job *job, struct profd_error *e);
enum profd_status labels_list(struct job *job, struct profd_error *e);
enum profd_status labels_list_values(struct job *job, struct profd_error *e);
enum profd_status counts_show(struct job *job, struct profd_error *e);
enum profd_status report_show(struct job *job, struct profd_error *e);
enum profd_status outgoing_show(struct job *job, struct profd_error *e);
enum profd_status function_show(struct job *job, struct profd_error *e);
enum profd_status addresses_show(struct job *job, struct profd_error *e);
enum profd_status callers_show(struct job *job, struct profd_error *e);
enum profd_status series_show(struct job *job, struct profd_error *e);
enum profd_status versions_list(struct job *job, struct profd_error *e);
enum profd_status joined_list(struct job *job, struct profd_error *e);
enum profd_status scrape_show(struct job *job, struct profd_error *e);
enum profd_status function_search(struct job *job, struct profd_error *e);
enum profd_status diff_show(struct job *job, struct profd_error *e);
enum profd_status cycles_list(struct job *job, struct profd_error *e);
enum profd_status never_called_show(struct job *job, struct profd_error *e);
enum profd_status connect_show(struct job *job, struct profd_error *e);
enum profd_status flamebearer_show(struct job *job, struct profd_error *e);
enum profd_status flamebearer_compare(struct job *job, struct profd_error *e);
enum profd_status label_values_show(struct job *job, struct profd_error *e);
enum profd_status groups_show(struct job *job, struct profd_error *e);
/* NOT_FOUND if the request has no processes: its path was written with escapes. */
enum profd_status processes_list(struct job *job, struct profd_error *e);
enum profd_status loads_list(struct job *job, struct profd_error *e);
enum profd_status hosts_list(struct job *job, struct profd_error *e);
enum profd_status openapi_show(struct job *job, struct profd_error *e);

#endif
