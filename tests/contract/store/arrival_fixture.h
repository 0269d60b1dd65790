/* Hosts that send segments to a centre. */
#ifndef PROFD_TESTS_STORE_ARRIVAL_FIXTURE_H
#define PROFD_TESTS_STORE_ARRIVAL_FIXTURE_H

#include "tests/contract/store/harvest_fixture.h"

#define MOST 64
#define PROGRAM .build_id = full_id("aa01")

/* A host, and what it has sealed. */
struct sender {
    struct fixture store;
    uint8_t identity[STORE_HOST_SIZE];
    struct segment segments[MOST];
    struct store_delivery list[MOST];
    uint8_t *bytes[MOST];
    size_t n;
};

/* Seals up to eight segments and adds them to the list. */
void seal(struct sender *s);
/* A new epoch. */
void begin(struct sender *s, unsigned second);
struct sender *open_sender(uint8_t identity);
void forget_sealed(struct sender *s);
void close_sender(struct sender *s);
void put_at(struct sender *s, unsigned process, uint32_t sequence, int64_t end, uint64_t n);
/* Eight segments of eight hours. */
struct sender *eight_hours(uint8_t identity);

/* At the centre. admit: was the host restored? */
bool admit(struct fixture *f, const struct sender *s, const char *name, int64_t clock, uint64_t number);
struct store_receipt deliver(struct fixture *f, const struct store_delivery *d);
/* After a round of verification that finds nothing. */
struct store_centre centre_of(struct fixture *f);
/* host: NULL: of all. */
uint32_t marks(struct fixture *f, int64_t since, int64_t until, const char *host);

#endif
