#include "signer/init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "signer/authority.h"
#include "signer/certificate.h"

#define CA_SECONDS (INT64_C(3650) * 86400)
#define PATH_SIZE 4096

/* A file that is being made. */
struct init_file {
    const char *name, *owner; /* NULL: root keeps it, and all may read it */
    BIO *text;
    char part[PATH_SIZE], path[PATH_SIZE];
};

/* In the order in which they are replaced: the certificates hold those of the old and of the new key. */
enum { FILE_CA, FILE_CA_KEY, FILE_GATE_KEY, FILE_GATE, FILES };

struct init {
    const struct init_options *options;
    struct init_file files[FILES];
    EVP_PKEY *ca_key, *gate_key;
    X509 *ca, *gate;
    struct authority old; /* of roll and gate */
};

static enum profd_status init_cannot(const char *what, const char *path, struct profd_error *e)
{
    return profd_error_set(e, PROFD_CANT_CREATE, "cannot %s %s: %s", what, path, strerror(errno));
}

/* Writes and syncs the file beside the place that it shall have. */
static enum profd_status init_write(struct init_file *f, struct profd_error *e)
{
    const struct passwd *owner = f->owner && !geteuid() ? getpwnam(f->owner) : NULL;
    char *data = NULL;
    const long n = BIO_get_mem_data(f->text, &data);
    const int fd = open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    enum profd_status status = PROFD_OK;

    if (fd < 0) {
        return init_cannot("make", f->part, e);
    }
    if (write(fd, data, (size_t)n) != n || fchmod(fd, f->owner ? 0600 : 0644) ||
        (owner && fchown(fd, owner->pw_uid, owner->pw_gid)) || fsync(fd)) {
        status = init_cannot("write", f->part, e);
    }
    close(fd);
    if (status) {
        unlink(f->part);
    }
    return status;
}

static enum profd_status init_sync_directory(const char *path, struct profd_error *e)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const enum profd_status status = fd < 0 || fsync(fd) ? init_cannot("sync", path, e) : PROFD_OK;

    if (fd >= 0) {
        close(fd);
    }
    return status;
}

/* All files, or none: they are put in their places after all have been written. */
static enum profd_status init_save(struct init *i, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    size_t written = 0;

    while (written < FILES && !status) {
        status = i->files[written].text ? init_write(&i->files[written], e) : PROFD_OK;
        written += !status;
    }
    for (size_t k = 0; k < written; k++) {
        struct init_file *f = &i->files[k];

        if (f->text && status) {
            unlink(f->part);
        } else if (f->text && rename(f->part, f->path)) {
            status = init_cannot("make", f->path, e);
        }
    }
    return status ? status : init_sync_directory(i->options->directory, e);
}

static enum profd_status init_draw(EVP_PKEY **out, BIO *text, struct profd_error *e)
{
    *out = EVP_EC_gen("P-256");
    return *out && PEM_write_bio_PrivateKey(text, *out, NULL, NULL, 0, NULL, NULL) == 1
               ? PROFD_OK
               : profd_error_set(e, PROFD_INTERNAL, "no key can be made");
}

static enum profd_status init_make_ca(struct init *i, struct profd_error *e)
{
    static const char *const extensions[] = {"basicConstraints",
                                             "critical,CA:TRUE,pathlen:0",
                                             "keyUsage",
                                             "critical,keyCertSign,cRLSign",
                                             "subjectKeyIdentifier",
                                             "hash",
                                             NULL};
    static const char *const names[] = {"URI", "urn:profd:ca", NULL};
    const int64_t now = time(NULL);
    char name[64];
    struct certificate_wish wish = {name, extensions, names, now - 86400, now + CA_SECONDS};
    enum profd_status status = init_draw(&i->ca_key, i->files[FILE_CA_KEY].text, e);

    snprintf(name, sizeof name, "profd CA %lld", (long long)now);
    if (!status) {
        status = certificate_make(&wish, i->ca_key, NULL, i->ca_key, &i->ca, e);
    }
    if (!status &&
        (PEM_write_bio_X509(i->files[FILE_CA].text, i->ca) != 1 ||
         (i->old.bundle && BIO_write(i->files[FILE_CA].text, i->old.bundle, (int)i->old.bundle_size) <= 0))) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a certificate");
    }
    return status;
}

