/* What collectors know beside ticks and calls changes no number that was there without it: the same random fleet with
 * words and without is asked everything, in every scope and format. */
#include <stdbool.h>
#include <stdio.h>

#include "proto/message.h"
#include "proto/collector.h"
#include "tests/rounds.h"
#include "tests/unit/query/fleet.h"

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static uint64_t address(uint32_t build)
{
    return build == 0 ? F_START + 4 * (uint64_t)below(24) : L_F + 4 * (uint64_t)below(16);
}

static uint32_t fill_samples(struct counts *c, uint32_t histograms, uint32_t builds)
{
    static const char *const DIMENSIONS[] = {"seconds", "seconds", "seconds", "wall", "cycles", "Zeit"};
    uint32_t first = 0;
    for (uint32_t h = 0; h < histograms; h++) {
        uint32_t build = below(builds);
        uint64_t low = build == 0 ? F_START : L_F;
        c->histograms[h] = (struct counts_histogram){.build = build,
                                                     .bins = 24,
                                                     .low = low,
                                                     .high = low + 96,
                                                     .rate = below(4) ? 100 : 1000,
                                                     .abbreviation = 's',
                                                     .first = first};
        strcpy(c->histograms[h].dimension, DIMENSIONS[below(6)]);
        for (uint32_t bin = below(6); bin < 24 && c->histograms[h].used < 8;
             bin += 1 + below(9), c->histograms[h].used++) {
            c->bin_index[first] = bin;
            c->bin_ticks[first++] = 1 + below(50);
        }
    }
    return first;
}

static void fill_collector(struct counts *c, uint32_t at, uint32_t program, uint32_t first)
{
    collector_make_histogram(&c->histograms[at], program);
    c->histograms[at].first = first;
    for (uint32_t word = below(8); word < COLLECTOR_COUNTERS_MAX && c->histograms[at].used < 12;
         word += 1 + below(6), c->histograms[at].used++) {
        word += word == COLLECTOR_OUTSIDE_NS || word == COLLECTOR_SAMPLES; /* time of [outside]; how rough ticks are */
        c->bin_index[first] = word;
        c->bin_ticks[first++] = word == COLLECTOR_CPU_NS ? 1 + below(1000) /* much of it without ticks hides times */
                                : below(6) == 0          ? UINT64_MAX - below(9)
                                                         : 1 + below(1000000);
    }
    c->bin_count = first;
}

/* The same counts twice, first without words. */
static void random_counts(uint32_t builds, uint32_t program, uint8_t *bytes[2], size_t size[2], uint64_t *ticks,
                          uint64_t *calls)
{
    struct counts c;
    struct profd_error e;
    uint32_t histograms = below(3), arcs = below(3) ? below(40) : 0;
    uint64_t more_ticks, more_calls;
    cr_assert_eq(counts_init(&c, histograms + 1, histograms * 8 + 12, arcs, &e), PROFD_OK);
    uint32_t first = fill_samples(&c, histograms, builds);
    for (uint32_t i = 0; i < arcs; i++) {
        c.from_build[i] = below(9) == 0 ? COUNTS_NOWHERE : below(builds);
        c.to_build[i] = below(20) == 0 ? COUNTS_NOWHERE : below(builds);
        c.from[i] = address(c.from_build[i]);
        c.to[i] = address(c.to_build[i]);
        c.calls[i] = below(5) == 0 ? 0 : 1 + below(1000);
    }
    c.bin_count = first;
    c.histogram_count = histograms;
    counts_totals(&c, ticks, calls);
    cr_assert_eq(counts_encode(&c, &bytes[0], &size[0], &e), PROFD_OK, "%s", e.sentence);
    uint32_t at = below(2) ? histograms : 0; /* first or last among the histograms, its bins last in either case */
    c.histograms[histograms] = c.histograms[at];
    fill_collector(&c, at, program, first);
    c.histogram_count = histograms + 1;
    counts_totals(&c, &more_ticks, &more_calls);
    cr_assert(more_ticks == *ticks && more_calls == *calls);
    cr_assert_eq(counts_encode(&c, &bytes[1], &size[1], &e), PROFD_OK, "%s", e.sentence);
    counts_done(&c);
}

static bool outside; /* all uploads of this round say that ticks lie outside of functions */

static void put_random(struct store *stores[2], uint32_t number)
{
    static const char *const HOSTS[] = {"db1", "db2", "web"};
    static const char *const SETS[][2] = {{PROGRAM, NULL}, {PROGRAM, LIBRARY}, {LIBRARY, PROGRAM}, {LIBRARY, NULL}};
    struct store_label labels[] = {{"host", HOSTS[below(3)]}};
    const char *const *set = SETS[below(4)];
    struct store_build builds[2];
    struct store_upload u = {
        .uid = 1000, .sequence = 1, .builds = builds, .label_count = 1, .labels = labels, .group = below(16)};
    uint8_t *bytes[2];
    size_t size[2];
    enum store_outcome outcome;
    struct profd_error e;
    for (; u.build_count < 2 && set[u.build_count] != NULL; u.build_count++) {
        builds[u.build_count] = (struct store_build){.name = set[u.build_count]};
        strcpy(builds[u.build_count].id.text, set[u.build_count]);
        u.program = strcmp(set[u.build_count], PROGRAM) == 0 ? (uint32_t)u.build_count : u.program;
    }
    random_counts((uint32_t)u.build_count, u.program, bytes, size, &u.ticks, &u.calls);
    memset(u.host, "abc"[below(3)], 32);
    memcpy(u.sender, &number, sizeof number);
    u.end = FLEET_NOW - (int64_t)below(6000) * MINUTE - 1;
    u.start = u.end - MINUTE;
    u.received = u.end;
    u.processes_started = below(2);
    u.inexact = (below(10) == 0 ? 128 : 0) | (outside ? (uint32_t)INEXACT_TICKS_OUTSIDE : 0);
    for (int words = 0; words < 2; words++) {
        u.counts = bytes[words];
        u.counts_size = size[words];
        cr_assert_eq(store_put_uploads(stores[words], &u, 1, &outcome, &e), PROFD_OK, "%s", e.sentence);
        free(bytes[words]);
    }
}

