/* Which versions a program has: those of its name where they are labelled, otherwise those of its path. */
#include "watch/watch_versions.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct profd_error error;

static void add(json_t *rows, const char *program, const char *version, const char *build_id, const char *first)
{
    json_t *row = json_pack("{ss ss ss ss sI}", "program", program, "version", version, "build_id", build_id, "first",
                            first, "uploads", (json_int_t)1);
    cr_assert_eq(json_array_append_new(rows, row), 0);
}

/* "group name, group name, …" in the order of the list. */
static void read_all(const json_t *rows, char *out, size_t size)
{
    struct arena *arena = arena_new(0);
    struct watch_version *list;
    size_t count, used = 0;
    out[0] = '\0';
    cr_assert_eq(watch_versions_read(rows, arena, &list, &count, &error), PROFD_OK, "%s", error.sentence);
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s %s", i > 0 ? ", " : "", list[i].group, list[i].name);
    }
    arena_free(arena);
}

Test(watch_versions, labelled_ones_are_of_one_name_by_time)
{
    json_t *rows = json_array();
    char seen[300];
    add(rows, "/srv/1/api", "1", "aa", "2026-01-01T00:00:05Z");
    add(rows, "/srv/1/api", "3", "ac", "2026-01-01T00:00:07.5Z");
    add(rows, "/srv/2/api", "2", "ab", "2026-01-01T00:00:07Z");
    add(rows, "/srv/2/api", "", "ad", "2026-01-01T00:00:07.25Z");
    read_all(rows, seen, sizeof seen);
    cr_assert_str_eq(seen, "api 1, api 2, api ad, api 3");
    json_decref(rows);
}

Test(watch_versions, others_are_of_one_path)
{
    json_t *rows = json_array();
    char seen[300];
    add(rows, "/bin/api", "", "b1", "2026-01-01T00:00:05Z");
    add(rows, "/bin/api", "", "b2", "2026-01-01T00:00:06Z");
    add(rows, "/opt/api", "", "b3", "2026-01-01T00:00:01Z");
    add(rows, "/srv/api", "1", "b4", "2026-01-01T00:00:02Z");
    read_all(rows, seen, sizeof seen);
    cr_assert_str_eq(seen, "/bin/api b1, /bin/api b2, /opt/api b3, api 1");
    json_decref(rows);
}

Test(watch_versions, no_rows_and_rows_without_fields)
{
    json_t *rows = json_array();
    char seen[300];
    read_all(rows, seen, sizeof seen);
    cr_assert_str_eq(seen, "");
    cr_assert_eq(json_array_append_new(rows, json_object()), 0);
    cr_assert_eq(json_array_append_new(rows, json_null()), 0);
    read_all(rows, seen, sizeof seen);
    cr_assert_str_eq(seen, " ,  ");
    json_decref(rows);
}

Test(watch_versions, what_was_stored_is_of_its_group)
{
    cr_assert(watch_versions_has("api", "/srv/1/api", "1", "aa"));
    cr_assert(!watch_versions_has("api", "/srv/1/api", "aa", "aa"), "it states no version: another program, maybe");
    cr_assert(watch_versions_has("/bin/api", "/bin/api", "aa", "aa"));
    cr_assert(!watch_versions_has("/bin/api", "/opt/api", "aa", "aa"));
    cr_assert(!watch_versions_has("api", "/srv/apis", "1", "aa"));
}
