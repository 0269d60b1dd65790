/* profd-relay: see profd-relay(8). A signal ends it at any point: a segment that profd does not know to be committed is
 * delivered again, and the centre counts it once. */
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "config/config.h"
#include "log/log.h"
#include "log/notify.h"
#include "proto/noun.h"
#include "relay/flush.h"
#include "relay/stream.h"
#include "relay/wait.h"
#include "tls/tls_context.h"

static uint32_t relay_draw(void)
{
    uint32_t random;

    return getrandom(&random, sizeof random, 0) == sizeof random ? random : (uint32_t)stream_now();
}

static void relay_sleep(uint64_t ms)
{
    const struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    (void)nanosleep(&t, NULL);
}

/* One flush; what changed is logged. last: the sentence of the flush before, "" if that succeeded. */
static enum profd_status relay_flush(const struct config *c, struct profd_error *last, struct flush *f)
{
    struct profd_error e = {""};
    const enum profd_status status = flush_run(c, last->sentence, f, &e);

    if (status && strcmp(e.sentence, last->sentence) != 0) {
        log_write(LOG_LEVEL_WARNING, "flush", "%s", e.sentence);
    } else if (!status && *last->sentence) {
        log_write(LOG_LEVEL_NOTICE, NULL, "the centre answers again");
    }
    if (*f->symbols.sentence) {
        log_write(LOG_LEVEL_WARNING, "symbols", "%s", f->symbols.sentence);
    }
    if (f->delivered) {
        log_write(LOG_LEVEL_INFO, NULL, "%u of %u %s acknowledged", f->acknowledged, f->delivered,
                  noun_for(f->delivered, "segment was", "segments were"));
    }
    *last = status ? e : (struct profd_error){""};
    return status;
}

/* What fails is in the log. */
static enum profd_status relay_run(const struct config *c)
{
    struct profd_error last = {""};
    enum profd_status status;
    struct flush f;

    tls_init();
    (void)notify_open();
    notify_send("READY=1");
    if (!c->values[CONFIG_relay_once]) {
        relay_sleep(wait_first(c->relay_interval, relay_draw()));
    }
    for (;;) {
        status = relay_flush(c, &last, &f);
        if (c->values[CONFIG_relay_once]) {
            return status;
        }
        relay_sleep(wait_next(&f, c->relay_interval, relay_draw()));
        log_flush();
    }
}

int main(int argc, char *argv[])
{
    struct config config;
    struct profd_error e = {""};
    bool run;
    enum profd_status status = config_start(OF_RELAY, argc, argv, &config, &run, &e);

    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
    } else if (run) {
        status = relay_run(&config);
    }
    config_done(&config);
    return profd_status_exit(status);
}
