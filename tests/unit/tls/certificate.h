/* A certificate for tests. */
#ifndef PROFD_TESTS_UNIT_TLS_CERTIFICATE_H
#define PROFD_TESTS_UNIT_TLS_CERTIFICATE_H

#include <openssl/evp.h>
#include <openssl/x509v3.h>

/* Of this common name and subjectAltName; NULL: none. The caller frees it. */
static inline X509 *certificate_make(const char *name, const char *alternatives, long serial)
{
    X509 *x = X509_new();
    EVP_PKEY *key = EVP_EC_gen("P-256");

    X509_set_pubkey(x, key);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
    if (name) {
        X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1,
                                   0);
    }
    if (alternatives) {
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alternatives);

        X509_add_ext(x, e, -1);
        X509_EXTENSION_free(e);
    }
    EVP_PKEY_free(key);
    return x;
}

#endif
