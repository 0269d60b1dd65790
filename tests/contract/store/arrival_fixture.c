/* Hosts that send segments, made by stores of hosts. */
#include "tests/contract/store/arrival_fixture.h"

#include <stdlib.h>
#include <string.h>

static bool take(void *context, const struct store_segment *x)
{
    struct sender *s = context;
    struct store_delivery *d = &s->list[s->n];
    struct profd_error e;
    s->bytes[s->n] = malloc(x->size);
    memcpy(s->bytes[s->n], x->bytes, x->size);
    cr_assert_eq(segment_decode(x->bytes, x->size, &s->segments[s->n], &e), PROFD_OK, "%s", e.sentence);
    *d = (struct store_delivery){.sequence = x->sequence,
                                 .segment = &s->segments[s->n],
                                 .bytes = s->bytes[s->n],
                                 .size = x->size,
                                 .received = NOON + DAY};
    memcpy(d->host, s->identity, sizeof d->host);
    memcpy(d->epoch, x->epoch, sizeof d->epoch);
    segment_digest(x->bytes, x->size, d->digest);
    s->n++;
    return true;
}

void seal(struct sender *s)
{
    uint64_t sealed;
    const size_t before = s->n;
    uint64_t again;
    OK(&s->store,
       store_relay_meet(s->store.w, NULL, (const uint8_t[STORE_INCARNATION_SIZE]){0}, 0, &again, &s->store.e));
    OK(&s->store, store_seal_segments(s->store.w, UINT64_MAX, NOON, &sealed, &s->store.e));
    OK(&s->store, store_each_segment(s->store.w, 0, take, s, &s->store.e));
    for (size_t i = before; i < s->n; i++) {
        struct store_acknowledgement a = {.sequence = s->list[i].sequence, .number = i + 1};
        memcpy(a.epoch, s->list[i].epoch, sizeof a.epoch);
        OK(&s->store, store_acknowledge_segments(s->store.w, &a, 1, NOON, &s->store.e));
    }
}

void begin(struct sender *s, unsigned second)
{
    const uint8_t epoch[SEGMENT_EPOCH_SIZE] = {1, 2, 3, (uint8_t)second, s->identity[0]};
    OK(&s->store, store_relay_begin(s->store.w, epoch, 0, &s->store.e));
}

struct sender *open_sender(uint8_t identity)
{
    struct sender *s = calloc(1, sizeof *s);
    fixture_open(&s->store);
    memset(s->identity, identity, sizeof s->identity);
    begin(s, identity);
    return s;
}

void forget_sealed(struct sender *s)
{
    for (size_t i = 0; i < s->n; i++) {
        segment_done(&s->segments[i]);
        free(s->bytes[i]);
    }
    s->n = 0;
}

void close_sender(struct sender *s)
{
    forget_sealed(s);
    fixture_close(&s->store);
    free(s);
}

void put_at(struct sender *s, unsigned process, uint32_t sequence, int64_t end, uint64_t n)
{
    struct made m;
    make_counted(&m, 1, process, sequence, end, n);
    cr_assert_eq(put_counted(&s->store, &m), STORE_STORED);
}

struct sender *eight_hours(uint8_t identity)
{
    struct sender *s = open_sender(identity);
    for (unsigned i = 0; i < 24; i++) {
        put_at(s, 1 + i % 3, 1 + i / 3, MIDNIGHT + i % 8 * HOUR + i, 5 + i);
    }
    seal(s);
    cr_assert_eq(s->n, 8);
    return s;
}

bool admit(struct fixture *f, const struct sender *s, const char *name, int64_t clock, uint64_t number)
{
    struct store_arrival a = {.name = name, .clock = clock, .number = number, .now = NOON + DAY};
    struct store_admission admission;
    memcpy(a.host, s->identity, sizeof a.host);
    OK(f, store_admit_hosts(f->w, &a, 1, &admission, &f->e));
    return admission.restored;
}

struct store_receipt deliver(struct fixture *f, const struct store_delivery *d)
{
    struct store_receipt r;
    OK(f, store_put_segments(f->w, d, 1, &r, &f->e));
    return r;
}

struct store_centre centre_of(struct fixture *f)
{
    struct store_centre c;
    OK(f, store_get_centre(f->r, &c, &f->e));
    expect_clean(f);
    return c;
}

/* What each mark in a window says. */
struct marks_seen {
    const char *host;
    int64_t from, to; /* hours */
    uint32_t reasons;
};

static bool see_mark(void *context, const struct store_mark *m)
{
    struct marks_seen *seen = context;
    cr_assert(m->hour >= seen->from && m->hour <= seen->to, "an hour of the window");
    cr_assert(!seen->host || !m->host || strcmp(m->host, seen->host) == 0, "a host that was asked for");
    seen->reasons |= m->reasons;
    return true;
}

uint32_t marks(struct fixture *f, int64_t since, int64_t until, const char *host)
{
    const struct store_matcher m = {.name = "host", .value = host};
    const struct store_filter filter = {.since = since, .until = until, .matcher_count = host ? 1 : 0, .matchers = &m};
    const struct store_scope other = only(1);
    uint32_t reasons = 99;
    OK(f, store_get_marks(f->r, &other, &filter, STORE_OF_ALL, &reasons, &f->e));
    cr_assert_eq(reasons, 0, "users of this machine read nothing of hosts");
    OK(f, store_get_marks(f->r, &everybody, &filter, STORE_OF_ALL, &reasons, &f->e));
    struct marks_seen seen = {.host = host,
                              .from = since > 0 ? since / SEGMENT_HOUR : 0,
                              .to = until > 0 ? (until - 1) / SEGMENT_HOUR : INT64_MAX};
    OK(f, store_each_mark(f->r, &other, &filter, see_mark, &seen, &f->e));
    cr_assert_eq(seen.reasons, 0);
    OK(f, store_each_mark(f->r, &everybody, &filter, see_mark, &seen, &f->e));
    cr_assert_eq(seen.reasons, reasons, "each mark, and all of them");
    return reasons;
}
