/* Each step of a series equals the report of its window. */
#include "tests/unit/query/fleet.h"

#include "render/render.h"

#define HOUR (60 * MINUTE)

/* Uploads of several hours, with different counts in each; the third hour has none. */
static struct store *fleet_of_hours(void)
{
    struct store *s = fleet_open();
    fleet_put_object(s, PROGRAM, 1000);
    uint32_t sequence = 0;
    for (int64_t hour = 0; hour < 8; hour++) {
        for (int64_t n = 0; hour != 2 && n <= hour % 3; n++) {
            struct fleet_arc arcs[6];
            struct fleet_bin bins[3];
            memcpy(arcs, FLEET_ARCS, sizeof arcs);
            memcpy(bins, FLEET_BINS, sizeof bins);
            arcs[4].calls = (uint64_t)(hour + n + 1);
            bins[0].ticks = (uint64_t)(hour * 7 + n + 1);
            struct fleet_upload u = fleet_cycle(++sequence);
            u.arcs = arcs;
            u.bins = bins;
            u.end = FLEET_NOW - 10 * HOUR + hour * HOUR + (n * 17 + 3) * MINUTE;
            fleet_put(s, &u);
        }
    }
    return s;
}

static void compare_row(struct store *s, const json_t *row, const char *address)
{
    char target[400];
    snprintf(target, sizeof target, "/api/v1/builds/" PROGRAM "/functions/%s?since=%s", address,
             fleet_text(row, "time"));
    size_t n = strlen(target);
    snprintf(target + n, sizeof target - n, "&until=%s", fleet_text(row, "end"));
    json_t *one = fleet_get(s, target);
    const json_t *f = fleet_at(one, "functions/0");
    cr_assert_not_null(f);
    cr_assert_float_eq(fleet_number(row, "self_seconds"), fleet_number(f, "self_seconds"), 1e-9, "%s", target);
    cr_assert_float_eq(fleet_number(row, "children_seconds"), fleet_number(f, "children_seconds"), 1e-9, "%s", target);
    cr_assert_float_eq(fleet_number(row, "total_seconds"),
                       fleet_number(f, "self_seconds") + fleet_number(f, "children_seconds"), 1e-9);
    cr_assert_eq(fleet_number(row, "calls"), fleet_number(f, "calls"), "%s", target);
    cr_assert_eq(fleet_number(row, "uploads"), fleet_number(one, "provenance/uploads"));
    json_decref(one);
}

/* Adds the end of its step to each row, as a time. */
static void add_ends(json_t *root, int64_t first, int64_t step)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(root, "rows"), i, row)
    {
        char text[40];
        for (int64_t t = first; t < FLEET_NOW; t += step) {
            render_time(t, text);
            if (strcmp(text, fleet_text(row, "time")) == 0) {
                render_time(t + step, text);
                json_object_set_new(row, "end", json_string(text));
                break;
            }
        }
        cr_assert_not_null(json_object_get(row, "end"), "%s begins no step", fleet_text(row, "time"));
    }
}

Test(query_series, each_step_is_the_report_of_its_window)
{
    static const struct {
        const char *step;
        int64_t length;
        size_t rows;
    } steps[] = {{"1h", HOUR, 7}, {"15m", 15 * MINUTE, 12}, {"2h", 2 * HOUR, 4}, {"1d", 24 * HOUR, 1}};
    static const char *const addresses[] = {"401010", "0x401020", "401031", "401040"};
    struct store *s = fleet_of_hours();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        for (size_t a = 0; a < sizeof addresses / sizeof *addresses; a++) {
            char target[200];
            snprintf(target, sizeof target, "/api/v1/builds/" PROGRAM "/functions/%s/series?step=%s", addresses[a],
                     steps[i].step);
            json_t *root = fleet_get(s, target);
            cr_assert_eq(json_array_size(json_object_get(root, "rows")), steps[i].rows, "%s: %zu", target,
                         json_array_size(json_object_get(root, "rows")));
            add_ends(root, FLEET_NOW / (24 * HOUR) * (24 * HOUR) - 24 * HOUR, steps[i].length);
            size_t k;
            json_t *row;
            double uploads = 0;
            json_array_foreach(json_object_get(root, "rows"), k, row)
            {
                cr_assert_eq(fleet_number(row, "width"), (double)(steps[i].length / 1000000000));
                uploads += fleet_number(row, "uploads");
                if (steps[i].length <= 2 * HOUR) {
                    compare_row(s, row, addresses[a]);
                }
            }
            cr_assert_eq(uploads, 12);
            cr_assert_str_eq(fleet_text(root, "build_id"), PROGRAM);
            json_decref(root);
        }
    }
    store_close(s);
}

