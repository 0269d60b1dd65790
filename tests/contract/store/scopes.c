/* A scope of several users: what they have together, and nothing that others do. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/store/fixture.h"
#include "tests/contract/store/harvest_fixture.h"

#define FIRST STORE_TENANT
#define SECOND (STORE_TENANT - 1)
#define THIRD (STORE_TENANT - 2)

static const struct store_scope both = {.uid = SECOND, .other_count = 1, .others = {FIRST}};

static void put_program(struct fixture *f, uint32_t uid, uint32_t sequence, const char *id, const char *label)
{
    struct made m;
    make_upload(&m, uid, 1, sequence);
    make_build(&m.builds[0], id, id);
    make_build(&m.builds[1], "bb02", "libone.so");
    add_label(&m, "service", label);
    put(f, &m);
}

static bool add_text(void *context, const struct label_row *row)
{
    strcat(strcat(context, row->value), " ");
    return true;
}

STORE_TEST(a_scope_of_several_users_has_what_they_have_together)
{
    char labels[64] = "";
    struct buildid id;
    uint64_t removed;
    put_program(f, FIRST, 1, "aa01", "one");
    put_program(f, SECOND, 1, "aa01", "two");
    put_program(f, SECOND, 2, "cc03", "two");
    put_program(f, THIRD, 1, "aa01", "three");
    put_program(f, THIRD, 2, "dd04", "three");
    cr_assert_str_eq(list_builds(f, both, "", 9), "aa01=aa01:2 bb02=libone.so:3 cc03=cc03:1 ");
    cr_assert_str_eq(list_builds(f, both, full_id("aa01"), 1), "bb02=libone.so:3 ");
    cr_assert_str_eq(list_all(f, both), "1:u4294967294 s1 n1 2:u4294967293 s1 n1 ");
    OK(f, store_each_label(f->r, &both, NULL, add_text, labels, &f->e));
    cr_assert_str_eq(labels, "one two ");
    OK(f, store_find_build(f->r, &both, "aa01", &id, &f->e));
    OK(f, store_find_build(f->r, &both, full_id("cc03"), &id, &f->e));
    FAILS(f, PROFD_NOT_FOUND, store_find_build(f->r, &both, "dd04", &id, &f->e));
    FAILS(f, PROFD_NOT_FOUND, store_find_build(f->r, &both, full_id("dd04"), &id, &f->e));
    FAILS(f, PROFD_NOT_FOUND, store_delete_build(f->w, &both, full_id("dd04"), &removed, &f->e));
    OK(f, store_delete_build(f->w, &both, full_id("aa01"), &removed, &f->e));
    cr_assert_eq(removed, 2);
    cr_assert_str_eq(list_all(f, everybody), "4:u4294967292 s1 n1 ", "the third has its own");
}

/* Of the program and of the list of builds. */
struct epochs {
    uint64_t program, list;
};

static struct epochs epochs_now(struct fixture *f)
{
    struct store_epoch list;
    OK(f, store_epoch_all(f->r, &both, &list, &f->e));
    return (struct epochs){.program = epoch_of(f, both, "aa01"), .list = list.number};
}

STORE_TEST(epochs_of_several_users_change_with_each_of_them_and_with_no_other)
{
    const struct store_scope first = only(FIRST);
    struct epochs before, after;
    uint64_t removed;
    put_program(f, FIRST, 1, "aa01", "one");
    before = epochs_now(f);
    put_program(f, SECOND, 1, "aa01", "two");
    after = epochs_now(f);
    cr_assert(after.program != before.program && after.list != before.list);
    put_program(f, THIRD, 1, "aa01", "three");
    cr_assert_eq(epochs_now(f).program, after.program);
    cr_assert_eq(epochs_now(f).list, after.list);
    OK(f, store_delete_build(f->w, &first, full_id("aa01"), &removed, &f->e));
    before = epochs_now(f);
    cr_assert_neq(before.program, after.program, "the user with the smaller epoch is gone");
    cr_assert_neq(before.list, after.list);
}

