#include "tls/tls_identity.h"

#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define UUID_PREFIX "urn:uuid:"
#define TENANT_PREFIX "urn:profd:tenant:"

static int tls_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* 8-4-4-4-12 hexadecimal digits. */
static bool tls_parse_uuid(const char *text, size_t n, uint8_t out[TLS_HOST_SIZE])
{
    size_t at = 0;

    if (n != 36) {
        return false;
    }
    for (size_t i = 0; i < n;) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text[i++] != '-') {
                return false;
            }
            continue;
        }
        const int high = tls_digit(text[i]), low = tls_digit(text[i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        out[at++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    return true;
}

static bool tls_copy_name(const unsigned char *text, size_t n, char out[TLS_NAME_SIZE])
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return false;
        }
    }
    if (!n || n >= TLS_NAME_SIZE) {
        return false;
    }
    memcpy(out, text, n);
    out[n] = 0;
    return true;
}

/* The first identity, and the first tenant. False: the tenant's name is not valid. */
static bool tls_read_uri(const ASN1_IA5STRING *text, struct tls_identity *out, bool *has_uuid)
{
    const char *uri = (const char *)ASN1_STRING_get0_data(text);
    const size_t n = (size_t)ASN1_STRING_length(text), uuid = strlen(UUID_PREFIX), tenant = strlen(TENANT_PREFIX);

    if (!*has_uuid && n > uuid && !strncasecmp(uri, UUID_PREFIX, uuid)) {
        *has_uuid = tls_parse_uuid(uri + uuid, n - uuid, out->host);
    }
    return *out->tenant || n <= tenant || memcmp(uri, TENANT_PREFIX, tenant) != 0 ||
           tls_copy_name((const unsigned char *)uri + tenant, n - tenant, out->tenant);
}

/* The hash of the public key, and the end. */
static bool tls_read_key(X509 *x, struct tls_identity *out)
{
    unsigned char *der = NULL;
    const int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der);
    struct tm end = {0};
    const bool done = n > 0 && EVP_Digest(der, (size_t)n, out->key, NULL, EVP_sha256(), NULL) == 1 &&
                      ASN1_TIME_to_tm(X509_get0_notAfter(x), &end) == 1;

    OPENSSL_free(der);
    out->not_after = (int64_t)timegm(&end) * INT64_C(1000000000);
    return done;
}

/* From subjectAltName: the first of each kind. False: a name is not valid. */
static bool tls_read_alternatives(X509 *x, struct tls_identity *out, bool *has_uuid)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    bool valid = true;

    for (int i = 0; i < sk_GENERAL_NAME_num(names) && valid; i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);

        if (g->type == GEN_DNS && !*out->name) {
            valid =
                tls_copy_name(ASN1_STRING_get0_data(g->d.dNSName), (size_t)ASN1_STRING_length(g->d.dNSName), out->name);
        } else if (g->type == GEN_URI) {
            valid = tls_read_uri(g->d.uniformResourceIdentifier, out, has_uuid);
        }
    }
    GENERAL_NAMES_free(names);
    return valid;
}

static bool tls_read_common_name(X509 *x, struct tls_identity *out)
{
    const X509_NAME *subject = X509_get_subject_name(x);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    const ASN1_STRING *text = at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));

    return text && tls_copy_name(ASN1_STRING_get0_data(text), (size_t)ASN1_STRING_length(text), out->name);
}

enum profd_status tls_identity_read(X509 *certificate, struct tls_identity *out, struct profd_error *e)
{
    struct tls_identity found = {.name = ""};
    char lower[TLS_NAME_SIZE];
    uint8_t digest[EVP_MAX_MD_SIZE];
    bool has_uuid = false;
    size_t n;

    if (!tls_read_alternatives(certificate, &found, &has_uuid)) {
        return profd_error_set(e, PROFD_UNTRUSTED,
                               "a DNS name of the certificate is not 1 to 255 printable characters");
    }
    if (!tls_read_key(certificate, &found)) {
        return profd_error_set(e, PROFD_UNTRUSTED, "the key or the end of the certificate cannot be read");
    }
    if (!*found.name && !tls_read_common_name(certificate, &found) && !has_uuid) {
        return profd_error_set(e, PROFD_UNTRUSTED,
                               "the certificate names no host: no DNS name, no common name of 1 to 255 printable "
                               "characters, and no URI urn:uuid:");
    }
    if (!has_uuid) {
        n = strlen(found.name);
        for (size_t i = 0; i <= n; i++) {
            lower[i] =
                (char)(found.name[i] >= 'A' && found.name[i] <= 'Z' ? found.name[i] + ('a' - 'A') : found.name[i]);
        }
        if (EVP_Digest(lower, n, digest, NULL, EVP_sha256(), NULL) != 1) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the identity of a host");
        }
        memcpy(found.host, digest, sizeof found.host);
    }
    if (!*found.name) {
        snprintf(found.name, sizeof found.name, "%02x%02x%02x%02x", found.host[0], found.host[1], found.host[2],
                 found.host[3]);
    }
    *out = found;
    return PROFD_OK;
}
