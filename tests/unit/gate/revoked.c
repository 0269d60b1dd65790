/* A revoked host is found however its number is written, and a list that cannot be read is refused as a whole. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../tls/certificate.h"
#include "gate/revoked.h"

static struct revoked *parse(const char *text)
{
    struct profd_error e;
    struct revoked *r;

    cr_assert_eq(revoked_parse("list", text, strlen(text), &r, &e), PROFD_OK, "%s", e.sentence);
    return r;
}

static bool has(const char *text, long serial)
{
    struct revoked *r = parse(text);
    X509 *x = certificate_make("a", NULL, serial);
    const bool found = revoked_has(r, x);

    X509_free(x);
    revoked_free(r);
    return found;
}

Test(gate_revoked, serial_numbers)
{
    cr_assert(!has("", 1) && !has("# serial 1\n\n", 1));
    cr_assert(has("serial 1\n", 1) && has("serial 0001", 1) && has("serial 01\r\n", 1));
    cr_assert(has("serial AbC1\n", 0xabc1) && has("serial 7\nserial abc1\nserial 9\n", 0xabc1));
    cr_assert(!has("serial abc1\n", 0xabc) && !has("serial 2\nserial 3", 1));
}

Test(gate_revoked, keys)
{
    X509 *x = certificate_make("a", NULL, 5), *y = certificate_make("a", NULL, 5);
    unsigned char *der = NULL, digest[32];
    const int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der);
    char line[80] = "key ";
    struct revoked *r;

    EVP_Digest(der, (size_t)n, digest, NULL, EVP_sha256(), NULL);
    OPENSSL_free(der);
    for (size_t i = 0; i < sizeof digest; i++) {
        snprintf(line + 4 + 2 * i, 3, "%02X", digest[i]);
    }
    r = parse(line);
    cr_assert(revoked_has(r, x) && !revoked_has(r, y) && !revoked_has(NULL, x));
    revoked_free(r);
    X509_free(x);
    X509_free(y);
}

Test(gate_revoked, wrong_lines_are_named)
{
    static const char *const wrong[] = {"serial",
                                        "serial ",
                                        "serial 1 2",
                                        "serial x",
                                        "key 12",
                                        "serial: 1",
                                        "serial 00000000000000000000000000000000000000000000000000000",
                                        " serial 1",
                                        "serial 12345678901234567890123456789012345678901"};
    struct profd_error e;
    struct revoked *r;
    char text[200];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int n = snprintf(text, sizeof text, "# first\nserial 1\n%s\n", wrong[i]);
        const enum profd_status status = revoked_parse("list", text, (size_t)n, &r, &e);

        if (i == 6) { /* zeros in front do not count */
            cr_assert_eq(status, PROFD_OK);
            revoked_free(r);
            continue;
        }
        cr_assert_eq(status, PROFD_CONFIG, "%s", wrong[i]);
        cr_assert_not_null(strstr(e.sentence, "list:3: "), "%s", e.sentence);
    }
}
