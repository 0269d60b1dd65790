/* Options and profd.conf: every refusal names what is wrong, and nothing is half done. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/config_check.h"

static char directory[] = "/tmp/profd-config-XXXXXX";
static char file[64], socket_path[64];

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
    snprintf(file, sizeof file, "%s/conf", directory);
    snprintf(socket_path, sizeof socket_path, "%s/s", directory);
    setenv("HOME", directory, 1);
    setenv("XDG_RUNTIME_DIR", directory, 1);
    unsetenv("XDG_STATE_HOME");
    unsetenv("XDG_CONFIG_HOME");
}

static void teardown(void)
{
    unlink(file);
    rmdir(directory);
}

static void write_file(const char *text, unsigned mode)
{
    FILE *f = fopen(file, "w");

    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
    chmod(file, (mode_t)mode);
}

/* config_load with these options; a NULL ends them. */
static enum profd_status load(enum config_program program, struct config *config, struct profd_error *e,
                              const char *const options[])
{
    char *argv[16] = {strdup("profd")};
    int argc = 1;
    enum profd_status status;

    for (; options[argc - 1]; argc++) {
        argv[argc] = strdup(options[argc - 1]);
    }
    status = config_load(program, argc, argv, config, e);
    while (argc--) {
        free(argv[argc]);
    }
    return status;
}
#define LOAD_OF(program, config, e, ...) load((program), (config), (e), (const char *const[]){__VA_ARGS__, NULL})
#define LOAD(config, e, ...) LOAD_OF(OF_PROFD, config, e, __VA_ARGS__)

TestSuite(config, .init = setup, .fini = teardown);

Test(config, options_become_fields)
{
    struct config config;
    struct profd_error e;

    write_file("", 0600);
    cr_assert_eq(LOAD(&config, &e, "--config", file, "--state-dir", "/x/y", "--socket=/x/s", "--log-level", "debug",
                      "--read-group", "4711", "--http", "127.0.0.1:0", "--http-open"),
                 PROFD_OK, "%s", e.sentence);
    cr_assert_str_eq(config.state_dir, "/x/y");
    cr_assert_str_eq(config.socket, "/x/s");
    cr_assert_null(config.http_socket, "who moves the one socket does not get the other by default");
    cr_assert_str_eq(config.http, "127.0.0.1:0");
    cr_assert(config.http_open && config.has_read_group && config.read_group == 4711);
    cr_assert_eq(config.log_level, LOG_LEVEL_DEBUG);
    config_done(&config);
}

Test(config, the_command_line_is_stronger_than_the_file)
{
    struct config config;
    struct profd_error e;

    write_file("# comment\n\n  state-dir =  /from/file \nsocket=/from/file.sock\r\nlog-level = error\nhttp-open = no\n",
               0600);
    cr_assert_eq(LOAD(&config, &e, "--config", file, "--state-dir", "/from/line"), PROFD_OK, "%s", e.sentence);
    cr_assert_str_eq(config.state_dir, "/from/line");
    cr_assert_str_eq(config.socket, "/from/file.sock");
    cr_assert_eq(config.log_level, LOG_LEVEL_ERROR);
    config_done(&config);
}

Test(config, mistakes_on_the_command_line)
{
    struct profd_error e;
    struct config config;

    cr_assert_eq(LOAD(&config, &e, "--colour"), PROFD_USAGE);
    cr_assert_not_null(strstr(e.sentence, "--colour"), "%s", e.sentence);
    cr_assert_eq(profd_status_exit(PROFD_USAGE), 64);
    cr_assert_eq(LOAD(&config, &e, "-x"), PROFD_USAGE);
    cr_assert_eq(LOAD(&config, &e, "--socket"), PROFD_USAGE);
    cr_assert_not_null(strstr(e.sentence, "--socket"), "%s", e.sentence);
    cr_assert_eq(LOAD(&config, &e, "--socket", ""), PROFD_USAGE);
    cr_assert_eq(LOAD(&config, &e, "stray"), PROFD_USAGE);
    cr_assert_not_null(strstr(e.sentence, "stray"), "%s", e.sentence);
    cr_assert_eq(LOAD(&config, &e, "--socket", "/a", "--socket", "/b"), PROFD_USAGE);
    cr_assert_eq(LOAD(&config, &e, "--config", "/nonexistent/conf"), PROFD_CONFIG);
    cr_assert_not_null(strstr(e.sentence, "/nonexistent/conf"), "%s", e.sentence);
    cr_assert_eq(profd_status_exit(PROFD_CONFIG), 78);
}

