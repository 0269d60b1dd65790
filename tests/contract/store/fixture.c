/* Opens a store for one test of the contract of store.h, and makes the uploads that several contracts share. */
#include "tests/contract/store/fixture.h"

#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct store_scope everybody = {.all = true};

struct store_scope only(uint32_t uid)
{
    return (struct store_scope){.uid = uid};
}

static void open_handles(struct fixture *f)
{
    OK(f, store_sqlite_open_writer(f->path, &f->w, &f->e));
    OK(f, store_sqlite_open_reader(f->path, &f->r, &f->e));
}

static void close_handles(struct fixture *f)
{
    store_close(f->r);
    store_close(f->w);
}

void fixture_open(struct fixture *f)
{
    *f = (struct fixture){.w = NULL};
    snprintf(f->directory, sizeof f->directory, "%s/profd-store-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    cr_assert(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/profd.db", f->directory);
    open_handles(f);
}

void fixture_reopen(struct fixture *f)
{
    close_handles(f);
    open_handles(f);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void fixture_close(struct fixture *f)
{
    close_handles(f);
    nftw(f->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *full_id(const char *prefix)
{
    static char ids[8][41];
    static unsigned next;
    char *id = ids[next++ % 8];
    memset(id, '0', 40);
    id[40] = 0;
    memcpy(id, prefix, strlen(prefix));
    return id;
}

void make_build(struct store_build *b, const char *id, const char *name)
{
    *b = (struct store_build){.name = name, .nanoseconds = 10, .calls = 3};
    snprintf(b->id.text, sizeof b->id.text, "%s", full_id(id));
}

void make_upload(struct made *m, uint32_t uid, unsigned sender, uint32_t sequence)
{
    memset(m, 0, sizeof *m);
    make_build(&m->builds[0], "aa01", "/usr/bin/program");
    make_build(&m->builds[1], "bb02", "libone.so");
    snprintf(m->counts, sizeof m->counts, "u%u s%u n%u", uid, sender, (unsigned)sequence);
    m->u = (struct store_upload){.host = "0123456789abcdef0123456789abcdef",
                                 .uid = uid,
                                 .sequence = sequence,
                                 .received = NOON,
                                 .start = NOON - HOUR / 3600,
                                 .end = NOON,
                                 .processes_started = sequence == 1,
                                 .builds = m->builds,
                                 .build_count = 2,
                                 .labels = m->labels,
                                 .counts = (const uint8_t *)m->counts,
                                 .counts_size = strlen(m->counts),
                                 .ticks = 7,
                                 .calls = 5};
    memcpy(m->u.sender, &sender, sizeof sender);
    m->u.sender[11] = 1;
}

void add_label(struct made *m, const char *name, const char *value)
{
    m->labels[m->u.label_count++] = (struct store_label){.name = name, .value = value};
}

enum store_outcome put(struct fixture *f, struct made *m)
{
    enum store_outcome outcome;
    OK(f, store_put_uploads(f->w, &m->u, 1, &outcome, &f->e));
    return outcome;
}

static char listing[65536];

static enum profd_status append_upload(void *context, const struct store_row *row, struct profd_error *e)
{
    (void)e;
    size_t *n = context;
    cr_assert(*n + row->counts_size + 32 < sizeof listing);
    *n += (size_t)snprintf(listing + *n, sizeof listing - *n, "%llu:%.*s ", (unsigned long long)row->commit,
                           (int)row->counts_size, (const char *)row->counts);
    return PROFD_OK;
}

const char *list_uploads(struct fixture *f, struct store_scope scope, const struct store_filter *filter)
{
    size_t n = 0;
    listing[0] = 0;
    OK(f, store_each_upload(f->r, &scope, filter, append_upload, &n, &f->e));
    return listing;
}

const char *list_all(struct fixture *f, struct store_scope scope)
{
    return list_uploads(f, scope, &(struct store_filter){.build_id = full_id("aa01")});
}

static bool append_build(void *context, const struct build_row *row)
{
    size_t *n = context;
    *n += (size_t)snprintf(listing + *n, sizeof listing - *n, "%.4s=%s:%llu ", row->build_id.text, row->name,
                           (unsigned long long)row->uploads);
    return true;
}

const char *list_builds(struct fixture *f, struct store_scope scope, const char *after, size_t limit)
{
    size_t n = 0;
    listing[0] = 0;
    OK(f, store_each_build(f->r, &scope, after, limit, append_build, &n, &f->e));
    return listing;
}

void make_object(struct made_object *m, const char *build_id, const char *variant, uint32_t uid, bool trusted,
                 const char *content)
{
    *m = (struct made_object){{.uid = uid,
                               .trusted = trusted,
                               .has_names = true,
                               .encoded = (const uint8_t *)content,
                               .encoded_size = strlen(content),
                               .bounds = (const uint8_t *)content,
                               .bounds_size = strlen(content),
                               .name = "file",
                               .note = "",
                               .received = NOON}};
    snprintf(m->o.id.text, sizeof m->o.id.text, "%s", full_id(build_id));
    snprintf(m->o.variant, sizeof m->o.variant, "%s", variant);
}

const char *get_content(struct fixture *f, const char *build_id, size_t n, const uint32_t *uids, uint32_t *variants)
{
    static char text[256];
    uint8_t *bytes;
    size_t size;
    struct store_naming v;
    const struct store_senders of = {.uids = uids, .uid_count = n};
    enum profd_status status = store_get_object(f->r, &of, full_id(build_id), &bytes, &size, &v, &f->e);
    if (status == PROFD_NOT_FOUND) {
        return "";
    }
    cr_assert_eq(status, PROFD_OK, "%s", f->e.sentence);
    snprintf(text, sizeof text, "%.*s", (int)size, (const char *)bytes);
    free(bytes);
    if (variants) {
        *variants = v.variants;
    }
    return text;
}

int64_t fixture_count(const struct fixture *f, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *q;
    cr_assert_eq(sqlite3_open(f->path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(q), SQLITE_ROW);
    const int64_t n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(db);
    return n;
}
