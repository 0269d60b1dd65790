#include "gate/revoked.h"
#include "proto/hex.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KEY_DIGITS 64
#define SERIAL_DIGITS 40

/* "key " or "serial ", and digits: lower case, a serial number without zeros in front. */
struct revoked_entry {
    char text[8 + KEY_DIGITS];
};

struct revoked {
    size_t count;
    struct revoked_entry entries[];
};

static int revoked_compare(const void *a, const void *b)
{
    return strcmp(((const struct revoked_entry *)a)->text, ((const struct revoked_entry *)b)->text);
}

/* The canonical form; false if word and digits are none. */
static bool revoked_make(const char *word, const char *digits, size_t n, struct revoked_entry *out)
{
    const bool key = !strcmp(word, "key ");
    size_t at = strlen(word);

    while (!key && n > 1 && *digits == '0') {
        digits++;
        n--;
    }
    if (key ? n != KEY_DIGITS : !n || n > SERIAL_DIGITS) {
        return false;
    }
    memset(out, 0, sizeof *out);
    memcpy(out->text, word, at);
    for (size_t i = 0; i < n; i++) {
        const char c = (char)(digits[i] >= 'A' && digits[i] <= 'F' ? digits[i] + ('a' - 'A') : digits[i]);

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
        out->text[at++] = c;
    }
    return true;
}

static bool revoked_parse_line(const char *line, size_t n, struct revoked_entry *out)
{
    static const char *const words[] = {"key ", "serial "};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t word = strlen(words[i]);

        if (n > word && !memcmp(line, words[i], word)) {
            return revoked_make(words[i], line + word, n - word, out);
        }
    }
    return false;
}

enum profd_status revoked_parse(const char *name, const char *text, size_t n, struct revoked **out,
                                struct profd_error *e)
{
    struct revoked *r;
    unsigned number = 0;
    size_t lines = 1;

    for (size_t i = 0; i < n; i++) {
        lines += text[i] == '\n';
    }
    r = calloc(1, sizeof *r + lines * sizeof *r->entries);
    if (!r) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for %s", name);
    }
    while (n) {
        const char *end = memchr(text, '\n', n);
        size_t size = end ? (size_t)(end - text) : n;
        const size_t whole = end ? size + 1 : size;

        number++;
        while (size && (text[size - 1] == ' ' || text[size - 1] == '\r' || text[size - 1] == '\t')) {
            size--;
        }
        if (size && *text != '#' && !revoked_parse_line(text, size, &r->entries[r->count++])) {
            free(r);
            return profd_error_set(e, PROFD_CONFIG,
                                   "%s:%u: not \"key\" and 64, or \"serial\" and 1 to 40, hexadecimal "
                                   "digits",
                                   name, number);
        }
        text += whole;
        n -= whole;
    }
    qsort(r->entries, r->count, sizeof *r->entries, revoked_compare);
    *out = r;
    return PROFD_OK;
}

void revoked_free(struct revoked *r)
{
    free(r);
}

static bool revoked_find(const struct revoked *r, const char *word, const char *digits)
{
    struct revoked_entry wanted;

    return !revoked_make(word, digits, strlen(digits), &wanted) ||
           bsearch(&wanted, r->entries, r->count, sizeof *r->entries, revoked_compare);
}

static bool revoked_has_serial(const struct revoked *r, X509 *certificate)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    char *digits = number ? BN_bn2hex(number) : NULL;
    const bool found = !digits || revoked_find(r, "serial ", digits);

    OPENSSL_free(digits);
    BN_free(number);
    return found;
}

static bool revoked_has_key(const struct revoked *r, X509 *certificate)
{
    unsigned char *der = NULL, digest[EVP_MAX_MD_SIZE];
    const int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
    char digits[KEY_DIGITS + 1];
    bool found = true;

    if (n > 0 && EVP_Digest(der, (size_t)n, digest, NULL, EVP_sha256(), NULL) == 1) {
        hex_put(digits, digest, KEY_DIGITS / 2);
        found = revoked_find(r, "key ", digits);
    }
    OPENSSL_free(der);
    return found;
}

bool revoked_has(const struct revoked *r, X509 *certificate)
{
    return r && r->count && (revoked_has_serial(r, certificate) || revoked_has_key(r, certificate));
}
