/* What a simulated host has: a certificate, and segments. */
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/fleet/simulate.h"

#define ARCS_MOST 4096u

static void *must(void *p, const char *what)
{
    if (!p) {
        fprintf(stderr, "simulate: %s failed\n", what);
        exit(1);
    }
    return p;
}

static FILE *open_file(const char *path)
{
    return must(fopen(path, "r"), path);
}

static X509 *certify(size_t i, X509 *issuer, EVP_PKEY *issuer_key, EVP_PKEY *key)
{
    char name[64], alternatives[160];
    X509 *x = must(X509_new(), "X509_new");
    X509_NAME *subject = must(X509_NAME_new(), "X509_NAME_new");
    X509_EXTENSION *extension;

    snprintf(name, sizeof name, "simulated-%zu.example", i);
    snprintf(alternatives, sizeof alternatives, "DNS:%s,URI:urn:uuid:5150f1ee-0000-4000-8000-%012zx", name, i);
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), i + 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_subject_name(x, subject);
    X509_NAME_free(subject);
    X509_set_issuer_name(x, X509_get_subject_name(issuer));
    X509_set_pubkey(x, key);
    extension = must(X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alternatives), "subjectAltName");
    X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
    if (!X509_sign(x, issuer_key, EVP_sha256())) {
        must(NULL, "X509_sign");
    }
    return x;
}

static void sign_all(const char *ca, const char *ca_key, struct simulate_host *hosts, size_t count)
{
    FILE *f = open_file(ca), *g = open_file(ca_key);
    X509 *issuer = must(PEM_read_X509(f, NULL, NULL, NULL), ca);
    EVP_PKEY *issuer_key = must(PEM_read_PrivateKey(g, NULL, NULL, NULL), ca_key);
    EVP_PKEY *key = must(EVP_EC_gen("P-256"), "EVP_EC_gen");

    fclose(f);
    fclose(g);
    for (size_t i = 0; i < count; i++) {
        hosts[i].certificate = certify(i, issuer, issuer_key, key);
        hosts[i].key = key;
    }
    X509_free(issuer);
    EVP_PKEY_free(issuer_key);
}

static void read_all(const char *directory, struct simulate_host *hosts, size_t count)
{
    char path[4096];
    FILE *f;

    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/host-%zu/relay.crt", directory, i);
        f = open_file(path);
        hosts[i].certificate = must(PEM_read_X509(f, NULL, NULL, NULL), path);
        fclose(f);
        snprintf(path, sizeof path, "%s/host-%zu/relay.key", directory, i);
        f = open_file(path);
        hosts[i].key = must(PEM_read_PrivateKey(f, NULL, NULL, NULL), path);
        fclose(f);
    }
}

void simulate_certify(const char *ca, const char *from, struct simulate_host *hosts, size_t count)
{
    struct stat st;

    if (!stat(from, &st) && S_ISDIR(st.st_mode)) {
        read_all(from, hosts, count);
    } else {
        sign_all(ca, from, hosts, count);
    }
}

void simulate_epoch(size_t host, uint8_t out[SEGMENT_EPOCH_SIZE])
{
    static uint32_t start;

    start = start ? start : (uint32_t)time(NULL);
    memset(out, 0, SEGMENT_EPOCH_SIZE);
    for (unsigned i = 0; i < 4; i++) {
        out[i] = (uint8_t)(start >> (24 - 8 * i));
        out[4 + i] = (uint8_t)(host >> (8 * i));
    }
}

/* Rows of which only the numbers change, once. */
static struct counts *shape(unsigned arcs)
{
    static struct counts c;

    if (c.block) {
        return &c;
    }
    if (counts_init_sizes(&c, &(struct counts_sizes){.histograms = 1, .bins = arcs / 2, .arcs = arcs, .sorted = true},
                          NULL)) {
        must(NULL, "no memory");
    }
    c.histograms[0] = (struct counts_histogram){
        .geometry = {0, 4 * ARCS_MOST, 0x1000, 0x1000 + 16 * ARCS_MOST, 100, "seconds", 's'}, .used = arcs / 2};
    for (unsigned i = 0; i < arcs; i++) {
        c.rank[i] = i;
        c.from[i] = 0x1010 + 48 * i;
        c.to[i] = 0x1000 + 16 * (i * 7 % arcs);
        if (i < c.bin_count) {
            c.bin_index[i] = i;
        }
    }
    return &c;
}

/* All of the numbers is of one group. */
static void fill(uint64_t *numbers, uint32_t n, uint64_t first, size_t group, uint64_t *shares)
{
    memset(shares, 0, n * COUNTS_GROUPS * sizeof *shares);
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = shares[i * COUNTS_GROUPS + group] = 1 + (first + i) % 100;
    }
}

void simulate_segment(size_t host, uint64_t sequence, unsigned programs, unsigned arcs, uint8_t **out, size_t *size)
{
    static uint64_t bin_shares[ARCS_MOST * COUNTS_GROUPS], arc_shares[ARCS_MOST * COUNTS_GROUPS];
    char id[41];
    const struct message_build build = {id, "/usr/bin/simulated"};
    const struct counts_shares spread = {bin_shares, arc_shares, NULL};
    const size_t group = host % SEGMENT_GROUPS;
    struct counts *c = shape(arcs < ARCS_MOST ? arcs : ARCS_MOST);
    struct timespec now;
    struct segment s = {.kind = SEGMENT_COUNTS, .sequence = sequence, .uid = 1000, .build_count = 1, .builds = &build};
    struct profd_error e = {""};
    uint8_t *shares = NULL;

    clock_gettime(CLOCK_REALTIME, &now);
    simulate_epoch(host, s.epoch);
    snprintf(id, sizeof id, "%08x%032x", (unsigned)(sequence % programs), 0x51u);
    s.last = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    s.first = s.last - 1000000000;
    s.ended = s.last;
    s.uploads = 1;
    s.processes[group] = sequence % programs == 0;
    fill(c->bin_ticks, c->bin_count, host + sequence, group, bin_shares);
    fill(c->calls, c->arc_count, host + sequence + c->bin_count, group, arc_shares);
    s.counts = *c;
    if (counts_encode_shares(c, &spread, &shares, &s.shares.size, &e)) {
        must(NULL, e.sentence);
    }
    s.shares.data = shares;
    if (segment_encode(&s, out, size, &e)) {
        must(NULL, e.sentence);
    }
    free(shares);
}
