/* The contract of the store over ClickHouse: a real server for the test program, and a database for each test. */
#include "tests/contract/store/clickhouse_server.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clickhouse/client.h"
#include "clickhouse/engine.h"
#include "clickhouse/migrate.h"
#include "clickhouse/state.h"

#define SUITE "store_clickhouse"
#define PORT "PROFD_TEST_CLICKHOUSE" /* in the environment of the tests, which are processes of their own */
#define PROGRAM "/usr/sbin/clickhouse-server"
#define MEMORY ((rlim_t)3 << 30) /* bytes of data */
#define NOBODY 65534
#define START_MS 60000

static pid_t server;
static char folder[64];

static const char config[] =
    "<?xml version=\"1.0\"?><yandex><logger><level>warning</level><log>%1$s/log</log><errorlog>%1$s/errors</errorlog>"
    "</logger><http_port>%2$u</http_port><tcp_port>%3$u</tcp_port><listen_host>127.0.0.1</listen_host>"
    "<max_connections>64</max_connections><max_concurrent_queries>32</max_concurrent_queries>"
    "<uncompressed_cache_size>8388608</uncompressed_cache_size><mark_cache_size>67108864</mark_cache_size>"
    "<path>%1$s/data/</path><tmp_path>%1$s/tmp/</tmp_path><user_files_path>%1$s/files/</user_files_path>"
    "<format_schema_path>%1$s/schemas/</format_schema_path><users_config>%1$s/users.xml</users_config>"
    "<default_profile>default</default_profile><default_database>default</default_database>"
    "<timezone>Asia/Tokyo</timezone><mlock_executable>false</mlock_executable></yandex>\n";
static const char users[] =
    "<?xml "
    "version=\"1.0\"?><yandex><profiles><default><max_memory_usage>1000000000</"
    "max_memory_usage><background_pool_size>2</background_pool_size><max_compress_block_size>65536</"
    "max_compress_block_size></default>"
    "</profiles><users><default><password></password><networks><ip>127.0.0.1</ip></networks><quota>default</quota>"
    "<profile>default</profile></default></users><quotas><default></default></quotas></yandex>\n";

static unsigned free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) != 0 || getsockname(fd, (struct sockaddr *)&a, &n) != 0) {
        perror("a free port");
        abort();
    }
    close(fd);
    return ntohs(a.sin_port);
}

static void write_file(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void write_file(const char *name, const char *format, ...)
{
    char path[128];
    va_list arguments;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        abort();
    }
    va_start(arguments, format);
    vfprintf(f, format, arguments);
    va_end(arguments);
    fclose(f);
}

static bool listens(unsigned port)
{
    const struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool yes = connect(fd, (const struct sockaddr *)&a, sizeof a) == 0;
    close(fd);
    return yes;
}

/* In the child: becomes the server. */
static void become_server(void)
{
    const struct rlimit most = {MEMORY, MEMORY};
    char file[128];
    snprintf(file, sizeof file, "--config-file=%s/config.xml", folder);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_DATA, &most);
    if (getuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) {
        _exit(126);
    }
    setenv("HOME", folder, 1);
    setenv("MALLOC_CONF", "retain:false", 1); /* what is freed does not stay among its bytes of data */
    unsetenv("LD_PRELOAD");
    if (!freopen("/dev/null", "r", stdin) || chdir(folder) != 0 || !freopen("out", "w", stdout) ||
        dup2(STDOUT_FILENO, STDERR_FILENO) < 0) {
        _exit(126);
    }
    execl(PROGRAM, PROGRAM, file, (char *)NULL);
    _exit(127);
}

