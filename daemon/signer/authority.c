#include "signer/authority.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/enrolment.h"
#include "signer/certificate.h"
#include "tls/tls_file.h"

#define DAY INT64_C(86400)
#define PATH_SIZE 4096
#define NAME_MAX_SIZE 255

static enum profd_status authority_read(const char *directory, const char *name, bool secret, struct tls_text *out,
                                        char path[PATH_SIZE], struct profd_error *e)
{
    int fd = -1;
    enum profd_status status;

    if (snprintf(path, PATH_SIZE, "%s/%s", directory, name) >= PATH_SIZE) {
        return profd_error_set(e, PROFD_CONFIG, "the name of the directory is too long");
    }
    status = tls_file_open(path, secret, &fd, e);
    if (!status) {
        status = tls_file_read(fd, path, out, e);
        close(fd);
    }
    return status;
}

static X509 *authority_next(BIO *text)
{
    return PEM_read_bio_X509(text, NULL, NULL, NULL);
}

/* The certificate of the key among those in the bundle. */
static X509 *authority_find(const struct tls_text *bundle, EVP_PKEY *key)
{
    BIO *text = BIO_new_mem_buf(bundle->data, (int)bundle->size);
    X509 *x = NULL, *found = NULL;

    while (text && !found && (x = authority_next(text)) != NULL) {
        if (X509_check_private_key(x, key) == 1) {
            found = x;
        } else {
            X509_free(x);
        }
    }
    BIO_free(text);
    ERR_clear_error();
    return found;
}

/* The hash of the public key of the certificate that issued the gate's. */
static bool authority_find_pin(const struct tls_text *bundle, const struct tls_text *gate,
                               uint8_t pin[ENROLMENT_PIN_SIZE])
{
    BIO *text = BIO_new_mem_buf(bundle->data, (int)bundle->size), *of = BIO_new_mem_buf(gate->data, (int)gate->size);
    X509 *own = of ? authority_next(of) : NULL, *x;
    unsigned char *der = NULL;
    bool found = false;

    while (text && own && !found && (x = authority_next(text)) != NULL) {
        const int n = X509_verify(own, X509_get0_pubkey(x)) == 1 ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der) : 0;

        found = n > 0 && EVP_Digest(der, (size_t)n, pin, NULL, EVP_sha256(), NULL) == 1;
        OPENSSL_free(der);
        der = NULL;
        X509_free(x);
    }
    X509_free(own);
    BIO_free(text);
    BIO_free(of);
    ERR_clear_error();
    return found;
}

static enum profd_status authority_use(struct authority *a, const struct tls_text *key, struct tls_text *bundle,
                                       const struct tls_text *gate, struct profd_error *e)
{
    BIO *text = BIO_new_mem_buf(key->data, (int)key->size);

    a->key = text ? PEM_read_bio_PrivateKey(text, NULL, NULL, NULL) : NULL;
    BIO_free(text);
    ERR_clear_error();
    if (!a->key) {
        return profd_error_set(e, PROFD_CONFIG, "%s holds no private key without a passphrase", key->name);
    }
    a->certificate = authority_find(bundle, a->key);
    if (!a->certificate) {
        return profd_error_set(e, PROFD_CONFIG, "%s holds no certificate of the key in %s", bundle->name, key->name);
    }
    if (!authority_find_pin(bundle, gate, a->pin)) {
        return profd_error_set(e, PROFD_CONFIG, "the first certificate in %s was issued by none in %s", gate->name,
                               bundle->name);
    }
    a->bundle = bundle->data;
    a->bundle_size = bundle->size;
    bundle->data = NULL;
    return PROFD_OK;
}

enum profd_status authority_open(const char *directory, struct authority *out, struct profd_error *e)
{
    static const char *const names[] = {"ca.key", "gate-ca.crt", "gate.crt"};
    struct tls_text texts[3] = {{0}, {0}, {0}};
    char paths[3][PATH_SIZE];
    struct authority a = {.key = NULL};
    enum profd_status status = PROFD_OK;

