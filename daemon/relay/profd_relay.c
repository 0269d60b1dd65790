/* profd-relay: see profd-relay(8). A signal ends it at any point: an upload that profd does not know to be committed is
 * sent again, and the centre counts it once. */
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/notify.h"
#include "proto/noun.h"
#include "relay/round.h"
#include "relay/talk.h"

static uint32_t relay_draw(void)
{
    uint32_t random;

    return getrandom(&random, sizeof random, 0) == sizeof random ? random : (uint32_t)stream_now();
}

/* Waits until the next connection. SIGHUP, which is blocked everywhere else so that it interrupts no connection,
 * reloads the configuration; after an error the old one stays. Then the wait is at most as long as after a start. The
 * token is read for each request. */
static void relay_wait(int argc, char *const argv[], struct config *c, uint64_t ms)
{
    int64_t end = stream_now() + (int64_t)ms, now;
    sigset_t hup;

    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    while ((now = stream_now()) < end) {
        const struct timespec t = {(time_t)((end - now) / 1000), (long)((end - now) % 1000) * 1000000};
        struct config_change change;
        struct profd_error e;
        struct config old;

        if (sigtimedwait(&hup, NULL, &t) != SIGHUP) {
            continue;
        }
        if (config_reload(OF_RELAY, argc, argv, c, &old, &change, &e)) {
            log_write(LOG_LEVEL_ERROR, NULL, "the configuration stays as it was: %s", e.sentence);
        } else {
            config_done(&old);
            log_open(c->log_level);
            config_log_change(&change);
        }
        now = stream_now() + (int64_t)wait_first(c->relay_interval, relay_draw());
        end = now < end ? now : end;
    }
}

/* The errors that were logged since the centre last answered. */
struct relay_said {
    struct profd_error last; /* of the attempt before, "" if that succeeded */
    unsigned count;
    uint64_t hashes[8]; /* of the sentences: each is logged once */
};

static bool relay_is_said(struct relay_said *s, const char *sentence)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    while (*sentence) {
        hash = (hash ^ (uint8_t)*sentence++) * UINT64_C(1099511628211);
    }
    for (unsigned i = 0; i < s->count && i < sizeof s->hashes / sizeof *s->hashes; i++) {
        if (s->hashes[i] == hash) {
            return true;
        }
    }
    s->hashes[s->count++ % (sizeof s->hashes / sizeof *s->hashes)] = hash;
    return false;
}

/* Runs a round, and logs its result. */
static enum profd_status relay_round(struct round *round, const struct config *c, struct relay_said *said,
                                     struct round_pause *pause)
{
    struct profd_error e = {""};
    struct round_report report;
    const enum profd_status status = round_run(round, c, said->last.sentence, &report, &e);

    /* Each line is logged once until the centre answers. */
    if (status && !relay_is_said(said, e.sentence)) {
        log_write(LOG_LEVEL_WARNING, "round", "%s", e.sentence);
    } else if (!status && *said->last.sentence) {
        log_write(LOG_LEVEL_NOTICE, NULL, "the centre answers again");
    }
    if (!status) {
        said->count = 0;
    }
    if (*report.symbols.sentence && !relay_is_said(said, report.symbols.sentence)) {
        log_write(LOG_LEVEL_WARNING, "symbols", "%s", report.symbols.sentence);
    }
    said->last = status ? e : (struct profd_error){""};
    if (report.delivered) {
        log_write(LOG_LEVEL_INFO, NULL, "%llu of %llu %s counted by the centre", (unsigned long long)report.counted,
                  (unsigned long long)report.delivered, noun_for(report.delivered, "upload was", "uploads were"));
    }
    *pause = report.pause;
    return status;
}

int main(int argc, char *argv[])
{
    struct relay_said said = {.count = 0};
    struct round_pause pause;
    struct config config;
    struct profd_error e = {""};
    struct round *round = NULL;
    sigset_t hup;
    bool run;

    enum profd_status status = config_start(OF_RELAY, argc, argv, &config, &run, &e);
    if (!status && run) {
        status = round_new(&round, &e);
    }
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
    } else if (run && config.values[CONFIG_relay_once]) {
        status = relay_round(round, &config, &said, &pause); /* errors are logged */
    } else if (run) {
        sigemptyset(&hup);
        sigaddset(&hup, SIGHUP);
        sigprocmask(SIG_BLOCK, &hup, NULL);
        (void)notify_open();
        notify_send("READY=1");
        relay_wait(argc, argv, &config, wait_first(config.relay_interval, relay_draw()));
        for (;;) {
            (void)relay_round(round, &config, &said, &pause);
            relay_wait(argc, argv, &config, wait_round(&pause, relay_draw()));
            log_flush();
        }
    }
    round_free(round);
    config_done(&config);
    return profd_status_exit(status);
}
