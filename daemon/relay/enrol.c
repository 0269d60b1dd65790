#include "relay/enrol.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"
#include "proto/enrolment.h"
#include "proto/frame.h"
#include "relay/connect.h"
#include "relay/identity.h"
#include "relay/talk.h"
#include "tls/tls_context.h"

#define TOKEN_BYTES (ENROLMENT_PIN_SIZE + ENROLMENT_SECRET_SIZE)
#define TOKEN_DIGITS (TOKEN_BYTES / 3 * 4)
#define PATH_SIZE 4096
#define SITE_CERTIFICATE SYSCONFDIR "/profd/relay.crt"
#define ANSWER_MAX (1u << 20)
#define PATIENCE_MS 120000 /* with a centre that is busy */

struct enrol {
    const char *url, *directory, *name, *config;
    char certificate[PATH_SIZE], key[PATH_SIZE], ca[PATH_SIZE], host[256];
    uint8_t token[TOKEN_BYTES + 3]; /* pin and secret */
};

static enum profd_status enrol_cannot(const char *what, const char *path, struct profd_error *e)
{
    return profd_error_set(e, PROFD_CANT_CREATE, "cannot %s %s: %s", what, path, strerror(errno));
}

/* The first line of standard input: base64url of pin and secret. */
static enum profd_status enrol_read_token(struct enrol *r, struct profd_error *e)
{
    char line[sizeof ENROLMENT_TOKEN_PREFIX + TOKEN_DIGITS + 8] = "", *digits = line + strlen(ENROLMENT_TOKEN_PREFIX);
    enum profd_status status = PROFD_OK;

    if (!fgets(line, sizeof line, stdin)) {
        line[0] = 0;
    }
    line[strcspn(line, "\r\n")] = 0;
    if (strncmp(line, ENROLMENT_TOKEN_PREFIX, strlen(ENROLMENT_TOKEN_PREFIX)) != 0 || strlen(digits) != TOKEN_DIGITS) {
        return profd_error_set(e, PROFD_USAGE, "this is no token: it must begin with %s and have %zu characters",
                               ENROLMENT_TOKEN_PREFIX, strlen(ENROLMENT_TOKEN_PREFIX) + TOKEN_DIGITS);
    }
    for (char *c = digits; *c; c++) {
        *c = (char)(*c == '-' ? '+' : *c == '_' ? '/' : *c == '+' || *c == '/' ? '!' : *c);
    }
    if (EVP_DecodeBlock(r->token, (const unsigned char *)digits, TOKEN_DIGITS) != TOKEN_BYTES) {
        status = profd_error_set(e, PROFD_USAGE, "this is no token: it has characters that are not base64url");
    }
    OPENSSL_cleanse(line, sizeof line);
    return status;
}

/* A whole file beside its place, synced, and then in it. */
static enum profd_status enrol_write(const char *path, const void *data, size_t n, mode_t mode, struct profd_error *e)
{
    const struct passwd *owner = geteuid() ? NULL : getpwnam("profd-relay");
    enum profd_status status = PROFD_OK;
    char part[PATH_SIZE + 8];
    int fd;

    (void)snprintf(part, sizeof part, "%s.new", path);
    (void)unlink(part);
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) {
        return enrol_cannot("make", part, e);
    }
    if (write(fd, data, n) != (ssize_t)n || (owner && fchown(fd, owner->pw_uid, owner->pw_gid)) || fsync(fd)) {
        status = enrol_cannot("write", part, e);
    }
    close(fd);
    if (!status && rename(part, path)) {
        status = enrol_cannot("make", path, e);
    }
    if (status) {
        (void)unlink(part);
    }
    return status;
}

/* The key that an attempt before has left, or a new one. */
static enum profd_status enrol_take_key(const char *path, EVP_PKEY **out, struct profd_error *e)
{
    FILE *f = fopen(path, "re");
    BIO *text;
    char *data = NULL;
    long n;
    enum profd_status status;

    *out = f ? PEM_read_PrivateKey(f, NULL, NULL, NULL) : NULL;
    if (f) {
        fclose(f);
        return *out ? PROFD_OK : profd_error_set(e, PROFD_CONFIG, "%s holds no private key", path);
    }
    *out = EVP_EC_gen("P-256");
    text = BIO_new(BIO_s_mem());
    if (!*out || !text || PEM_write_bio_PrivateKey(text, *out, NULL, NULL, 0, NULL, NULL) != 1) {
        BIO_free(text);
        return profd_error_set(e, PROFD_INTERNAL, "no key can be made");
    }
    n = BIO_get_mem_data(text, &data);
    status = enrol_write(path, data, (size_t)n, 0600, e);
    OPENSSL_cleanse(data, (size_t)n);
    BIO_free(text);
    return status;
}

/* PKCS#10, signed by the key. */
static enum profd_status enrol_make_request(EVP_PKEY *key, unsigned char **der, size_t *n, struct profd_error *e)
{
    X509_REQ *r = X509_REQ_new();
    const EVP_MD *digest = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
    int size = 0;