    for (size_t i = 0; i < 3 && !status; i++) {
        status = authority_read(directory, names[i], i == 0, &texts[i], paths[i], e);
    }
    if (!status) {
        status = authority_use(&a, &texts[0], &texts[1], &texts[2], e);
    }
    for (size_t i = 0; i < 3; i++) {
        tls_text_done(&texts[i]);
    }
    if (status) {
        authority_close(&a);
        return status;
    }
    *out = a;
    return PROFD_OK;
}

void authority_close(struct authority *a)
{
    EVP_PKEY_free(a->key);
    X509_free(a->certificate);
    free(a->bundle);
    *a = (struct authority){.key = NULL};
}

/* 8-4-4-4-12 hexadecimal digits behind urn:uuid:. */
static void authority_write_identity(const uint8_t *host, char out[48])
{
    size_t at = (size_t)snprintf(out, 48, "urn:uuid:");

    for (size_t i = 0; i < AUTHORITY_HOST_SIZE; i++) {
        at += (size_t)snprintf(out + at, 48 - at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", host[i]);
    }
}

static bool authority_name_valid(const char *name)
{
    const size_t n = strlen(name);

    for (size_t i = 0; i < n; i++) {
        if (name[i] <= ' ' || name[i] > '~') {
            return false;
        }
    }
    return n > 0 && n <= NAME_MAX_SIZE;
}

static enum profd_status authority_write(X509 *x, char **out, size_t *size, struct profd_error *e)
{
    BIO *text = BIO_new(BIO_s_mem());
    char *data = NULL;
    long n = 0;

    if (text && PEM_write_bio_X509(text, x) == 1) {
        n = BIO_get_mem_data(text, &data);
    }
    *out = n > 0 ? malloc((size_t)n) : NULL;
    if (*out) {
        memcpy(*out, data, (size_t)n);
        *size = (size_t)n;
    }
    BIO_free(text);
    return *out ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for a certificate");
}

enum profd_status authority_sign(const struct authority *a, const struct message_sign *request, char **out,
                                 size_t *size, uint64_t *not_after, struct profd_error *e)
{
    static const char *const extensions[] = {"basicConstraints",
                                             "critical,CA:FALSE",
                                             "keyUsage",
                                             "critical,digitalSignature",
                                             "extendedKeyUsage",
                                             "clientAuth",
                                             "authorityKeyIdentifier",
                                             "keyid",
                                             NULL};
    const unsigned char *der = request->key.data;
    char identity[48], tenant[sizeof "urn:profd:tenant:" + NAME_MAX_SIZE];
    const char *const names[] = {"DNS", request->name, "URI", identity, "URI", tenant, NULL};
    struct certificate_wish wish = {.name = request->name, .extensions = extensions, .names = names};
    EVP_PKEY *key = NULL;
    X509 *x = NULL;
    enum profd_status status;

    if (request->host.size != AUTHORITY_HOST_SIZE || !authority_name_valid(request->name) ||
        !authority_name_valid(request->tenant)) {
        return profd_error_set(e, PROFD_MALFORMED, "identity, name or tenant of the host is not valid");
    }
    if (X509_cmp_current_time(X509_get0_notAfter(a->certificate)) < 0) {
        return profd_error_set(e, PROFD_CONFIG, "the CA has expired: make a new key for it (profctl ca roll)");
    }
    authority_write_identity(request->host.data, identity);
    snprintf(tenant, sizeof tenant, "urn:profd:tenant:%s", request->tenant);
    wish.from = time(NULL) - 3600;
    wish.until = wish.from + 3600 + ENROLMENT_CERTIFICATE_DAYS * DAY;
    key = d2i_PUBKEY(NULL, &der, (long)request->key.size);
    status = key && der == request->key.data + request->key.size
                 ? certificate_make(&wish, key, a->certificate, a->key, &x, e)
                 : profd_error_set(e, PROFD_MALFORMED, "the public key of the host cannot be read");
    EVP_PKEY_free(key);
    ERR_clear_error();
    if (!status) {
        *not_after = (uint64_t)wish.until * UINT64_C(1000000000);
        status = authority_write(x, out, size, e);
    }
    X509_free(x);
    return status;
}
