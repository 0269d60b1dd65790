#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "net/closer.h"

/* A pipe's reading end whose writing end went to the closer: its end of file says that it was closed. */
static int give(struct closer *c, uint32_t uid)
{
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    closer_close(c, uid, ends[1]);
    return ends[0];
}

static void assert_closed(int end)
{
    struct pollfd p = {.fd = end, .events = POLLIN};
    char byte;
    cr_assert_eq(poll(&p, 1, 20000), 1, "the other end was not closed");
    cr_assert_eq(read(end, &byte, 1), 0);
    close(end);
}

/* The count follows the close by a moment. */
static void assert_count(struct closer *c, uint32_t uid, size_t wanted)
{
    for (int i = 0; i < 20000 && closer_count(c, uid) != wanted; i++)
        usleep(1000);
    cr_assert_eq(closer_count(c, uid), wanted);
}

Test(net_closer, descriptors_are_closed_and_counted_by_sender)
{
    struct closer *c;
    int ends[200];
    cr_assert_eq(closer_new(4, &c, NULL), PROFD_OK);
    for (int i = 0; i < 200; i++)
        ends[i] = give(c, i % 2 ? 1000u : 65534u);
    for (int i = 0; i < 200; i++)
        assert_closed(ends[i]);
    assert_count(c, 1000, 0);
    assert_count(c, 65534, 0);
    cr_assert_eq(closer_count(c, 7), 0);
    closer_free(c);
}

Test(net_closer, without_threads_nothing_is_closed_and_nobody_waits)
{
    struct closer *c;
    int end;
    struct pollfd p = {.events = POLLIN};
    cr_assert_eq(closer_new(0, &c, NULL), PROFD_OK);
    end = give(c, 5);
    p.fd = end;
    cr_assert_eq(poll(&p, 1, 0), 0);
    cr_assert_eq(closer_count(c, 5), 1);
    cr_assert_eq(closer_count(c, 6), 0);
    closer_free(c);
    close(end);
}

Test(net_closer, without_a_closer_it_happens_at_once)
{
    assert_closed(give(NULL, 1));
    cr_assert_eq(closer_count(NULL, 1), 0);
    closer_free(NULL);
}