Test(query_series, a_window_and_labels_narrow_it)
{
    struct store *s = fleet_of_hours();
    char target[300], since[40], until[40];
    render_time(FLEET_NOW - 7 * HOUR, since);
    render_time(FLEET_NOW - 5 * HOUR, until);
    snprintf(target, sizeof target,
             "/api/v1/builds/" PROGRAM "/functions/401010/series?since=%s&until=%s&match=service%%3D%%22api%%22", since,
             until);
    json_t *root = fleet_get(s, target);
    cr_assert_eq(json_array_size(json_object_get(root, "rows")), 2);
    cr_assert_str_eq(fleet_text(root, "rows/0/time"), since);
    cr_assert_str_eq(fleet_text(root, "name"), "main");
    cr_assert_float_eq(fleet_number(root, "rows/0/self_seconds"), 0.22, 1e-9, "hour 3, one upload, 3 × 7 + 1 ticks");
    json_decref(root);
    root = fleet_get(s, "/api/v1/builds/" PROGRAM "/functions/401010/series?label.service=web");
    cr_assert_eq(json_array_size(json_object_get(root, "rows")), 0, "an empty panel is no error");
    cr_assert(json_is_null(json_object_get(root, "name")));
    json_decref(root);
    store_close(s);
}

Test(query_series, what_cannot_be_asked_is_said)
{
    static const struct {
        const char *rest, *word;
        int status;
    } rows[] = {
        {"401010/series?step=61m", "61m", 400},
        {"xyz/series", "xyz", 404},
        {"700000/series", "0x700000", 404},
        {"401010/series?since=2001-01-01T00:00:00Z&step=1h&limit=4", "limit", 400},
        {"401010/series?build_id=" LIBRARY, LIBRARY, 404},
        {"401010/series/more", "not found", 404},
    };
    struct store *s = fleet_of_hours();
    struct fleet_upload old = fleet_cycle(99);
    old.end = FLEET_NOW - 3000 * HOUR;
    fleet_put(s, &old);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char target[200];
        snprintf(target, sizeof target, "/api/v1/builds/" PROGRAM "/functions/%s", rows[i].rest);
        struct fleet_answer a = fleet_ask(s, target);
        /* so much time has more hours than one question may have */
        cr_assert_eq(a.http, i == 2 || i == 4 ? 400 : rows[i].status, "%s: %d %s", target, a.http, a.body);
        cr_assert_not_null(strstr(a.body, i == 2 || i == 4 ? "2998 steps" : rows[i].word), "%s", a.body);
        free(a.body);
        if (i == 2 || i == 4) {
            strcat(target, strchr(target, '?') != NULL ? "&step=1d" : "?step=1d");
            a = fleet_ask(s, target);
            cr_assert_eq(a.http, rows[i].status, "%s: %d %s", target, a.http, a.body);
            cr_assert_not_null(strstr(a.body, rows[i].word), "%s", a.body);
            free(a.body);
        }
    }
    struct fleet_answer first = fleet_ask(s, "/api/v1/builds/" PROGRAM "/functions/401010/series?step=1d");
    cr_assert_eq(first.http, 200);
    cr_assert_eq(fleet_status(s, "/api/v1/builds/" PROGRAM "/functions/401010/series?step=1d", first.etag,
                              (struct store_scope){.all = true}),
                 304);
    cr_assert_eq(fleet_status(s, "/api/v1/builds/" PROGRAM "/functions/401010/series?step=7d", first.etag,
                              (struct store_scope){.all = true}),
                 200);
    free(first.body);
    store_close(s);
}
