#include "proto/enrolment.h"
#include "tls/tls_context.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#define ISSUERS_MAX 100
#define OWN_CA "urn:profd:ca"

void tls_init(void)
{
    unsigned char drawn[1];

    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS, NULL);
    (void)RAND_bytes(drawn, sizeof drawn);
    (void)signal(SIGPIPE, SIG_IGN);
}

/* The reason of the last error of OpenSSL, which is cleared. */
static const char *tls_reason(void)
{
    const unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);

    ERR_clear_error();
    return reason ? reason : "unknown reason";
}

/* Is it of profd's own CA? */
static bool tls_is_own(X509 *x)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    bool found = false;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);

        found |= g->type == GEN_URI && ASN1_STRING_length(g->d.uniformResourceIdentifier) == (int)strlen(OWN_CA) &&
                 !memcmp(ASN1_STRING_get0_data(g->d.uniformResourceIdentifier), OWN_CA, strlen(OWN_CA));
    }
    GENERAL_NAMES_free(names);
    return found;
}

/* The next certificate of a text; NULL at its end. */
static X509 *tls_next_certificate(BIO *text)
{
    return PEM_read_bio_X509_AUX(text, NULL, NULL, NULL);
}

static enum profd_status tls_use_certificate(SSL_CTX *c, const struct tls_text *t, struct profd_error *e)
{
    BIO *text = BIO_new_mem_buf(t->data, (int)t->size);
    X509 *x = text ? tls_next_certificate(text) : NULL;
    enum profd_status status = PROFD_OK;

    if (!x || SSL_CTX_use_certificate(c, x) != 1) {
        status =
            profd_error_set(e, PROFD_CONFIG, "%s holds no certificate that can be used: %s", t->name, tls_reason());
    }
    X509_free(x);
    for (unsigned n = 0; !status && (x = tls_next_certificate(text)) != NULL; n++) {
        if (n == ISSUERS_MAX || SSL_CTX_add0_chain_cert(c, x) != 1) {
            X509_free(x);
            status = profd_error_set(e, PROFD_CONFIG, "%s holds more certificates than can be sent", t->name);
        }
    }
    BIO_free(text);
    ERR_clear_error();
    return status;
}

static enum profd_status tls_use_key(SSL_CTX *c, const struct tls_material *m, struct profd_error *e)
{
    BIO *text = BIO_new_mem_buf(m->key.data, (int)m->key.size);
    EVP_PKEY *key = text ? PEM_read_bio_PrivateKey(text, NULL, NULL, (void *)(uintptr_t) "") : NULL;
    enum profd_status status = PROFD_OK;

    if (!key) {
        status = profd_error_set(e, PROFD_CONFIG, "%s holds no private key without a passphrase: %s", m->key.name,
                                 tls_reason());
    } else if (SSL_CTX_use_PrivateKey(c, key) != 1 || SSL_CTX_check_private_key(c) != 1) {
        status = profd_error_set(e, PROFD_CONFIG, "the key in %s is not that of the certificate in %s", m->key.name,
                                 m->certificate.name);
    }
    EVP_PKEY_free(key);
    BIO_free(text);
    ERR_clear_error();
    return status;
}

static enum profd_status tls_trust(SSL_CTX *c, enum tls_side side, const struct tls_text *t, struct profd_error *e)
{
    X509_STORE *store = SSL_CTX_get_cert_store(c);
    BIO *text = BIO_new_mem_buf(t->data, (int)t->size);
    enum profd_status status = PROFD_OK;
    bool own = true;
    unsigned n = 0;
    X509 *x;

    while (text && !status && (x = tls_next_certificate(text)) != NULL) {
        if (n == ISSUERS_MAX || X509_STORE_add_cert(store, x) != 1) {
            status = profd_error_set(e, PROFD_CONFIG, "certificate %u of %s cannot be used", n + 1, t->name);
        }
        own = own && tls_is_own(x);
        X509_free(x);
        n++;
    }
    BIO_free(text);
    ERR_clear_error();
    if (own && side == TLS_CLIENT) { /* a host's clock may be wrong, and its CA issues the centre's certificate alone */
        X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(c), X509_V_FLAG_NO_CHECK_TIME);
    }
    return status || n ? status : profd_error_set(e, PROFD_CONFIG, "%s holds no certificate", t->name);
}

enum profd_status tls_context_new(enum tls_side side, const struct tls_material *m, SSL_CTX **out,
                                  struct profd_error *e)
{
    SSL_CTX *c = SSL_CTX_new(side == TLS_SERVER ? TLS_server_method() : TLS_client_method());
    enum profd_status status;

    if (!c || SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1) {
        SSL_CTX_free(c);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for TLS: %s", tls_reason());
    }
    SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_verify_depth(c, TLS_ISSUERS_BETWEEN);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    status = tls_use_certificate(c, &m->certificate, e);
    if (!status) {
        status = tls_use_key(c, m, e);
    }
    if (!status) {
        status = tls_trust(c, side, &m->ca, e);
    }
    if (status) {
        SSL_CTX_free(c);
        return status;
    }
    *out = c;
    return PROFD_OK;
}

