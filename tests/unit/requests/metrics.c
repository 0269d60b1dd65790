/* The text of /metrics. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "requests/metrics.h"

/* The format's rules: HELP and TYPE once and before the samples, every line parses, cumulative buckets. */
Test(metrics, text_is_well_formed)
{
    static struct pages_numbers n;
    const struct pages_setup setup = {.http = NULL};
    const struct pages_store store = {
        .totals = {.builds = 7,
                   .users = 3,
                   .user_bytes = 100,
                   .largest_count = 2,
                   .largest = {{.uid = 4294967295u, .bytes = 60}, {.uid = 7, .bytes = 30}}}};
    const struct query_cache_use cache = {.found = 3};
    struct buffer b;
    char *text, *line, *rest, current[100] = "";
    unsigned long long last_bucket = 0;

    n.uploads.refused.of[PROFD_WRONG_BUILD] = 3;
    n.uploads.calls = 40;
    n.live.calls = 2;
    durations_add(&n.uploads.seconds, 0.0001);
    durations_add(&n.uploads.seconds, 0.0025);
    durations_add(&n.uploads.seconds, 1e9);
    buffer_init(&b, 1u << 20);
    metrics_format(&setup, &n, &store, &cache, 1.5, &b);
    cr_assert_not(b.failed);
    text = strndup(b.data, b.size);
    cr_assert_not_null(strstr(text, "profd_uploads_total{result=\"rejected\",reason=\"wrong_build\"} 3\n"));
    cr_assert_not_null(strstr(text, "profd_builds 7\n"));
    cr_assert_not_null(strstr(text, "profd_users 3\n"));
    cr_assert_not_null(strstr(text, "profd_user_bytes{uid=\"4294967295\"} 60\nprofd_user_bytes{uid=\"7\"} 30\n"
                                    "profd_user_bytes{uid=\"others\"} 10\n"));
    cr_assert_not_null(strstr(text, "profd_writable 1\n"));
    cr_assert_not_null(strstr(text, "profd_calls_total 42\n"), "of uploads and of live processes");
    cr_assert_not_null(strstr(text, "profd_query_duration_seconds_count{endpoint=\"groups\"} 0\n"));
    cr_assert_not_null(strstr(text, "profd_upload_duration_seconds_bucket{le=\"0.001\"} 1\n"));
    cr_assert_not_null(strstr(text, "profd_upload_duration_seconds_bucket{le=\"0.0025\"} 2\n"));
    cr_assert_not_null(strstr(text, "profd_upload_duration_seconds_bucket{le=\"+Inf\"} 3\n"));
    cr_assert_not_null(strstr(text, "profd_upload_duration_seconds_count 3\n"));
    cr_assert_eq(text[b.size - 1], '\n');
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[100], help[100];
        double value;
        int end = 0;

        if (sscanf(line, "# HELP %99s %99s", name, help) == 2) {
            cr_assert_str_neq(name, current);
            strcpy(current, name);
            last_bucket = 0;
            continue;
        }
        if (sscanf(line, "# TYPE %99s %99s", name, help) == 2) {
            cr_assert_str_eq(name, current);
            continue;
        }
        cr_assert_eq(strncmp(line, current, strlen(current)), 0, "%s after %s", line, current);
        cr_assert_eq(sscanf(strrchr(line, ' '), "%lf%n", &value, &end), 1, "%s", line);
        if (strstr(line, "_bucket{le=")) {
            cr_assert((unsigned long long)value >= last_bucket, "%s", line);
            last_bucket = (unsigned long long)value;
        }
    }
    free(text);
    buffer_done(&b);
}