Test(config, mistakes_in_the_file_name_the_line)
{
    static const struct {
        const char *text, *word, *line;
    } cases[] = {
        {"colour = red\n", "colour", ":1:"},     {"\n#\nsocket = /a\nsocket = /b\n", "twice", ":4:"},
        {"socket\n", "key = value", ":1:"},      {"socket =\n", "no value", ":1:"},
        {"http-open = maybe\n", "maybe", ":1:"}, {"config = /x\n", "unknown key \"config\"", ":1:"},
        {"help = yes\n", "unknown key", ":1:"},  {"= x\n", "unknown key", ":1:"},
        {"a\x01z = 1", "unknown key", ":1:"},
    };
    struct profd_error e;
    struct config config;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(cases[i].text, 0600);
        cr_assert_eq(LOAD(&config, &e, "--config", file), PROFD_CONFIG, "%s", cases[i].text);
        cr_assert_not_null(strstr(e.sentence, cases[i].word), "%s", e.sentence);
        cr_assert_not_null(strstr(e.sentence, cases[i].line), "%s", e.sentence);
        for (const char *p = e.sentence; *p; p++) {
            cr_assert((unsigned char)*p >= 0x20);
        }
    }
}

Test(config, values_are_judged)
{
    char longest[200];
    struct profd_error e;
    struct config config;

    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[108] = 0;
    write_file("", 0600);
#define BASE "--config", file, "--state-dir", "/x", "--socket"
    cr_assert_eq(LOAD(&config, &e, BASE, longest), PROFD_CONFIG);
    cr_assert_not_null(strstr(e.sentence, "107"), "%s", e.sentence);
    cr_assert_eq(LOAD(&config, &e, BASE, "/s", "--log-level", "loud"), PROFD_CONFIG);
    cr_assert_not_null(strstr(e.sentence, "loud"));
    cr_assert_eq(LOAD(&config, &e, BASE, "/s", "--read-group", "no-such-group"), PROFD_CONFIG);
    cr_assert_not_null(strstr(e.sentence, "no-such-group"));
    cr_assert_eq(LOAD(&config, &e, BASE, "/s", "--http", "0.0.0.0:80", "--http-open"), PROFD_CONFIG);
    cr_assert_not_null(strstr(e.sentence, "0.0.0.0:80"));
    cr_assert_eq(LOAD(&config, &e, BASE, "/s", "--http-socket", "/s"), PROFD_CONFIG);
}

Test(config, one_origin_as_browsers_write_it)
{
    static const char *const good[][2] = {{"https://grafana.example", "https://grafana.example"},
                                          {"HTTP://Grafana.Example:3000", "http://grafana.example:3000"},
                                          {"https://x:443", "https://x"},
                                          {"http://x:80", "http://x"},
                                          {"http://x:443", "http://x:443"},
                                          {"http://[::1]:8080", "http://[::1]:8080"}};
    static const char *const bad[] = {
        "*",           "null",    "grafana.example", "https://x/",      "https://",
        "https://a b", "ftp://x", "https://u@x",     "https://x:99999", "https://x,https://y"};
    struct config config;
    struct profd_error e;

    write_file("", 0600);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert_eq(LOAD(&config, &e, BASE, "/s", "--http-origin", good[i][0]), PROFD_OK, "%s", e.sentence);
        cr_assert_str_eq(config.http_origin, good[i][1]);
        config_done(&config);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(LOAD(&config, &e, BASE, "/s", "--http-origin", bad[i]), PROFD_CONFIG, "%s", bad[i]);
        cr_assert_not_null(strstr(e.sentence, bad[i]), "%s", e.sentence);
    }
    cr_assert_eq(LOAD(&config, &e, BASE, "/s"), PROFD_OK, "%s", e.sentence);
    cr_assert_null(config.http_origin);
    config_done(&config);
}