/* Of the client's own certificate alone, being past its end is no error. */
static int tls_ignore_end(int accepted, X509_STORE_CTX *context)
{
    return accepted || (X509_STORE_CTX_get_error(context) == X509_V_ERR_CERT_HAS_EXPIRED &&
                        X509_STORE_CTX_get_error_depth(context) == 0);
}

void tls_context_allow_enrolment(SSL_CTX *c)
{
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, tls_ignore_end);
}

static bool tls_has_key(X509 *x, const unsigned char key[ENROLMENT_PIN_SIZE])
{
    unsigned char digest[EVP_MAX_MD_SIZE], *der = NULL;
    const int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x), &der);
    const bool same = n > 0 && EVP_Digest(der, (size_t)n, digest, NULL, EVP_sha256(), NULL) == 1 &&
                      !memcmp(digest, key, ENROLMENT_PIN_SIZE);

    OPENSSL_free(der);
    return same;
}

/* Is the certificate for this name or address? */
static bool tls_is_named(X509 *x, const char *name)
{
    return X509_check_ip_asc(x, name, 0) == 1 ||
           X509_check_host(x, name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1;
}

/* The pinned certificate of the chain is the only one that is trusted. */
static int tls_verify_pinned(X509_STORE_CTX *given, void *context)
{
    const struct tls_pin *pin = context;
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(given);
    X509 *own = X509_STORE_CTX_get0_cert(given);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *check = X509_STORE_CTX_new();
    bool found = false, valid;
    int why = X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN;

    for (int i = 0; store && i < sk_X509_num(chain) && !found; i++) {
        found =
            tls_has_key(sk_X509_value(chain, i), pin->key) && X509_STORE_add_cert(store, sk_X509_value(chain, i)) == 1;
    }
    valid = found && check && X509_STORE_CTX_init(check, store, own, chain) == 1;
    if (valid) {
        X509_STORE_CTX_set_flags(check, X509_V_FLAG_NO_CHECK_TIME);
        valid = X509_STORE_CTX_set_purpose(check, X509_PURPOSE_SSL_SERVER) == 1 && X509_verify_cert(check) == 1;
        why = valid ? X509_V_ERR_HOSTNAME_MISMATCH : X509_STORE_CTX_get_error(check);
        valid = valid && tls_is_named(own, pin->name);
    }
    X509_STORE_CTX_set_error(given, valid ? X509_V_OK : why);
    X509_STORE_CTX_free(check);
    X509_STORE_free(store);
    return valid;
}

enum profd_status tls_context_pin(const struct tls_pin *pin, SSL_CTX **out, struct profd_error *e)
{
    SSL_CTX *c = SSL_CTX_new(TLS_client_method());

    if (!c || SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1) {
        SSL_CTX_free(c);
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for TLS: %s", tls_reason());
    }
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_clear_mode(c, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(c, tls_verify_pinned, (void *)(uintptr_t)pin);
    *out = c;
    return PROFD_OK;
}

enum profd_status tls_require_name(SSL *ssl, const char *host, struct profd_error *e)
{
    unsigned char address[sizeof(struct in6_addr)];
    const bool numeric = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
    int done;

    if (numeric) {
        done = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
    } else {
        SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        /* SSL_set_tlsext_host_name would cast const away */
        done = SSL_set1_host(ssl, host) == 1 &&
               SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)host) == 1;
    }
    return done == 1 ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the name of the centre");
}

/* What the other side said of this side, or NULL. */
static const char *tls_alert(int reason)
{
    switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return "a certificate is required";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "the certificate has expired or is not valid yet";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        return "the certificate is revoked";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the issuer of the certificate is unknown";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return "the certificate is not accepted";
    default:
        return NULL;
    }
}

enum profd_status tls_explain(const SSL *ssl, int result, struct profd_error *e)
{
    const int failure = errno, kind = SSL_get_error(ssl, result);
    const unsigned long code = ERR_peek_last_error();
    const int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    const long verified = SSL_get_verify_result(ssl);
    const char *alert = tls_alert(reason), *text = code ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        return profd_error_set(e, PROFD_UNTRUSTED, "the certificate is not accepted: %s",
                               X509_verify_cert_error_string(verified));
    }
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
        return profd_error_set(e, PROFD_UNTRUSTED, "a certificate is required, and none was sent");
    }
    if (alert) {
        return profd_error_set(e, PROFD_UNTRUSTED, "the other side refuses the certificate of this one: %s", alert);
    }
    if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION) {
        return profd_error_set(e, PROFD_PROTOCOL, "TLS 1.3 is required");
    }
    if (kind == SSL_ERROR_ZERO_RETURN || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING ||
        (kind == SSL_ERROR_SYSCALL && !failure)) {
        return profd_error_set(e, PROFD_UNAVAILABLE, "the connection was closed");
    }
    if (kind == SSL_ERROR_SYSCALL) {
        return profd_error_set(e, PROFD_UNAVAILABLE, "%s", strerror(failure));
    }
    return profd_error_set(e, PROFD_PROTOCOL, "no valid TLS: %s", text ? text : "unknown reason");
}
