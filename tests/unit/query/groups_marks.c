/* Which groups have marked hours: as the store says of each group by itself. */
#include "query/query_internal.h"
#include "tests/unit/query/fleet.h"

#define HOUR (60 * MINUTE)
#define FIRST 480000 /* hour */
#define HOURS 40
#define HOSTS 60u
#define NAMES 45u /* some hosts share one */

static const struct store_scope ALL = {.all = true};

static void name_host(uint32_t host, char out[16])
{
    snprintf(out, 16, "h%u", host % NAMES);
}

static uint32_t draw(uint32_t below)
{
    static uint64_t x = 88172645463325252;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return (uint32_t)(x % below);
}

static void arrive(struct store *s, uint32_t host, int64_t hour, uint64_t number)
{
    char name[16];
    struct store_admission admission;
    struct profd_error e;
    name_host(host, name);
    struct store_arrival a = {.name = name, .number = number, .now = hour * HOUR};
    memset(a.host, (int)host + 1, sizeof a.host);
    cr_assert_eq(store_admit_hosts(s, &a, 1, &admission, &e), PROFD_OK, "%s", e.sentence);
}

/* A segment that cannot be read: something of the hour is missing. */
static void miss(struct store *s, uint32_t host, int64_t hour, uint64_t sequence)
{
    static const uint8_t bytes[8] = {0};
    struct store_receipt receipt;
    struct profd_error e;
    struct store_delivery d = {
        .sequence = sequence, .fault = "short", .bytes = bytes, .size = sizeof bytes, .received = hour * HOUR + 5};
    memset(d.host, (int)host + 1, sizeof d.host);
    memset(d.epoch, (int)host + 1, sizeof d.epoch);
    cr_assert_eq(store_put_segments(s, &d, 1, &receipt, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_not(receipt.unknown);
}

/* Hosts with up to three marked hours of each reason; every fifth host has none. */
static struct store *marked_hosts(void)
{
    struct store *s = fleet_open();
    for (uint32_t h = 0; h < HOSTS; h++) {
        arrive(s, h, FIRST, 100);
        for (uint32_t i = 0; h % 5 > 0 && i < h % 4; i++) {
            miss(s, h, FIRST + draw(HOURS), i + 1);
            arrive(s, h, FIRST + draw(HOURS), 99 - i); /* restored */
        }
    }
    return s;
}

static uint32_t find_directly(struct store *s, struct store_filter filter, const char *host)
{
    const struct store_matcher also[2] = {filter.matcher_count > 0 ? filter.matchers[0] : (struct store_matcher){0},
                                          {.name = "host", .value = host, .match = STORE_MATCH_EQUAL}};
    uint32_t reasons = 0;
    struct profd_error e;
    if (host != NULL) {
        filter.matchers = filter.matcher_count > 0 ? also : &also[1];
        filter.matcher_count++;
    }
    cr_assert_eq(store_get_marks(s, &ALL, &filter, STORE_OF_HOSTS, &reasons, &e), PROFD_OK, "%s", e.sentence);
    return reasons;
}

/* In windows that begin and end at, before and after a whole hour. Counts windows with reasons in seen. */
static void compare(struct store *s, const struct groups_marks *m, const struct store_filter *filter, const char *host,
                    unsigned seen[2])
{
    const char *const values[] = {"api", host};
    for (int64_t from = -1; from <= HOURS + 6; from += 3) {
        for (int64_t width = 0; width <= HOURS; width += 1 + width) {
            const int64_t since = from < 0 ? 0 : (FIRST + from) * HOUR + draw(3) - 1;
            const int64_t until = width == 0 ? 0 : (FIRST + (from < 0 ? 0 : from) + width) * HOUR + draw(3) - 1;
            struct store_filter window = *filter;
            window.since = since;
            window.until = until;
            const uint32_t direct = find_directly(s, window, host);
            cr_assert_eq(groups_marks_find(m, STORE_OF_HOSTS, values, since, until), direct, "host %s, %lld to %lld",
                         host ? host : "any", (long long)since, (long long)until);
            seen[direct != 0]++;
        }
    }
}

static void check(const struct store_filter *filter, const char *const *labels, size_t n, bool by_host)
{
    struct store *s = marked_hosts();
    struct arena *a = arena_new(0);
    struct groups_marks m;
    struct profd_error e;
    unsigned seen[2] = {0, 0};
    cr_assert_eq(groups_marks_load(s, &ALL, filter, labels, n, a, &m, &e), PROFD_OK, "%s", e.sentence);
    for (uint32_t i = 0; i < (by_host ? NAMES + 1 : 1); i++) { /* the last has never arrived */
        char name[16];
        snprintf(name, sizeof name, "h%u", i);
        compare(s, &m, filter, by_host ? name : NULL, seen);
    }
    cr_assert(seen[0] > 0 && seen[1] > 0, "with and without reasons");
    arena_free(a);
    store_close(s);
}

static const char *const LABELS[] = {"service", "host"};

Test(query_groups_marks, groups_of_hosts_have_the_marks_of_their_hosts)
{
    check(&(struct store_filter){.since = 0}, LABELS, 2, true);
}

Test(query_groups_marks, groups_by_other_labels_have_the_marks_of_all_hosts)
{
    check(&(struct store_filter){.since = 0}, LABELS, 1, false);
}

Test(query_groups_marks, hosts_that_the_filter_leaves_out_mark_nothing)
{
    const struct store_matcher without = {.name = "host", .value = "h7", .match = STORE_MATCH_NOT_EQUAL};
    check(&(struct store_filter){.matcher_count = 1, .matchers = &without}, LABELS, 2, true);
}
