/* The list of statuses, whose codes never change, and sentences that a terminal can show safely. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "proto/buildid.h"
#include "proto/status.h"
#include "proto/utf8.h"

Test(proto_status, every_row_of_the_list_is_found_again)
{
    static const struct {
        enum profd_status status;
        unsigned code;
        bool retry;
        int http, exit;
        const char *name, *text;
    } rows[] = {
#define X(name, code, retry, http, exit, text) {PROFD_##name, code, retry, http, exit, #name, text},
        PROFD_STATUS_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_assert_eq((unsigned)rows[i].status, rows[i].code);
        cr_assert(profd_status_known(rows[i].code));
        cr_assert_str_eq(profd_status_name(rows[i].status), rows[i].name);
        cr_assert_str_eq(profd_status_text(rows[i].status), rows[i].text);
        cr_assert_eq(profd_status_retry(rows[i].status), rows[i].retry);
        cr_assert_eq(profd_status_http(rows[i].status), rows[i].http);
        cr_assert_eq(profd_status_exit(rows[i].status), rows[i].exit);
        for (size_t k = 0; k < i; k++) {
            cr_assert_neq(rows[k].code, rows[i].code, "code %u is used twice", rows[i].code);
        }
    }
}

Test(proto_status, codes_on_the_wire_do_not_move)
{
    cr_assert_eq(PROFD_OK, 0);
    cr_assert_eq(PROFD_TOO_LARGE, 2);
    cr_assert_eq(PROFD_BUSY, 15);
    cr_assert_eq(PROFD_STOPPING, 30);
}

Test(proto_status, unknown_codes_are_internal)
{
    cr_assert_not(profd_status_known(32));
    cr_assert_not(profd_status_known(UINT32_MAX));
    cr_assert_str_eq(profd_status_name((enum profd_status)1000), "INTERNAL");
    cr_assert_str_eq(profd_status_text((enum profd_status)1000), "unknown status");
    cr_assert_not(profd_status_retry((enum profd_status)1000));
    cr_assert_eq(profd_status_http((enum profd_status) - 1), 500);
    cr_assert_eq(profd_status_exit((enum profd_status)1000), 70);
}

Test(proto_status, a_sentence_is_formatted_and_wrapped)
{
    struct profd_error e;
    cr_assert_eq(profd_error_set(&e, PROFD_REFUSED, "%d labels, at most %u", 65, 64u), PROFD_REFUSED);
    cr_assert_str_eq(e.sentence, "65 labels, at most 64");
    cr_assert_eq(profd_error_wrap(&e, PROFD_MALFORMED, "upload %u", 7u), PROFD_MALFORMED);
    cr_assert_str_eq(e.sentence, "upload 7: 65 labels, at most 64");
    cr_assert_eq(profd_error_set(&e, PROFD_IO, "again: %s", e.sentence), PROFD_IO);
    cr_assert_str_eq(e.sentence, "again: upload 7: 65 labels, at most 64");
    cr_assert_eq(profd_error_set(NULL, PROFD_IO, "nobody listens %d", 1), PROFD_IO);
    cr_assert_eq(profd_error_wrap(NULL, PROFD_IO, "nobody"), PROFD_IO);
}

Test(proto_status, control_bytes_and_broken_utf8_do_not_reach_a_terminal)
{
    struct profd_error e;
    profd_error_set(&e, PROFD_REFUSED, "name '%s'", "a\033[31m\r\n\x7f\xc2\x9b z\xff\xc3ü");
    cr_assert_str_eq(e.sentence, "name 'a?[31m????? z??ü'");
}

Test(proto_status, a_long_sentence_is_cut_between_characters)
{
    struct profd_error e;
    char text[1200];
    for (unsigned shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3) {
            memcpy(text + i, "€", 4);
        }
        profd_error_set(&e, PROFD_REFUSED, "%s", text);
        size_t n = strlen(e.sentence);
        cr_assert_lt(n, sizeof e.sentence);
        cr_assert_gt(n, sizeof e.sentence - 5);
        cr_assert(utf8_valid((const uint8_t *)e.sentence, n));
        cr_assert_eq(strchr(e.sentence, '?'), NULL);
        profd_error_wrap(&e, PROFD_REFUSED, "ctx");
        cr_assert(utf8_valid((const uint8_t *)e.sentence, strlen(e.sentence)));
        cr_assert_eq(strncmp(e.sentence, "ctx: ", 5), 0);
    }
}

Test(proto_status, utf8_agrees_with_its_definition_for_every_code_point)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t t[4];
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (size_t i = n; i-- > 1;) {
            t[i] = (uint8_t)(0x80 | ((c >> (6 * (n - 1 - i))) & 0x3f));
        }
        t[0] = (uint8_t)(lead[n] | (c >> (6 * (n - 1))));
        bool surrogate = c >= 0xd800 && c < 0xe000;
        cr_assert_eq(utf8_length(t, n), surrogate ? 0 : n, "U+%04X", c);
        if (n > 1) {
            cr_assert_eq(utf8_length(t, n - 1), 0, "U+%04X cut", c);
        }
    }
    cr_assert_eq(utf8_length((const uint8_t *)"\xc0\x80", 2), 0);
    cr_assert_eq(utf8_length((const uint8_t *)"\xe0\x80\x80", 3), 0);
    cr_assert_eq(utf8_length((const uint8_t *)"\xf0\x80\x80\x80", 4), 0);
    cr_assert_eq(utf8_length((const uint8_t *)"\xf4\x90\x80\x80", 4), 0);
    cr_assert_eq(utf8_length((const uint8_t *)"\xf8\x88\x80\x80", 4), 0);
    cr_assert_not(utf8_valid((const uint8_t *)"a\0b", 3));
}

Test(proto_buildid, notes_of_1_to_64_bytes_are_taken)
{
    struct buildid id;
    struct profd_error e;
    uint8_t bytes[65];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(0xa0 + i);
    }
    cr_assert_eq(buildid_from_note(bytes, 2, &id, &e), PROFD_OK);
    cr_assert_str_eq(id.text, "a0a1");
    cr_assert_eq(buildid_from_note(bytes, 64, &id, &e), PROFD_OK);
    cr_assert_eq(strlen(id.text), 128);
    struct buildid before = id;
    cr_assert_eq(buildid_from_note(bytes, 0, &id, &e), PROFD_REFUSED);
    cr_assert_eq(buildid_from_note(bytes, 65, &id, &e), PROFD_REFUSED);
    cr_assert(strstr(e.sentence, "65") != NULL, "%s", e.sentence);
    cr_assert_str_eq(id.text, before.text);
}

Test(proto_buildid, text_is_folded_and_judged)
{
    struct buildid id;
    struct profd_error e;
    char hash[] = "SHA256-00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff";
    cr_assert_eq(buildid_parse("DEADbeef", 8, &id, &e), PROFD_OK);
    cr_assert_str_eq(id.text, "deadbeef");
    cr_assert_eq(buildid_parse(hash, strlen(hash), &id, &e), PROFD_OK);
    cr_assert_str_eq(id.text, "sha256-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
    uint8_t raw[32];
    for (unsigned i = 0; i < 32; i++) {
        raw[i] = (uint8_t)(0x11 * (i % 16));
    }
    struct buildid made;
    buildid_from_sha256(raw, &made);
    cr_assert_str_eq(made.text, id.text);
    static const char *const bad[] = {"", "a", "abc", "zz", "ab cd ", "0xabcd", "sha256-", "sha256-00", "sha257-ab"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(buildid_parse(bad[i], strlen(bad[i]), &id, &e), PROFD_REFUSED, "'%s'", bad[i]);
        cr_assert(strstr(e.sentence, bad[i]) != NULL, "%s", e.sentence);
    }
    char odd[400];
    memset(odd, 'a', sizeof odd);
    cr_assert_eq(buildid_parse(odd, 128, &id, &e), PROFD_OK);
    cr_assert_eq(buildid_parse(odd, 129, &id, &e), PROFD_REFUSED);
    cr_assert_eq(buildid_parse(odd, 400, &id, &e), PROFD_REFUSED);
    cr_assert_eq(buildid_parse("ab\0d", 4, &id, &e), PROFD_REFUSED);
}

Test(proto_buildid, prefixes_have_at_least_four_characters)
{
    static const char *const good[] = {"abcd", "ABCD0", "sha2", "sha256-", "sha256-0", "0000"};
    static const char *const bad[] = {"", "abc", "abcg", "sha3", "sha256_", "sha256-g", "a%00", "-sha256"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        cr_assert(buildid_prefix_valid(good[i], strlen(good[i])), "'%s'", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_not(buildid_prefix_valid(bad[i], strlen(bad[i])), "'%s'", bad[i]);
    }
    char longest[129];
    memset(longest, '1', sizeof longest);
    cr_assert(buildid_prefix_valid(longest, 128));
    cr_assert_not(buildid_prefix_valid(longest, 129));
}
