/* Which host a certificate is of: two hosts must never be taken for one by how names are written. */
#include <criterion/criterion.h>
#include <string.h>

#include "certificate.h"
#include "tls/tls_identity.h"

static enum profd_status identify(const char *name, const char *alternatives, struct tls_identity *out)
{
    X509 *x = certificate_make(name, alternatives, 1);
    struct profd_error e;
    const enum profd_status status = tls_identity_read(x, out, &e);

    X509_free(x);
    return status;
}

Test(tls_identity, a_uuid_is_the_identity)
{
    static const uint8_t wanted[16] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                       0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
    struct tls_identity i;

    cr_assert_eq(identify("cn", "DNS:a.example,DNS:b.example,URI:urn:uuid:00112233-4455-6677-8899-aAbBcCdDeEfF", &i),
                 PROFD_OK);
    cr_assert_arr_eq(i.host, wanted, 16);
    cr_assert_str_eq(i.name, "a.example");
    cr_assert_eq(identify("cn", "URI:https://x,URI:urn:uuid:00112233-4455-6677-8899-aabbccddeeff", &i), PROFD_OK);
    cr_assert_arr_eq(i.host, wanted, 16);
    cr_assert_str_eq(i.name, "cn");
}

Test(tls_identity, a_host_without_a_name_is_called_by_its_uuid)
{
    struct tls_identity i;

    cr_assert_eq(identify(NULL, "URI:urn:uuid:a0112233-4455-6677-8899-aabbccddeeff", &i), PROFD_OK);
    cr_assert_str_eq(i.name, "a0112233");
}

Test(tls_identity, without_one_it_is_the_digest_of_the_name)
{
    static const uint8_t abc[4] = {0xba, 0x78, 0x16, 0xbf}; /* SHA-256 of "abc" */
    struct tls_identity i, same, other;

    cr_assert_eq(identify("xyz", "DNS:abc", &i), PROFD_OK);
    cr_assert_arr_eq(i.host, abc, 4);
    cr_assert_eq(identify("ABC", NULL, &same), PROFD_OK);
    cr_assert_arr_eq(same.host, i.host, 16);
    cr_assert_str_eq(same.name, "ABC");
    cr_assert_eq(identify("abd", NULL, &other), PROFD_OK);
    cr_assert(memcmp(other.host, i.host, 16) != 0);
    for (const char *const *wrong = (const char *const[]){"URI:urn:uuid:00112233-4455-6677-8899-aabbccddeef",
                                                          "URI:urn:uuid:00112233-4455-6677-8899-aabbccddeefg",
                                                          "URI:urn:uuid:001122334455-6677-8899-aabbccddeeff-", NULL};
         *wrong; wrong++) {
        cr_assert_eq(identify("abc", *wrong, &other), PROFD_OK);
        cr_assert_arr_eq(other.host, i.host, 16, "%s is no UUID", *wrong);
    }
}

Test(tls_identity, names_that_cannot_be_shown_are_refused)
{
    struct tls_identity i;
    char name[280];

    cr_assert_eq(identify(NULL, NULL, &i), PROFD_UNTRUSTED);
    cr_assert_eq(identify("two words", NULL, &i), PROFD_UNTRUSTED);
    cr_assert_eq(identify("c",
                          "DNS:a\x01"
                          "b",
                          &i),
                 PROFD_UNTRUSTED);
    memset(name, 'a', sizeof name);
    memcpy(name, "DNS:", 4);
    name[4 + 255] = 0;
    cr_assert_eq(identify(NULL, name, &i), PROFD_OK);
    cr_assert_eq(strlen(i.name), 255);
    name[4 + 255] = 'a';
    name[4 + 256] = 0;
    cr_assert_eq(identify(NULL, name, &i), PROFD_UNTRUSTED);
}
