/* Scopes: what one user or tenant has, and nothing that others do. Tokens, which have one. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/store/fixture.h"
#include "tests/contract/store/harvest_fixture.h"

#define FIRST STORE_TENANT
#define SECOND (STORE_TENANT - 1)
#define THIRD (STORE_TENANT - 2)

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

STORE_TEST(a_scope_has_what_its_user_has)
{
    const struct store_scope mine = only(SECOND);
    char labels[64] = "";
    struct buildid id;
    uint64_t removed;
    put_program(f, FIRST, 1, "aa01", "one");
    put_program(f, SECOND, 1, "aa01", "two");
    put_program(f, SECOND, 2, "cc03", "two");
    put_program(f, FIRST, 2, "dd04", "one");
    cr_assert_str_eq(list_builds(f, mine, "", 9), "aa01=aa01:1 bb02=libone.so:2 cc03=cc03:1 ");
    cr_assert_str_eq(list_builds(f, mine, full_id("aa01"), 1), "bb02=libone.so:2 ");
    OK(f, store_each_label(f->r, &mine, NULL, add_text, labels, &f->e));
    cr_assert_str_eq(labels, "two ");
    OK(f, store_find_build(f->r, &mine, "aa01", &id, &f->e));
    FAILS(f, PROFD_NOT_FOUND, store_find_build(f->r, &mine, "dd04", &id, &f->e));
    FAILS(f, PROFD_NOT_FOUND, store_delete_build(f->w, &mine, full_id("dd04"), &removed, &f->e));
    OK(f, store_delete_build(f->w, &mine, full_id("aa01"), &removed, &f->e));
    cr_assert_eq(removed, 1);
    cr_assert_str_eq(list_builds(f, only(FIRST), "", 9), "aa01=aa01:1 bb02=libone.so:2 dd04=dd04:1 ");
}

STORE_TEST(the_epoch_of_a_scope_changes_with_its_user_alone)
{
    const struct store_scope mine = only(FIRST);
    struct store_epoch before, after;
    uint64_t program;
    put_program(f, FIRST, 1, "aa01", "one");
    program = epoch_of(f, mine, "aa01");
    OK(f, store_epoch_all(f->r, &mine, &before, &f->e));
    put_program(f, SECOND, 1, "aa01", "two");
    OK(f, store_epoch_all(f->r, &mine, &after, &f->e));
    cr_assert(epoch_of(f, mine, "aa01") == program && after.number == before.number);
    put_program(f, FIRST, 2, "aa01", "one");
    OK(f, store_epoch_all(f->r, &mine, &after, &f->e));
    cr_assert(epoch_of(f, mine, "aa01") != program && after.number != before.number);
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
    const struct store_scope local = {.uid = 1000}, all = {.all = true}, tenant = {.uid = SECOND};
    cr_assert(store_is_tenant(STORE_TENANT) && store_is_tenant(STORE_TENANT_LAST));
    cr_assert_not(store_is_tenant(STORE_TENANT_LAST - 1));
    cr_assert_not(store_is_tenant(UINT32_MAX), "no user at all");
    cr_assert(store_scope_has_tenants(&tenant) && store_scope_has_tenants(&all));
    cr_assert_not(store_scope_has_tenants(&local));
    cr_assert(store_scope_has(&tenant, SECOND) && store_scope_has(&all, 5));
    cr_assert_not(store_scope_has(&tenant, THIRD));
    cr_assert(store_scope_equal(&tenant, &tenant) && store_scope_equal(&all, &all));
    cr_assert_not(store_scope_equal(&tenant, &local) || store_scope_equal(&all, &local));
}

static bool add_token_text(void *context, const struct store_token *t)
{
    char *text = context;
    size_t n = strlen(text);
    snprintf(text + n, 512 - n, "%s:%u%s %s=%u%s; ", t->name, t->rights, t->has_hash ? "#" : "", t->tenant, t->uid,
             t->hosts);
    return true;
}

static const char *list_tokens(struct fixture *f)
{
    static char text[512];
    text[0] = 0;
    OK(f, store_each_token(f->r, add_token_text, text, &f->e));
    return text;
}

STORE_TEST(tokens_have_a_tenant_which_is_made_when_it_is_named_first)
{
    struct store_token one = {
        .name = "one", .rights = STORE_MAY_WRITE, .has_hash = true, .hash = {1}, .tenant = "red", .hosts = "node-*"};
    struct store_token two = {.name = "two", .rights = STORE_MAY_READ | STORE_MAY_ADMIN, .tenant = "blue"};
    struct store_token three = {.name = "three", .rights = STORE_MAY_READ, .all = true, .tenant = "all"}, four = two;
    uint64_t id = 0;
    OK(f, store_add_token(f->w, &one, &f->e));
    OK(f, store_add_token(f->w, &two, &f->e));
    OK(f, store_add_token(f->w, &three, &f->e));
    cr_assert_str_eq(list_tokens(f), "one:2# red=4294967293node-*; two:5 blue=4294967292; three:1 all=4294967295; ");
    cr_assert(one.uid == SECOND && two.uid == THIRD && three.uid == UINT32_MAX);
    FAILS(f, PROFD_REFUSED, store_add_token(f->w, &two, &f->e));
    OK(f, store_remove_token(f->w, "two", &id, &f->e));
    cr_assert_eq(id, two.id);
    FAILS(f, PROFD_NOT_FOUND, store_remove_token(f->w, "two", &id, &f->e));
    OK(f, store_remove_token(f->w, "three", &id, &f->e));
    snprintf(four.name, sizeof four.name, "four");
    OK(f, store_add_token(f->w, &four, &f->e));
    cr_assert_str_eq(list_tokens(f), "one:2# red=4294967293node-*; four:5 blue=4294967292; ", "tenants stay");
    cr_assert_gt(four.id, three.id, "no number is used again");
}