static void make_folder(unsigned http)
{
    static const char *const parts[] = {"data", "tmp", "files", "schemas"};
    const char *below = getenv("PROFD_TEST_MEMORY");
    char path[128];
    snprintf(folder, sizeof folder, "%s/profd-clickhouse-XXXXXX", below ? below : "/tmp");
    if (!mkdtemp(folder) || chmod(folder, 0755) != 0) {
        perror(folder);
        abort();
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
        if (mkdir(path, 0755) != 0 || (getuid() == 0 && chown(path, NOBODY, NOBODY) != 0)) {
            perror(path);
            abort();
        }
    }
    if (getuid() == 0 && chown(folder, NOBODY, NOBODY) != 0) {
        perror(folder);
        abort();
    }
    write_file("config.xml", config, folder, http, free_port());
    write_file("users.xml", "%s", users);
}

static void start_server(void)
{
    char text[16];
    const unsigned http = free_port();
    make_folder(http);
    server = fork();
    if (server == 0) {
        become_server();
    }
    for (unsigned i = 0; i < START_MS / 20 && !listens(http); i++) {
        if (waitpid(server, NULL, WNOHANG) != 0) {
            fprintf(stderr, "%s does not start: \"make deps\" installs it; see %s\n", PROGRAM, folder);
            server = 0;
            return;
        }
        poll(NULL, 0, 20);
    }
    snprintf(text, sizeof text, "%u", http);
    setenv(PORT, text, 1);
}

ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
    FOREACH_SET(struct criterion_suite_set * s, tests->suites)
    {
        FOREACH_SET(struct criterion_test * t, s->tests)
        {
            const bool disabled = (t->data && t->data->disabled) || (s->suite.data && s->suite.data->disabled);
            if (server == 0 && strcmp(s->suite.name, SUITE) == 0 && !disabled) {
                start_server();
            }
        }
    }
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
    (void)stats;
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
        nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
}

static struct clickhouse_address address_of(const char *name)
{
    struct clickhouse_address a;
    struct profd_error e;
    char url[128];
    const char *port = getenv(PORT);
    cr_assert(port, "the server of ClickHouse was not started");
    snprintf(url, sizeof url, "clickhouse://127.0.0.1:%s/%s", port, name);
    cr_assert_eq(clickhouse_parse_address(url, &a, &e), PROFD_OK, "%s", e.sentence);
    return a;
}

static struct clickhouse *connect_to(const struct clickhouse_address *a)
{
    static const struct clickhouse_limits limits = {.connect_ms = 10000, .answer_ms = 60000, .reply_bytes = 64u << 20};
    struct clickhouse *c;
    struct profd_error e;
    cr_assert_eq(clickhouse_open(a, NULL, &limits, &c, &e), PROFD_OK, "%s", e.sentence);
    return c;
}

char *clickhouse_server_ask(const char *name, const char *statement)
{
    const struct clickhouse_address a = address_of(name);
    struct clickhouse *c = connect_to(&a);
    struct profd_error e;
    char *reply;
    cr_assert_eq(clickhouse_use(c, &a, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(clickhouse_ask(c, statement, &reply, &e), PROFD_OK, "%s", e.sentence);
    clickhouse_close(c);
    return reply;
}

void clickhouse_server_make(char *name, size_t size)
{
    struct clickhouse_migrated made;
    struct clickhouse_state state;
    struct profd_error e;
    static unsigned next;
    snprintf(name, size, "t%ld_%u", (long)getpid(), next++);
    const struct clickhouse_address a = address_of(name);
    struct clickhouse *c = connect_to(&a);
    cr_assert_eq(clickhouse_migrate(c, &a, 1, &made, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(clickhouse_draw_state(&state, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(clickhouse_put_state(c, &a, &state, &e), PROFD_OK, "%s", e.sentence);
    clickhouse_close(c);
}

struct store *clickhouse_server_open(const char *name, bool writable)
{
    const struct clickhouse_address a = address_of(name);
    struct store *s;
    struct profd_error e;
    cr_assert_eq(store_clickhouse_open(&a, NULL, writable, &s, &e), PROFD_OK, "%s", e.sentence);
    return s;
}

void clickhouse_server_remove(const char *name)
{
    char statement[128];
    snprintf(statement, sizeof statement, "DROP DATABASE %s", name);
    free(clickhouse_server_ask("default", statement));
}