    if (r && X509_REQ_set_version(r, X509_REQ_VERSION_1) == 1 && X509_REQ_set_pubkey(r, key) == 1 &&
        X509_REQ_sign(r, key, digest) > 0) {
        size = i2d_X509_REQ(r, der);
    }
    X509_REQ_free(r);
    ERR_clear_error();
    *n = size > 0 ? (size_t)size : 0;
    return *n ? PROFD_OK : profd_error_set(e, PROFD_INTERNAL, "no request for a certificate can be made");
}

static bool enrol_has_certificate(const struct message_bytes *pem)
{
    BIO *text = BIO_new_mem_buf(pem->data, (int)pem->size);
    X509 *x = text ? PEM_read_bio_X509(text, NULL, NULL, NULL) : NULL;

    X509_free(x);
    BIO_free(text);
    return x != NULL;
}

/* What the centre has sent goes into the files, if it is for this key. */
static enum profd_status enrol_keep(const char *certificate, const char *ca, EVP_PKEY *key,
                                    const struct message_enrolled *m, struct profd_error *e)
{
    BIO *text = BIO_new_mem_buf(m->certificate.data, (int)m->certificate.size);
    X509 *x = text ? PEM_read_bio_X509(text, NULL, NULL, NULL) : NULL;
    const bool own = x && X509_check_private_key(x, key) == 1;
    enum profd_status status =
        own ? PROFD_OK : profd_error_set(e, PROFD_PROTOCOL, "the centre sent no certificate of this host's key");

    X509_free(x);
    BIO_free(text);
    if (!status && !enrol_has_certificate(&m->ca)) { /* the host could not connect again */
        status = profd_error_set(e, PROFD_PROTOCOL, "the centre sent no certificate of a CA");
    }
    ERR_clear_error();
    if (!status) {
        status = enrol_write(ca, m->ca.data, m->ca.size, 0644, e);
    }
    return status ? status : enrol_write(certificate, m->certificate.data, m->certificate.size, 0644, e);
}

static enum profd_status enrol_ask(const struct config *c, const struct tls_pin *pin, const struct message *request,
                                   struct message *answer, struct profd_error *e)
{
    struct talk t = talk_of("the centre", ANSWER_MAX);
    enum profd_status status = connect_centre(c, pin, &t.stream, e);

    if (!status) {
        status = talk_greet(&t, e);
    }
    if (!status) {
        status = talk_ask(&t, request, FRAME_ENROLLED, answer, e);
    }
    stream_close(&t.stream);
    return status;
}

enum profd_status enrol_renew(const struct config *c, struct profd_error *e)
{
    char machine[IDENTITY_MACHINE_SIZE];
    const struct message request = {.type = FRAME_RENEW,
                                    .as.renew = {.machine = identity_machine(machine), .version = PROFD_VERSION}};
    struct message answer;
    EVP_PKEY *key = NULL;
    enum profd_status status = access(c->key, R_OK) ? enrol_cannot("read", c->key, e) : enrol_take_key(c->key, &key, e);

    if (!status) {
        status = enrol_ask(c, NULL, &request, &answer, e);
    }
    if (!status) {
        status = enrol_keep(c->certificate, c->ca, key, &answer.as.enrolled, e);
        message_done(&answer);
    }
    EVP_PKEY_free(key);
    return status ? profd_error_wrap(e, status, "the certificate of this host cannot be renewed") : PROFD_OK;
}

/* Asks again while the centre is busy: many hosts may enrol at once. */
static enum profd_status enrol_ask_patiently(const struct config *c, const struct tls_pin *pin,
                                             const struct message *request, struct message *answer,
                                             struct profd_error *e)
{
    const int64_t end = stream_now() + PATIENCE_MS;
    enum profd_status status = enrol_ask(c, pin, request, answer, e);

    for (bool told = false; status == PROFD_BUSY && stream_now() < end; told = true) {
        uint32_t random = 0;

        if (!told) {
            log_write(LOG_LEVEL_NOTICE, NULL, "%s; trying for two minutes", e->sentence);
            log_flush();
        }
        (void)RAND_bytes((unsigned char *)&random, sizeof random);
        (void)poll(NULL, 0, 1000 + (int)(random % 4000));
        status = enrol_ask(c, pin, request, answer, e);
    }
    return status;
}

static enum profd_status enrol_first(struct enrol *r, const struct config *c, struct profd_error *e)
{
    struct message request = {.type = FRAME_ENROLL}, answer;
    struct tls_pin pin = {.name = c->centre.host};
    char machine[IDENTITY_MACHINE_SIZE];
    EVP_PKEY *key = NULL;
    unsigned char *der = NULL;
    size_t n;
    enum profd_status status = enrol_take_key(r->key, &key, e);