Test(config, help_and_version_need_nothing_else)
{
    struct profd_error e;
    struct config config;

    cr_assert_eq(LOAD(&config, &e, "--help", "--log-level", "loud"), PROFD_OK, "%s", e.sentence);
    cr_assert_not_null(config.values[CONFIG_help]);
    config_done(&config);
    cr_assert_eq(LOAD(&config, &e, "--version"), PROFD_OK);
    config_done(&config);
}

Test(config, defaults_follow_the_user)
{
    struct profd_error e;
    struct config config;
    char expected[100];

    write_file("", 0600);
    if (!geteuid()) {
        /* Root's defaults here; the user's in the integration test, where privileges are dropped. */
        cr_assert_eq(LOAD(&config, &e, "--config", file), PROFD_OK, "%s", e.sentence);
        cr_assert_str_eq(config.state_dir, "/var/lib/profd");
        cr_assert_str_eq(config.socket, "/run/profd/profd.sock");
        cr_assert_str_eq(config.http_socket, "/run/profd/http.sock");
    } else {
        cr_assert_eq(LOAD(&config, &e, "--config", file), PROFD_OK, "%s", e.sentence);
        snprintf(expected, sizeof expected, "%s/.local/state/profd", directory);
        cr_assert_str_eq(config.state_dir, expected);
    }
    config_done(&config);
    cr_assert_eq(LOAD(&config, &e, "--config", file, "--http-socket", "none"), PROFD_OK);
    cr_assert_null(config.http_socket);
    config_done(&config);
}

Test(config, random_text_never_does_harm)
{
    static const char alphabet[] = "socket=http-opn# \t\n\n\r/xyes\0\x80";
    unsigned seed = 4711;

    for (int round = 0; round < 20000; round++) {
        struct config config;
        struct profd_error e = {""};
        char text[64];
        size_t n = (size_t)rand_r(&seed) % sizeof text;

        memset(&config, 0, sizeof config);
        for (size_t i = 0; i < n; i++) {
            text[i] = alphabet[(size_t)rand_r(&seed) % (sizeof alphabet - 1)];
        }
        if (config_parse(&config, text, n, "x", &e)) {
            cr_assert_eq(strncmp(e.sentence, "x:", 2), 0, "seed %u: %s", seed, e.sentence);
        }
        config_done(&config);
    }
}

Test(config, ages_and_sizes)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } ages[] = {{"0", 0},        {"1s", 1},          {"0s", 0},       {"90m", 5400},
                {"48h", 172800}, {"400d", 34560000}, {"2w", 1209600}, {"36525d", 3155760000}};
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {{"0", 0},
                 {"4096", 4096},
                 {"64K", 65536},
                 {"64KiB", 65536},
                 {"1G", 1073741824},
                 {"10GB", 10000000000},
                 {"3kB", 3000},
                 {"2TiB", UINT64_C(1) << 41},
                 {"9223372036854775807", INT64_MAX}};
    static const char *const bad_ages[] = {
        "", "s", "1", "-1s", "1.5h", "1 h", "1H", "1hour", "36526d", "99999999999999999999s", "0x1s", "+1s"};
    static const char *const bad_sizes[] = {"",         "G",  "-1", "1.5G", "1 G", "1g", "1Kib", "9223372036854775808",
                                            "8388608T", "1e9"};
    struct profd_error e;
    uint64_t bytes = 7;
    int64_t ns = 7;

    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
        cr_assert_eq(config_parse_age("raw-age", ages[i].text, &ns, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(ns, ages[i].seconds * 1000000000, "%s", ages[i].text);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cr_assert_eq(config_parse_bytes("raw-bytes", sizes[i].text, &bytes, &e), PROFD_OK, "%s", e.sentence);
        cr_assert_eq(bytes, sizes[i].bytes, "%s", sizes[i].text);
    }
    ns = 7;
    bytes = 7;
    for (size_t i = 0; i < sizeof bad_ages / sizeof *bad_ages; i++) {
        cr_assert_eq(config_parse_age("raw-age", bad_ages[i], &ns, &e), PROFD_CONFIG, "%s", bad_ages[i]);
        cr_assert(strstr(e.sentence, "raw-age") && strstr(e.sentence, bad_ages[i]), "%s", e.sentence);
    }
    for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++) {
        cr_assert_eq(config_parse_bytes("raw-bytes", bad_sizes[i], &bytes, &e), PROFD_CONFIG, "%s", bad_sizes[i]);
        cr_assert(strstr(e.sentence, "raw-bytes") && strstr(e.sentence, bad_sizes[i]), "%s", e.sentence);
    }
    cr_assert(ns == 7 && bytes == 7, "untouched on failure");
}

