/* Profiles of other tools: what becomes of frames, names and values, and that names stay where they are. */
#include "ingest/foreign.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/bounds.h"
#include "core/object.h"
#include "tests/unit/ingest/bed.h"

#define TEXT(t) ((struct foreign_text){(t), strlen(t)})

static struct foreign_names *names;
static struct build_cache *cache;

static void enter(void)
{
    bed_open();
    cr_assert_eq(foreign_names_new(&names, &sentence), PROFD_OK);
    cr_assert_eq(build_cache_new(store, &cache, &sentence), PROFD_OK);
}

static void leave(void)
{
    build_cache_free(cache);
    foreign_names_free(names);
    bed_close();
}

TestSuite(ingest_foreign, .init = enter, .fini = leave);

static struct foreign *begin(uint8_t id)
{
    const uint8_t bytes[UPLOAD_SENDER_SIZE] = {id, 1};
    const struct foreign_head head = {.uid = 7,
                                      .received = NOON,
                                      .start = (uint64_t)(NOON - MINUTE),
                                      .end = (uint64_t)NOON,
                                      .service = TEXT("shop"),
                                      .id = id ? bytes : NULL};
    struct foreign *f;
    cr_assert_eq(foreign_new(names, &head, &f, &sentence), PROFD_OK);
    return f;
}

static struct foreign_clock ticks_of_100(void)
{
    const struct foreign_type type = {FOREIGN_TEXT("samples"), FOREIGN_TEXT("count"), FOREIGN_TEXT("cpu"),
                                      FOREIGN_TEXT("nanoseconds"), 10000000};
    struct foreign_clock c;
    foreign_choose_clock(&type, &c);
    return c;
}

static struct foreign_frame take_name(struct foreign *f, const char *name)
{
    struct foreign_frame frame;
    cr_assert_eq(foreign_take_name(f, FOREIGN_TEXT("cpython"), TEXT(name), TEXT("app.py"), &frame, &sentence),
                 PROFD_OK);
    return frame;
}

/* A profile with a stack for each name: it, called by main. */
static struct foreign *profile_of(uint8_t id, size_t n, const char *const *list)
{
    const struct foreign_clock clock = ticks_of_100();
    struct foreign *f = begin(id);
    for (size_t i = 0; i < n; i++) {
        const struct foreign_frame frames[] = {take_name(f, list[i]), take_name(f, "main")};
        cr_assert_eq(foreign_add(f, &clock, frames, 2, i + 1, &sentence), PROFD_OK);
    }
    foreign_check(f, cache, 0);
    return f;
}

static enum profd_status send(struct foreign *f)
{
    foreign_batch(names, store, 0, NULL, &f, 1);
    const enum profd_status status = f->item.status;
    sentence = f->item.error;
    return status;
}