STORE_TEST(a_tenant_counts_no_variants_that_another_has_sent)
{
    const uint32_t uid = FIRST;
    const struct store_scope mine = only(FIRST);
    struct store_senders of = {.uids = &uid, .uid_count = 1, .seen = &mine};
    struct store_naming naming;
    struct made_object o;
    uint8_t *bytes;
    size_t size;
    make_object(&o, "aa01", "v", SECOND, false, "of another");
    OK(f, store_put_object(f->w, &o.o, &f->e));
    make_object(&o, "aa01", "w", 0, true, "trusted");
    OK(f, store_put_object(f->w, &o.o, &f->e));
    OK(f, store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e));
    free(bytes);
    cr_assert_eq(naming.variants, 1);
    of.seen = NULL;
    OK(f, store_get_object(f->r, &of, full_id("aa01"), &bytes, &size, &naming, &f->e));
    free(bytes);
    cr_assert_eq(naming.variants, 2);
}

Test(store_scope, only_the_numbers_of_tenants_are_tenants)
{
    const struct store_scope local = {.uid = 1000}, all = {.all = true}, same = {.uid = SECOND};
    cr_assert(store_is_tenant(STORE_TENANT) && store_is_tenant(STORE_TENANT_LAST));
    cr_assert_not(store_is_tenant(STORE_TENANT_LAST - 1));
    cr_assert_not(store_is_tenant(UINT32_MAX), "no user at all");
    cr_assert(store_scope_has_tenants(&both) && store_scope_has_tenants(&all));
    cr_assert_not(store_scope_has_tenants(&local));
    cr_assert(store_scope_has(&both, FIRST) && store_scope_has(&both, SECOND) && store_scope_has(&all, 5));
    cr_assert_not(store_scope_has(&both, THIRD));
    cr_assert(store_scope_equal(&both, &both) && store_scope_equal(&all, &all));
    cr_assert_not(store_scope_equal(&both, &same) || store_scope_equal(&all, &local));
}

static bool add_reader_text(void *context, const struct store_reader *r)
{
    char *text = context;
    size_t n = strlen(text);
    n += (size_t)snprintf(text + n, 512 - n, "%s%s%s", r->name, r->admin ? "!" : "", r->has_token ? "#" : "");
    for (size_t i = 0; i < r->tenant_count; i++) {
        n += (size_t)snprintf(text + n, 512 - n, " %s=%u", r->tenants[i].name, r->tenants[i].uid);
    }
    snprintf(text + n, 512 - n, "%s; ", r->all ? " all" : "");
    return true;
}

static const char *list_readers(struct fixture *f)
{
    static char text[512];
    text[0] = 0;
    OK(f, store_each_reader(f->r, add_reader_text, text, &f->e));
    return text;
}

STORE_TEST(readers_have_tenants_which_are_made_when_they_are_named_first)
{
    struct store_reader one = {.name = "one", .has_token = true, .hash = {1}, .tenant_count = 2},
                        two = {.name = "two", .admin = true, .tenant_count = 1}, three = {.name = "three", .all = true};
    snprintf(one.tenants[0].name, sizeof one.tenants[0].name, "default");
    snprintf(one.tenants[1].name, sizeof one.tenants[1].name, "red");
    snprintf(two.tenants[0].name, sizeof two.tenants[0].name, "blue");
    OK(f, store_add_reader(f->w, &one, &f->e));
    OK(f, store_add_reader(f->w, &two, &f->e));
    OK(f, store_add_reader(f->w, &three, &f->e));
    cr_assert_str_eq(list_readers(f), "one# red=4294967293 default=4294967294; two! blue=4294967292; three all; ");
    FAILS(f, PROFD_REFUSED, store_add_reader(f->w, &two, &f->e));
    OK(f, store_remove_reader(f->w, "one", &f->e));
    FAILS(f, PROFD_NOT_FOUND, store_remove_reader(f->w, "one", &f->e));
    snprintf(three.name, sizeof three.name, "four");
    three.all = false;
    three.tenant_count = 1;
    snprintf(three.tenants[0].name, sizeof three.tenants[0].name, "red");
    OK(f, store_add_reader(f->w, &three, &f->e));
    cr_assert_str_eq(list_readers(f), "two! blue=4294967292; three all; four red=4294967293; ", "tenants stay");
}