#define HOUR INT64_C(3600000000000)

Test(config, the_policy_has_defaults_and_sense)
{
    static const struct {
        const char *options[8], *words[2];
    } refused[] = {
        {{"--raw-age", "3d", "--keep-age", "2d"}, {"keep-age 2d", "raw-age 3d"}},
        {{"--raw-age", "0"}, {"raw-age", "1s"}},
        {{"--raw-bytes", "0"}, {"raw-bytes", "64K"}},
        {{"--raw-bytes", "2G", "--keep-bytes", "1G"}, {"keep-bytes 1G", "raw-bytes 2G"}},
        {{"--keep-bytes", "4K"}, {"keep-bytes", "1M"}},
        {{"--user-share", "0%"}, {"user-share", "1% to 100%"}},
        {{"--user-share", "50"}, {"user-share", "\"50\""}},
        {{"--keep-age", "soon"}, {"keep-age", "soon"}},
        {{"--admin-group", "no-such-group-here"}, {"admin-group", "no-such-group-here"}},
        {{"--harvest-interval", "0"}, {"harvest-interval", "1s to 1h"}},
        {{"--harvest-interval", "2h"}, {"harvest-interval", "\"2h\""}},
        {{"--harvest-interval", "often"}, {"harvest-interval", "often"}},
    };
    struct profd_error e;
    struct config config;

    write_file("", 0600);
    cr_assert_eq(LOAD(&config, &e, "--config", file), PROFD_OK, "%s", e.sentence);
    cr_assert(config.raw_age == 48 * HOUR && config.keep_age == 400 * 24 * HOUR);
    cr_assert(config.raw_bytes == 1u << 30 && config.keep_bytes == 0 && config.user_share == 50);
    cr_assert_eq(config.harvest_interval, INT64_C(10000000000));
    config_done(&config);
    write_file("raw-age = 1s\nkeep-age = 1m\nraw-bytes = 64K\nkeep-bytes = 1M\nadmin-group = 4712\n", 0600);
    cr_assert_eq(LOAD(&config, &e, "--config", file, "--raw-age", "2s"), PROFD_OK, "%s", e.sentence);
    cr_assert(config.raw_age == HOUR / 1800 && config.keep_age == HOUR / 60);
    cr_assert(config.raw_bytes == 65536 && config.keep_bytes == 1 << 20);
    cr_assert(config.has_admin_group && config.admin_group == 4712);
    config_done(&config);
    write_file("", 0600);
    /* what was not said gives way to what was */
    cr_assert_eq(LOAD(&config, &e, "--config", file, "--keep-age", "1d", "--keep-bytes", "100M"), PROFD_OK, "%s",
                 e.sentence);
    cr_assert(config.raw_age == 24 * HOUR && config.raw_bytes == 50 << 20);
    config_done(&config);
    cr_assert_eq(LOAD(&config, &e, "--config", file, "--raw-age", "500d", "--keep-age", "0"), PROFD_OK, "%s",
                 e.sentence);
    cr_assert_eq(config.keep_age, 0);
    config_done(&config);
    cr_assert_eq(LOAD(&config, &e, "--config", file, "--raw-age", "500d"), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(config.keep_age, 500 * 24 * HOUR);
    config_done(&config);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cr_assert_eq(load(OF_PROFD, &config, &e, refused[i].options), PROFD_CONFIG, "case %zu", i);
        for (int k = 0; k < 2; k++) {
            cr_assert_not_null(strstr(e.sentence, refused[i].words[k]), "%s", e.sentence);
        }
    }
}

