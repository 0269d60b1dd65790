/* SYNC and the executables asked for. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "requests/requests.h"

Test(session, a_sync_waits_for_what_came_before_and_for_nothing_else)
{
    struct session *s = session_new();
    uint64_t a = session_begin(s), b = session_begin(s), c;
    uint32_t tag = 0;
    bool failed = true;

    cr_assert_not(session_take_granted(s, &tag, &failed));
    cr_assert(session_sync(s, 71));
    c = session_begin(s);
    cr_assert_not(session_take_granted(s, &tag, &failed));
    session_end(s, b);
    cr_assert_not(session_take_granted(s, &tag, &failed));
    session_end(s, c); /* later job, earlier answer */
    cr_assert_not(session_take_granted(s, &tag, &failed));
    session_end(s, a);
    cr_assert(session_take_granted(s, &tag, &failed));
    cr_assert_eq(tag, 71);
    cr_assert_not(session_take_granted(s, &tag, &failed));
    cr_assert(session_sync(s, 72));
    cr_assert(session_take_granted(s, &tag, &failed));
    cr_assert_eq(tag, 72);
    cr_assert_not(failed);
    session_free(s);
}

Test(session, a_job_that_failed_speaks_for_its_own_sync_only)
{
    struct session *s = session_new();
    uint64_t first = session_begin(s), second;
    uint32_t tag = 0;
    bool failed = false;

    cr_assert(session_sync(s, 5));
    second = session_begin(s);
    cr_assert(session_sync(s, 6));
    session_end(s, second);
    cr_assert_not(session_take_granted(s, &tag, &failed));
    session_fail(s, first);
    cr_assert(session_take_granted(s, &tag, &failed) && tag == 5 && failed);
    cr_assert(session_take_granted(s, &tag, &failed) && tag == 6 && !failed);
    session_free(s);
}

/* Against the definition: SYNC i is due when every job begun before it has ended, and they come in order. */
Test(session, random_orders)
{
    unsigned seed = 4711;

    for (int round = 0; round < 500; round++) {
        struct session *s = session_new();
        uint64_t number[200];
        int began_before[200], job_at[200], jobs = 0, syncs = 0, taken = 0;
        bool ended[200] = {false};

        for (int step = 0; step < 200; step++) {
            uint32_t tag;
            bool failed;
            int i = jobs ? rand_r(&seed) % jobs : 0;

            if (rand_r(&seed) % 3 == 0) {
                job_at[jobs] = step;
                number[jobs++] = session_begin(s);
            } else if (jobs && rand_r(&seed) % 4) {
                if (!ended[i]) {
                    session_end(s, number[i]);
                }
                ended[i] = true;
            } else {
                cr_assert(session_sync(s, (uint32_t)syncs));
                began_before[syncs++] = jobs;
            }
            while (session_take_granted(s, &tag, &failed)) {
                cr_assert_eq(tag, (uint32_t)taken, "seed %u", seed);
                for (int j = 0; j < began_before[taken]; j++) {
                    cr_assert(ended[j], "seed %u: job of step %d", seed, job_at[j]);
                }
                taken++;
            }
            if (taken < syncs) {
                bool open = false;

                for (int j = 0; j < began_before[taken]; j++) {
                    open = open || !ended[j];
                }
                cr_assert(open, "seed %u: SYNC %d is due and was not given", seed, taken);
            }
        }
        session_free(s);
    }
}

Test(session, each_build_is_asked_for_once)
{
    struct session *s = session_new();
    struct buildid id;
    int asked = 0;

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) {
            snprintf(id.text, sizeof id.text, "%040x", i);
            asked += session_ask(s, &id);
        }
    }
    cr_assert_eq(asked, 4096);
    snprintf(id.text, sizeof id.text, "%040x", 7);
    cr_assert(!session_ask(s, &id));
    session_answered(s, &id);
    session_answered(s, &id);
    cr_assert(session_ask(s, &id), "what was sent and deleted is asked for again");
    cr_assert(!session_ask(s, &id));
    session_free(s);
}
