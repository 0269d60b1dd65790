/* Profiles of other tools: ids that are remembered for a day, or none; symbols that grow; tenants that send without a
 * host's daemon. */
#include <stdlib.h>
#include <string.h>

#include "proto/counts.h"
#include "tests/contract/store/arrival_fixture.h"
#include "tests/contract/store/fixture.h"

STORE_TEST(id_of_a_day_counts_once)
{
    struct made m, other;
    make_upload(&m, 1000, 1, 1);
    m.u.ids = STORE_ID_OF_DAY;
    other = m;
    other.u.uid = 1001;
    cr_assert_eq(put(f, &m), STORE_STORED);
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
    cr_assert_eq(put(f, &other), STORE_STORED, "another user's profile may have the same id");
    fixture_reopen(f);
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM sender"), 0);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM upload"), 2);
}

STORE_TEST(id_of_a_day_is_forgotten_after_a_day)
{
    struct made m;
    const int64_t days = LIMIT_ID_DAYS * 24 * HOUR;
    make_upload(&m, 1000, 1, 1);
    m.u.ids = STORE_ID_OF_DAY;
    cr_assert_eq(put(f, &m), STORE_STORED);
    OK(f, store_remove_ids(f->w, m.u.received + STORE_ID_HOURS * HOUR - days, &f->e));
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
    OK(f, store_remove_ids(f->w, m.u.received + STORE_ID_HOURS * HOUR + HOUR - days, &f->e));
    cr_assert_eq(put(f, &m), STORE_STORED);
}

STORE_TEST(upload_without_id_counts_each_time)
{
    struct made m;
    make_upload(&m, 1000, 1, 1);
    m.u.ids = STORE_ID_NONE;
    cr_assert_eq(put(f, &m), STORE_STORED);
    cr_assert_eq(put(f, &m), STORE_STORED);
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM sender") + fixture_count(f, "SELECT count(*) FROM day_id"), 0);
}

STORE_TEST(object_that_grows_replaces_its_senders_own)
{
    const uint32_t uid = 1000, other = 1001;
    struct made_object o;
    make_object(&o, "aa", "v0", other, false, "of another");
    OK(f, store_put_object(f->w, &o.o, &f->e));
    for (unsigned i = 1; i <= 3; i++) {
        make_object(&o, "aa", (const char *[]){"", "v1", "v2", "v3"}[i], uid, false,
                    (const char *[]){"", "a", "ab", "abc"}[i]);
        o.o.grows = true;
        OK(f, store_put_object(f->w, &o.o, &f->e));
    }
    cr_assert_str_eq(get_content(f, "aa", 1, &uid, NULL), "abc");
    cr_assert_str_eq(get_content(f, "aa", 1, &other, NULL), "of another");
    cr_assert_eq(fixture_count(f, "SELECT count(*) FROM object"), 2);
}

/* What a tenant's token sent is part of what the centre counted: verification agrees. */
STORE_TEST(upload_of_a_tenant_is_counted_at_the_centre)
{
    struct made m;
    struct counts counts;
    uint8_t *bytes;
    make_upload(&m, STORE_TENANT, 1, 1);
    m.u.ids = STORE_ID_OF_DAY;
    OK(f, counts_init(&counts, 1, 1, 0, &f->e));
    counts.histograms[0] = (struct counts_histogram){
        .bins = 16, .high = 16, .rate = 1, .dimension = "seconds", .abbreviation = 's', .used = 1};
    counts.bin_ticks[0] = m.u.ticks;
    OK(f, counts_encode(&counts, &bytes, &m.u.counts_size, &f->e));
    counts_done(&counts);
    m.u.counts = bytes;
    m.u.calls = 0;
    for (size_t i = 0; i < m.u.build_count; i++) {
        m.builds[i].calls = 0;
        m.builds[i].nanoseconds = i ? 0 : m.u.ticks * 1000000000;
    }
    cr_assert_eq(put(f, &m), STORE_STORED);
    cr_assert_eq(put(f, &m), STORE_DUPLICATE);
    m.u.sender[0] ^= 1;
    cr_assert_eq(put(f, &m), STORE_STORED);
    free(bytes);
    const struct store_centre c = centre_of(f); /* verifies */
    cr_assert_eq(c.counted.uploads, 2);
    cr_assert_eq(c.counted.ticks, 2 * m.u.ticks);
    cr_assert_eq(c.removed.uploads, 0);
}