Test(config, a_restore_needs_no_socket)
{
    struct profd_error e;
    struct config config;

    write_file("raw-age = 1h\n", 0600);
    unsetenv("XDG_RUNTIME_DIR");
    cr_assert_eq(LOAD(&config, &e, "--config", file, "--state-dir", "/x", "--restore", "/y.db"), PROFD_OK, "%s",
                 e.sentence);
    cr_assert_str_eq(config.state_dir, "/x");
    cr_assert_str_eq(config.values[CONFIG_restore], "/y.db");
    config_done(&config);
    write_file("restore = /y.db\n", 0600);
    cr_assert_eq(LOAD(&config, &e, "--config", file), PROFD_CONFIG);
    cr_assert_not_null(strstr(e.sentence, "unknown key \"restore\""), "%s", e.sentence);
}

Test(config, profd_relay_reads_the_same_file)
{
    static const char *const wrong[][3] = {{"--relay-interval", "0s", "not 1s to 1d"},
                                           {"--relay-proxy", "proxy:3128", "not http://HOST:PORT"},
                                           {"--relay-proxy", "http://proxy:0", "not http://HOST:PORT"},
                                           {"--relay", "tls://centre:1", "https://HOST[:PORT]"},
                                           {"--relay", "http://centre:1", "https://HOST[:PORT]"}};
    struct profd_error e;
    struct config config;

    write_file("relay = https://centre:7655\nraw-age = 1h\nrelay-proxy = http://[::1]:3128\n", 0600);
    cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--config", file, "--relay-token", "/r"), PROFD_OK, "%s", e.sentence);
    cr_assert_str_eq(config.relay, "https://centre:7655");
    cr_assert_str_eq(config.token, "/r");
    cr_assert(config.has_proxy && !config.proxy_user);
    cr_assert_str_eq(config.proxy.host, "::1");
    cr_assert_str_eq(config.proxy.port, "3128");
    cr_assert_eq(config.relay_interval, INT64_C(60000000000));
    config_done(&config);
    cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--config", file, "--raw-age", "1h"), PROFD_USAGE);
    cr_assert_eq(LOAD(&config, &e, "--config", file, "--relay-token", "/r"), PROFD_USAGE);
    write_file("", 0600);
    cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--config", file), PROFD_CONFIG);
    cr_assert_not_null(strstr(e.sentence, "https://HOST"), "%s", e.sentence);
    write_file("relay-interval = 2s\n", 0600);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const bool url = !strcmp(wrong[i][0], "--relay");

        cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--config", file, wrong[i][0], wrong[i][1], url ? NULL : "--relay",
                             "https://centre:1"),
                     PROFD_CONFIG);
        cr_assert_not_null(strstr(e.sentence, wrong[i][2]), "%s", e.sentence);
    }
}

