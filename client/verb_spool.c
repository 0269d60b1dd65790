/* profctl spool: uploads that wait for a daemon. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/profctl.h"
#include "client/profctl_show.h"

struct listing {
    bool json;
    size_t count;
};

static void entry_print(void *context, const struct profd_spool_entry *entry)
{
    struct listing *l = context;
    char age[32];
    if (l->json) {
        printf("%s{\"name\":\"%s\",\"bytes\":%" PRIu64 ",\"time\":%" PRIu64 "}", l->count ? "," : "", entry->name,
               entry->size, entry->time / 1000000000u);
    } else {
        show_age((int64_t)(entry->time / 1000000000u), (int64_t)time(NULL), age, sizeof age);
        printf("%s %10" PRIu64 " bytes, %s\n", entry->name, entry->size, age);
    }
    l->count++;
}

static enum profd_status spool_show(const struct profctl_call *call, struct profd_error *e)
{
    struct listing l = {.json = call->json};
    if (call->json) {
        printf("{\"rows\":[");
    }
    enum profd_status status = profd_spool_list(entry_print, &l, e);
    if (call->json) {
        printf("]}\n");
    } else if (status == PROFD_OK && l.count == 0) {
        puts("the spool is empty");
    }
    return status;
}

struct flushed {
    size_t stored, waiting, refused;
    enum profd_status first;
};

static void outcome_count(void *context, const struct profd_outcome *o)
{
    struct flushed *f = context;
    if (o->spooled) {
        f->waiting++;
    } else if (o->status == PROFD_OK) {
        f->stored++;
    } else if (o->executable) {
        profctl_complain("%s: %s", o->name, o->sentence);
    } else {
        f->refused++;
        f->first = f->first == PROFD_OK ? o->status : f->first;
        profctl_complain("spool: %s: %s", o->name, o->sentence);
    }
}

static enum profd_status spool_flush(const struct profctl_call *call, struct profd_error *e)
{
    /* Without a daemon an empty delivery would be a success: ask first. */
    struct profd_conn *conn;
    struct profd_delivery *d;
    struct flushed f = {.stored = 0};
    const struct profd_options o = profctl_options(call, 30000);
    enum profd_status status = profd_conn_open(&o, &conn, e);
    if (status != PROFD_OK) {
        return status;
    }
    profd_conn_close(conn);
    status = profd_delivery_open(&o, outcome_count, &f, &d, e);
    if (status != PROFD_OK) {
        return status;
    }
    status = profd_delivery_finish(d, e);
    profd_delivery_close(d);
    if (call->json) {
        printf("{\"stored\":%zu,\"spooled\":%zu,\"refused\":%zu}\n", f.stored, f.waiting, f.refused);
    } else {
        printf("%zu stored, %zu still wait, %zu refused\n", f.stored, f.waiting, f.refused);
    }
    return f.first != PROFD_OK ? f.first : status;
}

static enum profd_status spool_run(const struct profctl_call *call, struct profd_error *e)
{
    const char *word = call->argument_count ? call->arguments[0] : "list";
    if (strcmp(word, "list") == 0) {
        return spool_show(call, e);
    }
    if (strcmp(word, "flush") == 0) {
        return spool_flush(call, e);
    }
    return profd_error_set(e, PROFD_USAGE, "spool: \"%s\" is neither list nor flush", word);
}

const struct profctl_verb verb_spool = {
    .name = "spool",
    .arguments = "[list|flush]",
    .summary = "List or deliver uploads that wait for a daemon",
    .details = "Every upload delivers the spool first, so flush is seldom needed.\n",
    .arguments_most = 1,
    .run = spool_run,
};