/* The symbols of the one names build, as "name@file " in the order of addresses. */
static const char *list_symbols(struct arena *a, const struct object **out)
{
    const struct store_scope all = {.all = true};
    const uint32_t uid = 7;
    const struct store_senders of = {.uids = &uid, .uid_count = 1};
    struct store_naming naming;
    struct object *o;
    uint8_t *bytes;
    size_t size;
    struct buildid id;
    char *text = arena_copy(a, "", 0);
    cr_assert_eq(store_find_build(store, &all, "sha256-", &id, &sentence), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(store_get_object(store, &of, id.text, &bytes, &size, &naming, &sentence), PROFD_OK);
    cr_assert_eq(object_decode(a, bytes, size, &o, &sentence), PROFD_OK, "%s", sentence.sentence);
    free(bytes);
    for (uint32_t i = 0; i < o->symbol_count; i++) {
        cr_assert(i == 0 || o->symbols[i - 1].address < o->symbols[i].address);
        text =
            arena_format(a, "%s%s@%s ", text, object_name(o, o->symbols[i].name), object_name(o, o->symbols[i].file));
    }
    *out = o;
    return text;
}

Test(ingest_foreign, names_are_added_and_keep_their_addresses)
{
    const char *const first[] = {"load", "parse"}, *const second[] = {"parse", "render"};
    struct foreign *f = profile_of(1, 2, first);
    struct arena *a = arena_new(0);
    const struct object *before, *after;
    cr_assert_eq(send(f), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(f->item.ticks, 3);
    foreign_free(f);
    list_symbols(a, &before);
    cr_assert_eq(before->symbol_count, 3);
    f = profile_of(2, 2, second);
    cr_assert_eq(send(f), PROFD_OK, "%s", sentence.sentence);
    foreign_free(f);
    const char *text = list_symbols(a, &after);
    cr_assert_eq(after->symbol_count, 4, "%s", text);
    for (const char *const *name = (const char *const[]){"load@app.py ", "parse@app.py ", "render@app.py ", NULL};
         *name; name++) {
        cr_assert(strstr(text, *name), "%s", text);
    }
    arena_free(a);
}

Test(ingest_foreign, names_of_a_deleted_program_are_stored_again)
{
    const char *const old[] = {"load"}, *const other[] = {"render"};
    const struct store_scope all = {.all = true};
    struct arena *a = arena_new(0);
    const struct object *object;
    struct foreign *f = profile_of(1, 1, old);
    struct buildid id;
    uint64_t uploads;
    cr_assert_eq(send(f), PROFD_OK, "%s", sentence.sentence);
    foreign_free(f);
    cr_assert_eq(store_find_build(store, &all, "sha256-", &id, &sentence), PROFD_OK);
    cr_assert_eq(store_delete_build(store, &all, id.text, &uploads, &sentence), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(uploads, 1);
    f = profile_of(2, 1, other);
    cr_assert_eq(send(f), PROFD_OK, "%s", sentence.sentence);
    foreign_free(f);
    f = profile_of(3, 1, old);
    cr_assert_eq(send(f), PROFD_OK, "%s", sentence.sentence);
    foreign_free(f);
    list_symbols(a, &object);
    cr_assert_eq(object->symbol_count, 3, "load, main, render");
    arena_free(a);
}

Test(ingest_foreign, profile_that_is_sent_again_counts_once)
{
    const char *const list[] = {"load"};
    struct foreign *f = profile_of(1, 1, list), *again = profile_of(1, 1, list), *none = profile_of(0, 1, list);
    cr_assert_eq(send(f), PROFD_OK);
    cr_assert_not(f->item.duplicate);
    cr_assert_eq(send(again), PROFD_OK);
    cr_assert(again->item.duplicate);
    cr_assert_eq(send(none), PROFD_OK);
    cr_assert_not(none->item.duplicate);
    cr_assert_eq(stored_uploads(), 2);
    foreign_free(f);
    foreign_free(again);
    foreign_free(none);
}

/* Two names with the same hash are too rare to be found here. So the stored name is replaced by another one. */
Test(ingest_foreign, name_whose_address_is_taken_gets_the_next)
{
    const char *const list[] = {"load"};
    struct arena *a = arena_new(0);
    const struct object *before, *after;
    struct foreign *f = profile_of(1, 1, list);
    cr_assert_eq(send(f), PROFD_OK);
    list_symbols(a, &before);
    char *at = memmem(before->names, before->name_bytes, "load", 4);
    struct store_object o = {.id = before->id, .uid = 7, .grows = true, .has_names = true, .name = "", .note = ""};
    uint8_t *bytes;
    memcpy(at, "lead", 4);
    memset(o.variant, 'c', sizeof o.variant - 1);
    cr_assert_eq(object_encode(before, &bytes, &o.encoded_size, &sentence), PROFD_OK);
    cr_assert_eq(bounds_encode(before, a, &o.bounds, &o.bounds_size, &sentence), PROFD_OK);
    o.encoded = bytes;
    cr_assert_eq(store_put_object(store, &o, &sentence), PROFD_OK);
    free(bytes);
    foreign_free(f);
    foreign_names_free(names); /* as after a restart */
    cr_assert_eq(foreign_names_new(&names, &sentence), PROFD_OK);
    f = profile_of(2, 1, list);
    cr_assert_eq(send(f), PROFD_BUSY);
    foreign_free(f);
    cr_assert_eq(stored_uploads(), 1);
    f = profile_of(2, 1, list);
    cr_assert_eq(send(f), PROFD_OK, "%s", sentence.sentence);
    foreign_free(f);
    const char *text = list_symbols(a, &after);
    cr_assert(strstr(text, "lead@app.py load@app.py "), "%s", text);
    cr_assert_eq(stored_uploads(), 2);
    arena_free(a);
}

Test(ingest_foreign, values_say_what_they_count)
{
    static const struct {
        const char *type, *unit, *period_type, *period_unit;
        int64_t period;
        const char *dimension;
        uint32_t rate;
        uint64_t scale;
    } table[] = {
        {"samples", "count", "cpu", "nanoseconds", 50000000, "seconds", 20, 1},
        {"samples", "count", "cpu", "nanoseconds", 52631579, "seconds", 19, 1},
        {"samples", "count", "cpu", "nanoseconds", 70000000, "seconds", 1000000000, 70000000},
        {"samples", "count", "cpu", "milliseconds", 10, "seconds", 100, 1},
        {"samples", "count", "wall", "nanoseconds", 10000000, "wall", 100, 1},
        {"samples", "count", "cpu", "nanoseconds", 0, "samples", 1, 1},
        {"cpu", "nanoseconds", "cpu", "nanoseconds", 10000000, "seconds", 1000000000, 1},
        {"cpu", "ms", "", "", 0, "seconds", 1000000000, 1000000},
        {"off_cpu", "nanoseconds", "", "", 0, "off_cpu", 1, 1},
        {"alloc_space", "bytes", "space", "bytes", 524288, "alloc_space", 1, 1},
        {"a name of over 15 bytes", "count", "", "", 0, "a_name_of_~8d03", 1, 1},
        {"alloc_in_new_tlab_bytes", "bytes", "", "", 0, "alloc_in_n~e868", 1, 1},
        {"alloc_in_new_tlab_objects", "count", "", "", 0, "alloc_in_n~70d5", 1, 1},
        {"a:b", "count", "", "", 0, "a_b", 1, 1},
        {"", "", "", "", 0, "samples", 1, 1},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct foreign_type type = {TEXT(table[i].type), TEXT(table[i].unit), TEXT(table[i].period_type),
                                          TEXT(table[i].period_unit), table[i].period};
        struct foreign_clock c;
        foreign_choose_clock(&type, &c);
        cr_assert_str_eq(c.dimension, table[i].dimension, "row %zu", i);
        cr_assert_eq(c.rate, table[i].rate, "row %zu: %u", i, c.rate);
        cr_assert_eq(c.scale, table[i].scale, "row %zu", i);
    }
}

Test(ingest_foreign, a_name_takes_memory_once_and_a_profile_has_a_limit)
{
    struct foreign *f = begin(1);
    struct foreign_frame frame;
    char wide[FOREIGN_NAME_BYTES];
    const struct foreign_text name = {wide, sizeof wide};
    enum profd_status status = PROFD_OK;
    const size_t most = (size_t)1 << 20;
    char *label = malloc(most);
    memset(wide, 'w', sizeof wide);
    memset(label, 'l', most);
    cr_assert_eq(foreign_take_name(f, TEXT("go"), name, name, &frame, &sentence), PROFD_OK);
    while (!foreign_add_label(f, (struct foreign_text){label, most}, TEXT("x"), &sentence)) {
    }
    free(label);
    for (int i = 0; i < 10000; i++) {
        cr_assert_eq(foreign_take_name(f, TEXT("go"), name, name, &frame, &sentence), PROFD_OK, "frame %d: %s", i,
                     sentence.sentence);
    }
    for (unsigned i = 0; i < 10000 && !status; i++) {
        memcpy(wide, (const char[]){(char)('a' + i / 676 % 26), (char)('a' + i / 26 % 26), (char)('a' + i % 26)}, 3);
        status = foreign_take_name(f, TEXT("go"), name, name, &frame, &sentence);
    }
    cr_assert_eq(status, PROFD_TOO_LARGE, "a profile that is too large is not to be sent again");
    cr_assert(strstr(sentence.sentence, "256 MiB"), "%s", sentence.sentence);
    foreign_free(f);
}

Test(ingest_foreign, labels_are_made_valid_or_left_out)
{
    struct foreign *f = begin(1);
    const struct foreign_clock clock = ticks_of_100();
    const struct foreign_frame frame = take_name(f, "load");
    char wide[2000];
    memset(wide, 'w', sizeof wide);
    cr_assert_eq(foreign_add_label(f, TEXT("k8s.pod.name"), TEXT("a\xff"), &sentence), PROFD_OK);
    cr_assert_eq(foreign_add_label(f, TEXT("k8s_pod_name"), TEXT("other"), &sentence), PROFD_OK);
    cr_assert_eq(foreign_add_label(f, TEXT("empty"), TEXT(""), &sentence), PROFD_OK);
    cr_assert_eq(foreign_add_label(f, TEXT("wide"), (struct foreign_text){wide, sizeof wide}, &sentence), PROFD_OK);
    cr_assert_eq(foreign_add(f, &clock, &frame, 1, 1, &sentence), PROFD_OK);
    foreign_check(f, cache, 0);
    cr_assert_eq(send(f), PROFD_OK, "%s", sentence.sentence);
    foreign_free(f);
}

Test(ingest_foreign, code_is_at_its_address_and_a_caller_behind)
{
    struct bed_object o;
    struct foreign *f = begin(1);
    const struct foreign_clock clock = ticks_of_100();
    struct foreign_frame frames[2] = {{0, 0x1010}, {0, 0x1fff}};
    bed_object(&o, PROGRAM);
    cr_assert_eq(bed_deliver(&o, 7, false, PROGRAM), PROFD_OK);
    cr_assert_eq(foreign_take_build(f, TEXT(PROGRAM), TEXT("program"), &frames[0].build, &sentence), PROFD_OK);
    frames[1].build = frames[0].build;
    cr_assert_eq(foreign_add(f, &clock, frames, 2, 5, &sentence), PROFD_OK);
    foreign_check(f, cache, 0);
    cr_assert_eq(send(f), PROFD_OK, "%s", sentence.sentence);
    cr_assert_eq(f->item.ticks, 5);
    foreign_free(f);
    f = begin(2);
    frames[0].address = 0x9000;
    cr_assert_eq(foreign_take_build(f, TEXT(PROGRAM), TEXT("program"), &frames[0].build, &sentence), PROFD_OK);
    cr_assert_eq(foreign_add(f, &clock, frames, 1, 5, &sentence), PROFD_OK);
    foreign_check(f, cache, 0);
    cr_assert_eq(send(f), PROFD_WRONG_BUILD);
    foreign_free(f);
    f = begin(3);
    cr_assert_eq(foreign_take_build(f, TEXT("no id"), TEXT("x"), &frames[0].build, &sentence), PROFD_REFUSED);
    foreign_check(f, cache, 0);
    cr_assert_eq(send(f), PROFD_REFUSED, "it has no samples");
    foreign_free(f);
}