Test(config, addresses_are_taken_apart)
{
    static const struct {
        const char *text, *host, *port;
    } cases[] = {{"centre.example:7655", "centre.example", "7655"},
                 {"127.0.0.1:0", "127.0.0.1", "0"},
                 {"[::1]:65535", "::1", "65535"},
                 {"[2001:db8::7]:80", "2001:db8::7", "80"}};
    static const char *const wrong[] = {"",      ":1",     "a",        "a:",       "a:65536",    "a:1x", "a b:1",
                                        "[::1]", "[::1]:", "[::1]1:2", "::1:7655", "[centre]:1", "[]:1", "a:000001"};
    struct config_address a = {"untouched", ""};
    char text[300];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert(!config_parse_address(wrong[i], &a), "%s", wrong[i]);
    }
    cr_assert_str_eq(a.host, "untouched");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert(config_parse_address(cases[i].text, &a), "%s", cases[i].text);
        cr_assert_str_eq(a.host, cases[i].host);
        cr_assert_str_eq(a.port, cases[i].port);
    }
    memset(text, 'a', sizeof text);
    memcpy(text + 253, ":1", 3);
    cr_assert(config_parse_address(text, &a));
    cr_assert_eq(strlen(a.host), 253);
    memcpy(text + 253, "a:1", 4);
    cr_assert(!config_parse_address(text, &a));
}

Test(config, the_password_of_a_proxy_is_in_no_sentence)
{
    static const char *const wrong[] = {"http://me:secret@proxy",           "http://me:secret@proxy:0",
                                        "https://me:secret@proxy:1",        "http://secret@proxy:1",
                                        "http://:secret@proxy:1",           "http://me:secret%4@proxy:1",
                                        "http://me:secret%0d%0aX:@proxy:1", "http://me:secret@@:proxy:1:secret"};
    struct profd_error e;
    struct config config;
    char line[200];

    write_file("relay = https://centre:1\nrelay-proxy = http://me:se%3acret%40@proxy:3128\n", 0600);
    cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--config", file), PROFD_OK, "%s", e.sentence);
    cr_assert_str_eq(config.proxy_user, "me:se:cret@");
    cr_assert_str_eq(config.proxy.host, "proxy");
    config_done(&config);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(line, sizeof line, "relay = https://centre:1\nrelay-proxy = %s\n", wrong[i]);
        write_file(line, 0600);
        cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--config", file), PROFD_CONFIG, "%s", wrong[i]);
        cr_assert(strstr(e.sentence, "relay-proxy") && !strstr(e.sentence, "me:secret"), "%s", e.sentence);
    }
    write_file("", 0600);
    cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--config", file, "--relay", "https://centre:1", "--relay-proxy",
                         "http://me:secret@proxy:1"),
                 PROFD_USAGE);
    cr_assert(strstr(e.sentence, "other users could see") && !strstr(e.sentence, "secret"), "%s", e.sentence);
}

Test(config, a_centre_over_https)
{
    static const char *const good[] = {"https://centre",       "https://centre.example:8443",  "https://[::1]:443/",
                                       "https://centre/profd", "https://192.0.2.1/a/b.c/~d-_", "https://centre/a/"};
    static const char *const wrong[] = {"https://",           "https://me@centre",    "https://me:secret@centre",
                                        "https://centre?a=b", "https://centre/a?b",   "https://centre/#a",
                                        "https://centre/../", "https://centre/./a",   "https://centre//a",
                                        "https://centre/%41", "https://centre:99999", "https://centre:x",
                                        "HTTPS://centre",     "https://centre/a b",   "https://::1/"};
    struct profd_error e;
    struct config config;

    unsetenv("CREDENTIALS_DIRECTORY");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--relay", good[i]), PROFD_OK, "%s", e.sentence);
        cr_assert(!config.ca && !config.relay_host);
        cr_assert_str_eq(config.relay, good[i]);
        cr_assert_str_eq(config.token, "/etc/profd/relay.token");
        config_done(&config);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--relay", wrong[i]), PROFD_CONFIG, "%s", wrong[i]);
        cr_assert_not_null(strstr(e.sentence, "https://HOST[:PORT][/PREFIX]"), "%s", e.sentence);
    }
    cr_assert_eq(LOAD_OF(OF_RELAY, &config, &e, "--relay", "https://centre", "--relay-token", "/t", "--relay-host",
                         "web-7", "--relay-ca", "/c"),
                 PROFD_OK, "%s", e.sentence);
    cr_assert(!strcmp(config.token, "/t") && !strcmp(config.relay_host, "web-7") && !strcmp(config.ca, "/c"));
    config_done(&config);
}
