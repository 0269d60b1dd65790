/* A batch and its answer: only the whole answer of a centre to exactly what was sent acknowledges anything. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "relay/batch.h"
#include "base/config.h"
#include "relay/https.h"

#define CENTRE "000102030405060708090a0b0c0d0e0f"
#define INCARNATION "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
#define HEAD "{\"centre\":\"" CENTRE "\",\"incarnation\":\"" INCARNATION "\",\"backed_up\":7,\"wait_ms\":60000,"
#define TOLD "\"went_back\":false,\"number\":12,"
#define FIRST                                                                                                          \
    "{\"sender\":\"616161616161616161616161\",\"sequence\":1,\"outcome\":\"counted\",\"number\":8,\"detail\":\"\"}"
#define SECOND                                                                                                         \
    "{\"sender\":\"616161616161616161616161\",\"sequence\":2,\"outcome\":\"known\",\"number\":3,\"detail\":\"\"}"
#define REFUSED "{\"outcome\":\"refused\",\"number\":0,\"detail\":\"the upload has no id\"}"
#define TAIL "\"wanted\":[\"aa01\"],\"send\":[\"bb02\",\"cc03\"]}"
#define WHOLE HEAD TOLD "\"uploads\":[" FIRST "," SECOND "]," TAIL

static struct batch *make_batch(size_t n)
{
    struct batch *b = calloc(1, sizeof *b);

    b->host = b->machine = b->boot = b->version = "";
    for (size_t i = 0; i < n; i++) {
        struct batch_upload *u = &b->uploads[b->upload_count++];

        memset(u->sender, 'a', sizeof u->sender);
        u->sequence = i + 1;
        u->size = i + 1;
        u->bytes = calloc(1, u->size);
        b->bytes += u->size;
    }
    return b;
}

static void free_batch(struct batch *b)
{
    batch_keep(b, 0);
    cr_assert_eq(b->bytes, 0);
    free(b);
}

static enum profd_status judge(const char *text, size_t n, struct batch_answer *a, struct profd_error *e)
{
    struct batch *b = make_batch(2);
    const enum profd_status status = batch_read_answer(b, text, n, a, e);

    free_batch(b);
    return status;
}

Test(batch, an_answer_is_read)
{
    static struct batch_answer a;
    struct profd_error e;

    cr_assert_eq(judge(WHOLE, strlen(WHOLE), &a, &e), PROFD_OK, "%s", e.sentence);
    cr_assert(a.centre[15] == 15 && a.incarnation[0] == 0xf0 && a.backed_up == 7 && a.wait_ms == 60000 &&
              a.number == 12);
    cr_assert(!a.went_back && a.results[0].outcome == BATCH_COUNTED && a.results[0].number == 8);
    cr_assert(a.results[1].outcome == BATCH_KNOWN && a.results[1].number == 3);
    cr_assert(a.wanted_count == 1 && !strcmp(a.wanted[0].text, "aa01") && a.send_count == 2);
    cr_assert_str_eq(a.send[1].text, "cc03");
}

Test(batch, an_upload_that_the_centre_cannot_name_is_told_by_its_place)
{
    static const char text[] = HEAD TOLD "\"uploads\":[" REFUSED "," SECOND "],\"later\":{}," TAIL;
    static struct batch_answer a;
    struct profd_error e;

    cr_assert_eq(judge(text, strlen(text), &a, &e), PROFD_OK, "a member that is not known is ignored: %s", e.sentence);
    cr_assert_eq(a.results[0].outcome, BATCH_REFUSED);
    cr_assert_str_eq(a.results[0].detail, "the upload has no id");
}

Test(batch, an_answer_that_is_cut_off_anywhere_acknowledges_nothing)
{
    static struct batch_answer a;
    struct profd_error e;

    for (size_t n = 0; n < strlen(WHOLE); n++) {
        cr_assert_eq(judge(WHOLE, n, &a, &e), PROFD_PROTOCOL, "%zu bytes", n);
        cr_assert(*e.sentence);
    }
}

Test(batch, an_answer_that_is_not_to_this_batch_acknowledges_nothing)
{
    static const char *const bad[] = {
        "",
        "<html><body>It works!</body></html>",
        "{}",
        "[]",
        "null",
        WHOLE WHOLE,
        HEAD TOLD "\"uploads\":[" FIRST "]," TAIL,
        HEAD TOLD "\"uploads\":[" FIRST "," SECOND "," SECOND "]," TAIL,
        HEAD TOLD "\"uploads\":[" SECOND "," FIRST "]," TAIL,
        HEAD TOLD "\"uploads\":[" FIRST "," FIRST "]," TAIL,
        HEAD TOLD "\"uploads\":{}," TAIL,
        HEAD TOLD TAIL,
        HEAD "\"number\":12,\"uploads\":[" FIRST "," SECOND "]," TAIL,
        HEAD "\"went_back\":0,\"number\":12,\"uploads\":[" FIRST "," SECOND "]," TAIL,
        HEAD "\"went_back\":false,\"number\":-1,\"uploads\":[" FIRST "," SECOND "]," TAIL,
        HEAD "\"went_back\":false,\"number\":1.5,\"uploads\":[" FIRST "," SECOND "]," TAIL,
        HEAD TOLD TOLD "\"uploads\":[" FIRST "," SECOND "]," TAIL,
        HEAD TOLD "\"uploads\":[" FIRST "," SECOND "],\"wanted\":[\"xyz\"],\"send\":[]}",
        HEAD TOLD "\"uploads\":[" FIRST "," SECOND "],\"wanted\":[7],\"send\":[]}",
        HEAD TOLD "\"uploads\":[" FIRST "," SECOND "],\"wanted\":[]}",
        HEAD TOLD "\"uploads\":[" FIRST ",{\"sender\":\"616161616161616161616161\",\"sequence\":2,\"outcome\":\"ok\","
                  "\"number\":3}]," TAIL,
        HEAD TOLD "\"uploads\":[" FIRST ",{\"sender\":\"61616161616161616161616\",\"sequence\":2,\"outcome\":\"known\","
                  "\"number\":3}]," TAIL,
        HEAD TOLD "\"uploads\":[" FIRST ",{\"sequence\":2,\"outcome\":\"known\",\"number\":3}]," TAIL,
        HEAD TOLD "\"uploads\":[" FIRST ",7]," TAIL,
        "{\"centre\":\"" CENTRE "\"," TOLD "\"uploads\":[" FIRST "," SECOND "]," TAIL,
        "{\"incarnation\":\"" CENTRE "\",\"centre\":\"0\",\"backed_up\":7,\"wait_ms\":1," TOLD "\"uploads\":[" FIRST
        "," SECOND "]," TAIL};
    static struct batch_answer a;
    struct profd_error e;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(judge(bad[i], strlen(bad[i]), &a, &e), PROFD_PROTOCOL, "%s", bad[i]);
    }
}

Test(batch, of_a_long_list_of_builds_the_first_are_read)
{
    static struct batch_answer a;
    struct profd_error e;
    char *text = malloc(1 << 20), *at = text;

    at += sprintf(at, "%s", HEAD TOLD "\"uploads\":[" FIRST "," SECOND "],\"send\":[],\"wanted\":[\"aa00\"");
    for (unsigned i = 0; i < 1000; i++) {
        at += sprintf(at, ",\"aa%04x\"", i);
    }
    at += sprintf(at, "]}");
    cr_assert_eq(judge(text, (size_t)(at - text), &a, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(a.wanted_count, BATCH_BUILDS);
    free(text);
}

Test(batch, the_sentence_of_a_problem)
{
    static const char *const problems[][2] = {
        {"{\"status\":401,\"detail\":\"there is no such token\"}", "there is no such token"},
        {"{\"status\":401}", ""},
        {"<html>", ""},
        {"{\"detail\":7}", ""}};
    char out[30];

    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        batch_read_problem(problems[i][0], strlen(problems[i][0]), out, sizeof out);
        cr_assert_str_eq(out, problems[i][1]);
    }
}

Test(batch, what_is_kept_of_a_batch)
{
    struct batch *b = make_batch(9);
    uint8_t *bytes;
    struct profd_error e;
    size_t all, some;

    cr_assert_eq(batch_encode(b, &bytes, &all, &e), PROFD_OK);
    free(bytes);
    batch_keep(b, 4);
    cr_assert(b->upload_count == 4 && b->bytes == 1 + 2 + 3 + 4);
    cr_assert_eq(batch_encode(b, &bytes, &some, &e), PROFD_OK);
    cr_assert_eq(all - some, 5 + 6 + 7 + 8 + 9 + 5 * 2, "each has a head of 2 bytes");
    free(bytes);
    free_batch(b);
}

static enum profd_status read_token(const char *text, mode_t mode, char out[HTTPS_TOKEN_SIZE], struct profd_error *e)
{
    char path[] = "/tmp/profd-token-XXXXXX";
    const int fd = mkstemp(path);

    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    cr_assert_eq(fchmod(fd, mode), 0);
    close(fd);
    const enum profd_status status = config_read_secret("token", path, 20, out, HTTPS_TOKEN_SIZE, e);
    unlink(path);
    return status;
}

Test(token, of_a_file_that_only_its_owner_may_access)
{
    char token[HTTPS_TOKEN_SIZE], longest[600];
    struct profd_error e;

    cr_assert_eq(read_token("0123456789abcdefghij\nmore\n", 0600, token, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_str_eq(token, "0123456789abcdefghij");
    cr_assert_eq(read_token("0123456789abcdefghij", 0400, token, &e), PROFD_OK);
    cr_assert_eq(read_token("0123456789abcdefghij", 0640, token, &e), PROFD_CONFIG);
    cr_assert(strstr(e.sentence, "0640"), "%s", e.sentence);
    cr_assert_eq(read_token("0123456789abcdefghi", 0600, token, &e), PROFD_CONFIG);
    cr_assert_eq(read_token("0123456789 abcdefghij", 0600, token, &e), PROFD_CONFIG);
    memset(longest, 'x', sizeof longest);
    longest[599] = 0;
    cr_assert_eq(read_token(longest, 0600, token, &e), PROFD_CONFIG);
    longest[512] = 0;
    cr_assert_eq(read_token(longest, 0600, token, &e), PROFD_OK, "%s", e.sentence);
    cr_assert_eq(config_read_secret("token", "/tmp", 20, token, HTTPS_TOKEN_SIZE, &e), PROFD_CONFIG);
    cr_assert_eq(config_read_secret("token", "/nowhere/token", 20, token, HTTPS_TOKEN_SIZE, &e), PROFD_CONFIG);
}

Test(token, of_the_credentials_of_the_unit)
{
    char folder[] = "/tmp/profd-credentials-XXXXXX", path[64], token[HTTPS_TOKEN_SIZE];
    struct profd_error e;

    cr_assert(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/relay.token", folder);
    FILE *f = fopen(path, "we");
    fputs("0123456789abcdefghij\n", f);
    fclose(f);
    cr_assert_eq(chmod(path, 0440), 0); /* as systemd makes it */
    cr_assert_eq(config_read_secret("token", path, 20, token, HTTPS_TOKEN_SIZE, &e), PROFD_CONFIG);
    setenv("CREDENTIALS_DIRECTORY", folder, 1);
    cr_assert_eq(config_read_secret("token", path, 20, token, HTTPS_TOKEN_SIZE, &e), PROFD_OK, "%s", e.sentence);
    unsetenv("CREDENTIALS_DIRECTORY");
    unlink(path);
    rmdir(folder);
}
