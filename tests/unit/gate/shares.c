/* Memory of the gate for frames that are received: what the hosts of one tenant leave to those of another. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/hostconns_internal.h"

#define HOSTS 60
#define FRAME (1000u << 10)

static struct hostconns all;

static struct hostconn *connect_host(const char *tenant, unsigned number)
{
    struct hostconn *c = calloc(1, sizeof *c);

    cr_assert(c);
    c->all = &all;
    c->frame = (struct frame){.length = FRAME, .type = FRAME_DELIVER};
    (void)snprintf(c->host.tenant, sizeof c->host.tenant, "%s", tenant);
    (void)snprintf((char *)c->host.host, sizeof c->host.host, "%.4s%u", tenant, number);
    TAILQ_INSERT_TAIL(&all.conns, c, next);
    return c;
}

static void setup(void)
{
    memset(&all, 0, sizeof all);
    TAILQ_INIT(&all.conns);
    for (size_t i = 0; i < HOSTCONN_WAITS; i++) {
        TAILQ_INIT(&all.queues[i]);
    }
}

static void teardown(void)
{
    struct hostconn *c;

    while ((c = TAILQ_FIRST(&all.conns)) != NULL) {
        TAILQ_REMOVE(&all.conns, c, next);
        free(c->bytes);
        free(c);
    }
}

TestSuite(gate_shares, .init = setup, .fini = teardown);

Test(gate_shares, hosts_of_one_tenant_leave_as_much_as_they_have)
{
    unsigned taken = 0;

    for (unsigned i = 0; i < HOSTS; i++) {
        taken += hostconn_take_memory(connect_host("shop", i));
    }
    cr_assert(taken >= 5 && all.memory <= LIMIT_GATE_BYTES / 2 + 2 * FRAME, "%u frames, %zu bytes", taken, all.memory);
    for (unsigned i = 0; i < 5; i++) {
        struct hostconn *c = connect_host("bank", i);

        cr_assert(hostconn_take_memory(c) && c->wait == HOSTCONN_READY, "host %u of another tenant waits", i);
    }
}

/* Large frames: the next is one of another tenant, however many hosts of the first wait. */
Test(gate_shares, large_frames_of_tenants_take_turns)
{
    struct hostconn *list[4], *bank;

    for (unsigned i = 0; i < 4; i++) {
        list[i] = connect_host("shop", i);
        list[i]->frame.length = 40u << 20;
        (void)hostconn_take_memory(list[i]);
    }
    cr_assert(list[0]->bytes && !list[1]->bytes && list[1]->wait == HOSTCONN_FOR_HOST);
    bank = connect_host("bank", 0);
    bank->frame.length = 20u << 20;
    cr_assert(hostconn_take_memory(bank), "what is left is for others");
    hostconn_drop_frame(bank);
    bank->frame.length = 40u << 20;
    cr_assert(!hostconn_take_memory(bank) && bank->wait == HOSTCONN_FOR_LARGE);
    hostconn_drop_frame(list[0]);
    cr_assert(!hostconn_take_memory(list[1]), "it is the other's turn");
    cr_assert(hostconn_take_memory(bank));
}

Test(gate_shares, a_tenant_that_waits_goes_on_when_its_own_hosts_have_ended)
{
    struct hostconn *list[HOSTS], *last;

    for (unsigned i = 0; i < HOSTS; i++) {
        list[i] = connect_host("shop", i);
        (void)hostconn_take_memory(list[i]);
    }
    last = list[HOSTS - 1];
    cr_assert_eq(last->wait, HOSTCONN_FOR_HOST);
    for (unsigned i = 0; i < HOSTS && !last->bytes; i++) {
        if (list[i]->bytes) {
            all.memory -= list[i]->charge;
            free(list[i]->bytes);
            list[i]->bytes = NULL;
            list[i]->charge = 0;
            (void)hostconn_take_memory(last);
        }
    }
    cr_assert(last->bytes && last->wait == HOSTCONN_READY);
}
