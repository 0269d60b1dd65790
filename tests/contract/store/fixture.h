/* A store for one test: writes go through a writing handle, reads through a reading one, so that what is tested is what
 * another thread would see. The file is in memory where there is /dev/shm. */
#ifndef PROFD_TESTS_STORE_FIXTURE_H
#define PROFD_TESTS_STORE_FIXTURE_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct fixture {
    char directory[64], path[96];
    struct store *w, *r;
    struct profd_error e;
};

void fixture_open(struct fixture *f);
/* Closes and opens again. */
void fixture_reopen(struct fixture *f);
void fixture_close(struct fixture *f);
/* The number that a query of one row and column gives, from the file. */
int64_t fixture_count(const struct fixture *f, const char *sql);

#define STORE_TEST(name)                                                                                               \
    static void name##_body(struct fixture *f);                                                                        \
    Test(store_sqlite, name)                                                                                           \
    {                                                                                                                  \
        struct fixture f;                                                                                              \
        fixture_open(&f);                                                                                              \
        name##_body(&f);                                                                                               \
        fixture_close(&f);                                                                                             \
    }                                                                                                                  \
    static void name##_body(struct fixture *f)

#define OK(f, call) cr_assert_eq((call), PROFD_OK, "%s: %s", #call, (f)->e.sentence)
#define FAILS(f, status, call) cr_assert_eq((call), (status), "%s", #call)

#define HOUR INT64_C(3600000000000)
#define NOON INT64_C(1760000000000000000)
extern const struct store_scope everybody;
struct store_scope only(uint32_t uid);

/* A plain upload: program "aa01…" with library "bb02…" (both padded to 40 digits), one second long, from sender n. */
struct made {
    struct store_upload u;
    struct store_build builds[8];
    struct store_label labels[8];
    char counts[64];
};
void make_upload(struct made *m, uint32_t uid, unsigned sender, uint32_t sequence);
void make_build(struct store_build *b, const char *id, const char *name);
/* 40 digits that begin with the prefix. */
const char *full_id(const char *prefix);
void add_label(struct made *m, const char *name, const char *value);
enum store_outcome put(struct fixture *f, struct made *m);

/* What each_upload gives, as text: "commit:counts " for each. */
const char *list_uploads(struct fixture *f, struct store_scope scope, const struct store_filter *filter);
/* Uploads of the usual program. */
const char *list_all(struct fixture *f, struct store_scope scope);
const char *list_builds(struct fixture *f, struct store_scope scope, const char *after, size_t limit);

struct made_object {
    struct store_object o;
};
void make_object(struct made_object *m, const char *build_id, const char *variant, uint32_t uid, bool trusted,
                 const char *content);
/* Content of the object for these uids, "" if none. */
const char *get_content(struct fixture *f, const char *build_id, size_t n, const uint32_t *uids, uint32_t *variants);

#endif