    if (!status) {
        status = enrol_make_request(key, &der, &n, e);
    }
    if (!status) {
        memcpy(pin.key, r->token, sizeof pin.key);
        request.as.enroll.request = (struct message_bytes){der, n};
        request.as.enroll.secret = (struct message_bytes){r->token + ENROLMENT_PIN_SIZE, ENROLMENT_SECRET_SIZE};
        request.as.enroll.name = r->name;
        request.as.enroll.machine = identity_machine(machine);
        request.as.enroll.version = PROFD_VERSION;
        status = enrol_ask_patiently(c, &pin, &request, &answer, e);
    }
    if (!status) {
        status = enrol_keep(r->certificate, r->ca, key, &answer.as.enrolled, e);
        if (!status) {
            printf("enrolled as %s, tenant %s; the files are in %s\n"
                   "next: set \"relay = %s\" in profd.conf, restart profd and start profd-relay\n",
                   answer.as.enrolled.name, answer.as.enrolled.tenant, r->directory, r->url);
        }
        message_done(&answer);
    }
    OPENSSL_free(der);
    EVP_PKEY_free(key);
    return status;
}

static enum profd_status enrol_make_directory(const struct enrol *r, struct profd_error *e)
{
    const struct passwd *owner = geteuid() ? NULL : getpwnam("profd-relay");

    if (!mkdir(r->directory, 0755)) {
        return owner && chown(r->directory, owner->pw_uid, owner->pw_gid) ? enrol_cannot("give away", r->directory, e)
                                                                          : PROFD_OK;
    }
    return errno == EEXIST ? PROFD_OK : enrol_cannot("make", r->directory, e);
}

static enum profd_status enrol_read_options(int argc, char *const argv[], struct enrol *r, struct profd_error *e)
{
    static const struct option known[] = {{"enroll", required_argument, NULL, 'u'},
                                          {"dir", required_argument, NULL, 'd'},
                                          {"name", required_argument, NULL, 'n'},
                                          {"config", required_argument, NULL, 'c'},
                                          {NULL, 0, NULL, 0}};
    int got;

    *r = (struct enrol){.directory = CONFIG_RELAY_DIRECTORY};
    opterr = 0;
    while ((got = getopt_long(argc, argv, "", known, NULL)) != -1) {
        r->url = got == 'u' ? optarg : r->url;
        r->directory = got == 'd' ? optarg : r->directory;
        r->name = got == 'n' ? optarg : r->name;
        r->config = got == 'c' ? optarg : r->config;
        if (got == '?') {
            return profd_error_set(e, PROFD_USAGE, "%s is no option beside --enroll", argv[optind - 1]);
        }
    }
    if (!r->name && !gethostname(r->host, sizeof r->host - 1)) {
        r->name = r->host;
    }
    if (!r->url || optind < argc || !r->name || strlen(r->directory) > PATH_SIZE - 32) {
        return profd_error_set(e, PROFD_USAGE, "usage: profd-relay --enroll tls://HOST:PORT [--dir DIR] [--name NAME]");
    }
    (void)snprintf(r->certificate, sizeof r->certificate, "%s/relay.crt", r->directory);
    (void)snprintf(r->key, sizeof r->key, "%s/relay.key", r->directory);
    (void)snprintf(r->ca, sizeof r->ca, "%s/relay-ca.crt", r->directory);
    return PROFD_OK;
}

static enum profd_status enrol_run(struct enrol *r, struct profd_error *e)
{
    char program[] = "profd-relay", relay[] = "--relay", config[] = "--config";
    char *url = strdup(r->url), *file = r->config ? strdup(r->config) : NULL;
    char *arguments[] = {program, relay, url, file ? config : NULL, file, NULL};
    struct config c;
    enum profd_status status =
        url ? config_load(OF_RELAY, file ? 5 : 3, arguments, &c, e) : profd_error_set(e, PROFD_NO_MEMORY, "no memory");

    if (!status && !access(r->certificate, F_OK)) {
        status = profd_error_set(e, PROFD_CANT_CREATE,
                                 "%s exists: this host is enrolled already; remove relay.crt and relay.key for a new "
                                 "identity",
                                 r->certificate);
    } else if (!status && !strcmp(r->directory, CONFIG_RELAY_DIRECTORY) && !access(SITE_CERTIFICATE, F_OK)) {
        status = profd_error_set(e, PROFD_CANT_CREATE,
                                 SITE_CERTIFICATE " exists, and profd-relay would go on using it: remove it first");
    } else if (!status) {
        status = enrol_make_directory(r, e);
    }
    if (!status) {
        status = enrol_first(r, &c, e);
    }
    if (url) {
        config_done(&c);
    }
    free(url);
    free(file);
    return status;
}

int enrol_main(int argc, char *const argv[])
{
    struct profd_error e = {""};
    struct enrol r;
    enum profd_status status = enrol_read_options(argc, argv, &r, &e);

    log_set_program("profctl enroll");
    tls_init();
    if (!status) {
        status = enrol_read_token(&r, &e);
    }
    if (!status) {
        status = enrol_run(&r, &e);
    }
    OPENSSL_cleanse(&r, sizeof r);
    if (status) {
        log_write(LOG_LEVEL_ERROR, NULL, "%s", e.sentence);
    }
    return profd_status_exit(status);
}
