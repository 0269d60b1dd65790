#include "gate/enrol.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

#include "proto/message.h"

#define RSA_LEAST 2048
#define RSA_MOST 8192        /* a larger key costs the gate more than a host may */
#define RSA_EXPONENT_BITS 32 /* so does one with a larger public exponent */

static bool enrol_rsa_accepted(const EVP_PKEY *key)
{
    const int bits = EVP_PKEY_get_bits(key);
    BIGNUM *exponent = NULL;
    const bool accepted = bits >= RSA_LEAST && bits <= RSA_MOST &&
                          EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent) == 1 &&
                          BN_num_bits(exponent) <= RSA_EXPONENT_BITS;

    BN_free(exponent);
    return accepted;
}

static bool enrol_key_accepted(const EVP_PKEY *key)
{
    char group[32] = "";

    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_EC:
        return EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1 &&
               (!strcmp(group, "prime256v1") || !strcmp(group, "secp384r1"));
    case EVP_PKEY_ED25519:
        return true;
    case EVP_PKEY_RSA:
        return enrol_rsa_accepted(key);
    default:
        return false;
    }
}

/* The public key of a request that it signs, as DER. */
static enum profd_status enrol_read_request(const struct message_bytes *request, unsigned char **der, size_t *n,
                                            struct profd_error *e)
{
    const unsigned char *at = request->data;
    X509_REQ *r = request->size ? d2i_X509_REQ(NULL, &at, (long)request->size) : NULL;
    EVP_PKEY *key = r ? X509_REQ_get0_pubkey(r) : NULL;
    enum profd_status status = PROFD_OK;
    int size;

    if (!key || at != request->data + request->size) {
        status = profd_error_set(e, PROFD_MALFORMED, "the request for a certificate is not PKCS#10 in DER");
    } else if (!enrol_key_accepted(key)) {
        status = profd_error_set(e, PROFD_REFUSED,
                                 "the key must be of P-256, P-384, Ed25519, or RSA of %d to %d bits with "
                                 "an exponent of at most %d bits",
                                 RSA_LEAST, RSA_MOST, RSA_EXPONENT_BITS);
    } else if (X509_REQ_verify(r, key) != 1) {
        status = profd_error_set(e, PROFD_REFUSED, "the request for a certificate is not signed by its key");
    }
    size = status ? 0 : i2d_PUBKEY(key, der);
    if (!status && size <= 0) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a public key");
    }
    *n = size > 0 ? (size_t)size : 0;
    X509_REQ_free(r);
    ERR_clear_error();
    return status;
}

enum profd_status enrol_rewrite(const struct frame *f, const uint8_t *payload, const X509 *certificate, uint8_t **out,
                                size_t *size, struct profd_error *e)
{
    struct message m;
    unsigned char *der = NULL;
    size_t n = 0;
    enum profd_status status = message_decode(f->type, payload, f->length, &m, e);

    if (status) {
        return status;
    }
    if (f->type == FRAME_ENROLL ? m.as.enroll.key.size : m.as.renew.key.size) {
        status =
            profd_error_set(e, PROFD_FORBIDDEN, "%s states the key: that is for the gate", frame_type_name(f->type));
    } else if (f->type == FRAME_ENROLL) {
        status = enrol_read_request(&m.as.enroll.request, &der, &n, e);
        m.as.enroll.request = (struct message_bytes){payload, 0};
        m.as.enroll.key = (struct message_bytes){der, n};
    } else {
        const int got = certificate ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der) : 0;

        n = got > 0 ? (size_t)got : 0;
        m.as.renew.key = (struct message_bytes){der, n};
        status = n ? PROFD_OK : profd_error_set(e, PROFD_UNAUTHORIZED, "RENEW without a certificate");
    }
    if (!status) {
        status = message_encode(&m, 0, f->tag, out, size, e);
    }
    OPENSSL_free(der);
    message_done(&m);
    return status;
}
