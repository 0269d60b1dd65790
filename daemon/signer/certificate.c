#include "signer/certificate.h"

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#define SERIAL_SIZE 16
#define COMMON_NAME_MAX 64

static bool certificate_set_serial(X509 *x)
{
    unsigned char random[SERIAL_SIZE];
    BIGNUM *n;
    bool done;

    if (RAND_bytes(random, sizeof random) != 1) {
        return false;
    }
    random[0] = (random[0] & 0x7f) | 0x40; /* positive, and always of the same length */
    n = BN_bin2bn(random, sizeof random, NULL);
    done = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
    BN_free(n);
    return done;
}

static bool certificate_set_subject(X509 *x, const char *name)
{
    const size_t n = strlen(name);
    X509_NAME *subject = X509_NAME_new();
    const bool done =
        subject &&
        X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, (const unsigned char *)"profd", -1, -1, 0) == 1 &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name,
                                   (int)(n < COMMON_NAME_MAX ? n : COMMON_NAME_MAX), -1, 0) == 1 &&
        X509_set_subject_name(x, subject) == 1;

    X509_NAME_free(subject);
    return done;
}

static GENERAL_NAME *certificate_general_name(const char *kind, const char *value)
{
    GENERAL_NAME *g = GENERAL_NAME_new();
    ASN1_OCTET_STRING *address = NULL;
    ASN1_IA5STRING *text = NULL;

    if (g && !strcmp(kind, "IP") && (address = a2i_IPADDRESS(value)) != NULL) {
        GENERAL_NAME_set0_value(g, GEN_IPADD, address);
        return g;
    }
    if (g && strcmp(kind, "IP") != 0 && (text = ASN1_IA5STRING_new()) != NULL && ASN1_STRING_set(text, value, -1)) {
        GENERAL_NAME_set0_value(g, strcmp(kind, "DNS") ? GEN_URI : GEN_DNS, text);
        return g;
    }
    ASN1_IA5STRING_free(text);
    GENERAL_NAME_free(g);
    return NULL;
}

/* Values are set as they are: a name can add no other. */
static bool certificate_set_names(X509 *x, const char *const *names)
{
    GENERAL_NAMES *list = GENERAL_NAMES_new();
    bool done = list != NULL;

    for (; done && *names; names += 2) {
        GENERAL_NAME *g = certificate_general_name(names[0], names[1]);

        done = g && sk_GENERAL_NAME_push(list, g) > 0;
        if (!done) {
            GENERAL_NAME_free(g);
        }
    }
    done = done && X509_add1_ext_i2d(x, NID_subject_alt_name, list, 0, X509V3_ADD_APPEND) == 1;
    GENERAL_NAMES_free(list);
    return done;
}

static bool certificate_extend(X509 *x, X509 *issuer, const char *const *extensions)
{
    X509V3_CTX context;
    bool done = true;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    for (; done && *extensions; extensions += 2) {
        X509_EXTENSION *extension = X509V3_EXT_conf(NULL, &context, extensions[0], extensions[1]);

        done = extension && X509_add_ext(x, extension, -1) == 1;
        X509_EXTENSION_free(extension);
    }
    return done;
}

static bool certificate_fill(X509 *x, const struct certificate_wish *wish, EVP_PKEY *key, const X509 *issuer)
{
    return X509_set_version(x, X509_VERSION_3) == 1 && certificate_set_serial(x) &&
           certificate_set_subject(x, wish->name) &&
           X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer : x)) == 1 && X509_set_pubkey(x, key) == 1 &&
           ASN1_TIME_set(X509_getm_notBefore(x), (time_t)wish->from) &&
           ASN1_TIME_set(X509_getm_notAfter(x), (time_t)wish->until);
}

/* Algorithms that sign a digest of their own choice get none. */
static const EVP_MD *certificate_digest(const EVP_PKEY *key)
{
    return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
}

enum profd_status certificate_make(const struct certificate_wish *wish, EVP_PKEY *key, X509 *issuer,
                                   EVP_PKEY *issuer_key, X509 **out, struct profd_error *e)
{
    X509 *x = X509_new();
    enum profd_status status = PROFD_OK;

    if (!x || !certificate_fill(x, wish, key, issuer)) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a certificate");
    } else if (!certificate_set_names(x, wish->names)) {
        status = profd_error_set(e, PROFD_CONFIG, "a name of the certificate is not valid");
    } else if (!certificate_extend(x, issuer ? issuer : x, wish->extensions) ||
               X509_sign(x, issuer_key, certificate_digest(issuer_key)) <= 0) {
        status = profd_error_set(e, PROFD_INTERNAL, "the certificate cannot be signed");
    }
    ERR_clear_error();
    if (status) {
        X509_free(x);
        return status;
    }
    *out = x;
    return PROFD_OK;
}