/* Exports that can be imported again name the reason "ticks-outside" where collectors counted such ticks: the same only
 * if all uploads say so themselves. */
static bool names_reasons(const char *target)
{
    return strstr(target, "format=pprof") != NULL || strstr(target, "format=callgrind") != NULL;
}

/* Takes the heading's lines of coverage and the line under the flat profile out. Were there any? */
static bool text_cut(char *text)
{
    char *from = strstr(text, "\nOverhead  "), *to = from != NULL ? strstr(from, "\nTotal  ") : NULL;
    if (from == NULL) {
        from = strstr(text, "\nCoverage  ");
        to = from != NULL ? strstr(from, "\nTotal  ") : NULL;
    }
    if (to != NULL) {
        memmove(from, to, strlen(to) + 1);
    }
    char *inside = strstr(text, "  [collector] (not in the total)");
    if (inside != NULL) {
        char *end = strchr(inside, '\n');
        while (*inside != '\n') {
            inside--;
        }
        memmove(inside - 1, end, strlen(end) + 1);
    }
    return to != NULL;
}

/* Takes the numbers of uploads and processes out of the heading, and whether ticks are exact: where all processes had a
 * collector, it has words for them. JSON has all of it. */
static void sources_cut(char *text)
{
    char *from = strstr(text, "\nFrom      "), *machines = from != NULL ? strstr(from, " machine") : NULL;
    if (machines != NULL) {
        while (*--machines != ' ') {
        }
        memmove(from, machines, strlen(machines) + 1);
    }
    static const char TICKS[] = " tick or";
    char *exact = strstr(text, "\nExact     yes: no tick or call was lost\n");
    exact = exact != NULL ? strstr(exact, TICKS) : NULL;
    if (exact != NULL) {
        memmove(exact, exact + sizeof TICKS - 1, strlen(exact + sizeof TICKS - 1) + 1);
    }
}

static void compare(struct store *stores[2], const char *target, uint32_t *with)
{
    struct fleet_answer plain = fleet_ask(stores[0], target), words = fleet_ask(stores[1], target);
    cr_assert_eq(plain.http, words.http, "%s: %d %d %s", target, plain.http, words.http, words.body);
    if (words.http == 200 && strcmp(words.type, "application/json") == 0) {
        json_t *a = fleet_parse(&plain), *b = fleet_parse(&words);
        cr_assert_null(json_object_get(a, "collector"));
        *with += json_object_del(b, "collector") == 0;
        cr_assert(json_equal(a, b), "%s\n%.3000s\n%.3000s", target, plain.body, words.body);
        json_decref(a);
        json_decref(b);
    } else {
        *with += text_cut(words.body);
        sources_cut(plain.body);
        sources_cut(words.body);
        cr_assert_str_eq(plain.body, words.body, "%s", target);
        cr_assert(strcmp(words.type, "text/plain; charset=utf-8") == 0 || plain.size == words.size, "%s", target);
    }
    free(plain.body);
    free(words.body);
}

Test(query_collector, they_change_no_number)
{
    static const char *const BUILDS[] = {PROGRAM, LIBRARY};
    static const char *const WHAT[] = {"report?limit=0&format=json",
                                       "report?limit=0&format=text&verbose=1",
                                       "report?format=gprof",
                                       "counts?uid=1000",
                                       "report?format=csv",
                                       "report?format=dot",
                                       "report?static=1&sort=calls&limit=3",
                                       "groups?by=host",
                                       "groups?step=1d",
                                       "report?view=flat&limit=0",
                                       "report?format=callgrind",
                                       "report?dimension=cycles",
                                       "report?dimension=Zeit&format=text&verbose=1",
                                       "groups?by=host&dimension=wall",
                                       "report?dimension=collector",
                                       "functions?name=a",
                                       "report?format=folded",
                                       "report?format=graph",
                                       "report?format=pprof",
                                       "report?format=text&focus=a&verbose=1"};
    static const char *const WHICH[] = {"", "&scope=build", "&scope=everywhere", "&label.host=db1", "&since=now-2d"};
    uint32_t with = 0;
    for (uint32_t round = 0; round < rounds(12); round++) {
        struct store *stores[2] = {fleet_open(), fleet_open()};
        state = 1000 + round;
        outside = round % 2 == 0;
        for (uint32_t i = 0; i < 2; i++) {
            fleet_put_object(stores[i], PROGRAM, 1000);
            fleet_put_object(stores[i], LIBRARY, 1000);
        }
        for (uint32_t number = 1; number <= 1 + 8 * round; number++) {
            put_random(stores, number);
        }
        compare(stores, "/api/v1/builds", &with);
        for (uint32_t i = 0; i < 2 * 20 * 5; i++) {
            char target[300];
            snprintf(target, sizeof target, "/api/v1/builds/%s/%s%s", BUILDS[i % 2], WHAT[i / 2 % 20], WHICH[i / 40]);
            if (outside || !names_reasons(target)) {
                compare(stores, target, &with);
            }
        }
        store_close(stores[0]);
        store_close(stores[1]);
    }
    cr_assert(with > 25 * rounds(12), "%u answers had words", with);
}
