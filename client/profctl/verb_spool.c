/* profctl spool: uploads that wait for a daemon. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profctl/profctl.h"
#include "profctl/profctl_json.h"
#include "profctl/profctl_show.h"

struct listing {
    json_t *rows; /* NULL: text is printed */
    size_t count;
};

static void entry_print(void *context, const struct profd_spool_entry *entry)
{
    struct listing *l = context;
    char age[32];
    if (l->rows) {
        (void)json_array_append_new(l->rows,
                                    json_pack("{s:s,s:I,s:I}", "name", entry->name, "bytes", json_count(entry->size),
                                              "time", json_count(entry->time / 1000000000u)));
    } else {
        show_age((int64_t)(entry->time / 1000000000u), (int64_t)time(NULL), age, sizeof age);
        printf("%s %10" PRIu64 " bytes, %s\n", entry->name, entry->size, age);
    }
    l->count++;
}

static enum profd_status spool_show(const struct profctl_call *call, struct profd_error *e)
{
    struct listing l = {.rows = call->json ? json_array() : NULL};
    enum profd_status status = profd_spool_list(entry_print, &l, e);
    if (call->json && status == PROFD_OK) {
        return json_print(json_pack("{s:o}", "rows", l.rows), e);
    }
    json_decref(l.rows);
    if (status == PROFD_OK && l.count == 0) {
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
        if (o->sentence[0] != '\0') {
            profctl_complain("%s", o->sentence);
        }
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
        enum profd_status printed = json_print(json_pack("{s:I,s:I,s:I}", "stored", json_count(f.stored), "spooled",
                                                         json_count(f.waiting), "refused", json_count(f.refused)),
                                               e);
        status = status == PROFD_OK ? printed : status;
    } else {
        printf("%zu stored, %zu still in the spool, %zu refused\n", f.stored, f.waiting, f.refused);
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
    return profd_error_set(e, PROFD_USAGE, "spool: the command must be list or flush, not \"%s\"", word);
}

const struct profctl_verb verb_spool = {
    .name = "spool",
    .arguments = "[list|flush]",
    .summary = "List or deliver the uploads in the spool",
    .details = "Every profctl upload delivers the spool first, so flush is rarely needed.\n",
    .arguments_most = 1,
    .run = spool_run,
};