static enum profd_status init_make_gate(struct init *i, struct profd_error *e)
{
    static const char *const extensions[] = {"basicConstraints",
                                             "critical,CA:FALSE",
                                             "keyUsage",
                                             "critical,digitalSignature",
                                             "extendedKeyUsage",
                                             "serverAuth",
                                             "authorityKeyIdentifier",
                                             "keyid",
                                             NULL};
    const struct init_options *o = i->options;
    const char *names[2 * INIT_NAMES_MAX + 1] = {NULL};
    unsigned char address[sizeof(struct in6_addr)];
    const int64_t now = time(NULL);
    X509 *issuer = i->ca ? i->ca : i->old.certificate;
    EVP_PKEY *key = i->ca_key ? i->ca_key : i->old.key;
    struct certificate_wish wish = {o->names[0], extensions, names, now - 86400, now + CA_SECONDS};
    enum profd_status status = init_draw(&i->gate_key, i->files[FILE_GATE_KEY].text, e);

    for (size_t k = 0; k < o->name_count; k++) {
        const char *name = o->names[k];
        const bool numeric = inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;

        names[2 * k] = numeric ? "IP" : "DNS";
        names[2 * k + 1] = name;
    }
    if (!status) {
        status = certificate_make(&wish, i->gate_key, issuer, key, &i->gate, e);
    }
    if (!status && (PEM_write_bio_X509(i->files[FILE_GATE].text, i->gate) != 1 ||
                    PEM_write_bio_X509(i->files[FILE_GATE].text, issuer) != 1)) {
        status = profd_error_set(e, PROFD_NO_MEMORY, "no memory for a certificate");
    }
    return status;
}

static enum profd_status init_name_files(struct init *i, struct profd_error *e)
{
    static const char *const names[FILES] = {"gate-ca.crt", "ca.key", "gate.key", "gate.crt"};
    static const char *const owners[FILES] = {NULL, "profd-signer", "profd-gate", NULL};
    const struct init_options *o = i->options;
    const bool made[FILES] = {!o->gate, !o->gate, !o->roll, !o->roll};

    for (size_t k = 0; k < FILES; k++) {
        struct init_file *f = &i->files[k];

        f->name = names[k];
        f->owner = owners[k];
        if (snprintf(f->path, sizeof f->path, "%s/%s", o->directory, f->name) >= (int)sizeof f->path - 5) {
            return profd_error_set(e, PROFD_CONFIG, "the name of the directory is too long");
        }
        snprintf(f->part, sizeof f->part, "%.*s.new", PATH_SIZE - 5, f->path);
        f->text = made[k] ? BIO_new(BIO_s_mem()) : NULL;
        if (made[k] && !f->text) {
            return profd_error_set(e, PROFD_NO_MEMORY, "no memory for a file");
        }
        if (made[k] && !o->roll && !o->gate && !access(f->path, F_OK)) {
            return profd_error_set(e, PROFD_CANT_CREATE, "%s exists already: nothing was changed", f->path);
        }
    }
    return PROFD_OK;
}

static enum profd_status init_make(struct init *i, struct profd_error *e)
{
    const struct init_options *o = i->options;
    enum profd_status status = init_name_files(i, e);

    if (!status && !o->roll && !o->gate && mkdir(o->directory, 0755) && errno != EEXIST) {
        status = init_cannot("make", o->directory, e);
    }
    if (!status && (o->roll || o->gate)) {
        status = authority_open(o->directory, &i->old, e);
    }
    if (!status && !o->gate) {
        status = init_make_ca(i, e);
    }
    if (!status && !o->roll) {
        status = init_make_gate(i, e);
    }
    return status ? status : init_save(i, e);
}

enum profd_status init_run(const struct init_options *o, struct profd_error *e)
{
    struct init i = {.options = o};
    const enum profd_status status = init_make(&i, e);

    for (size_t k = 0; k < FILES; k++) {
        BIO_free(i.files[k].text); /* keys are in memory that dies with the program */
    }
    EVP_PKEY_free(i.ca_key);
    EVP_PKEY_free(i.gate_key);
    X509_free(i.ca);
    X509_free(i.gate);
    authority_close(&i.old);
    ERR_clear_error();
    return status;
}
