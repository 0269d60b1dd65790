#include "proto/buildid.h"
#include "proto/hex.h"

#include <string.h>

#define BUILDID_SHA256 "sha256-"
#define BUILDID_SHA256_SIZE 7
#define BUILDID_SHA256_DIGITS 64

enum profd_status buildid_from_note(const uint8_t *bytes, size_t n, struct buildid *id, struct profd_error *e)
{
    FAIL_IF(n < 1 || n > BUILDID_BYTES_MAX, e, PROFD_REFUSED, "build-id of %zu bytes: it must have 1 to %d", n,
            BUILDID_BYTES_MAX);
    memset(id, 0, sizeof *id);
    hex_put(id->text, bytes, n);
    return PROFD_OK;
}

void buildid_from_sha256(const uint8_t hash[32], struct buildid *id)
{
    memset(id, 0, sizeof *id);
    memcpy(id->text, BUILDID_SHA256, BUILDID_SHA256_SIZE);
    hex_put(id->text + BUILDID_SHA256_SIZE, hash, 32);
}

static bool buildid_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Copies n folded characters (n ≤ 128) to out. */
static void buildid_copy_folded(const char *text, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    }
    out[n] = '\0';
}

enum profd_status buildid_parse(const char *text, size_t n, struct buildid *id, struct profd_error *e)
{
    struct buildid folded = {{0}};
    int shown = n > BUILDID_TEXT_SIZE ? BUILDID_TEXT_SIZE : (int)n;
    FAIL_IF(n < 2 || n >= BUILDID_TEXT_SIZE, e, PROFD_REFUSED,
            "build-id '%.*s' has %zu characters: it must have 2 to %d", shown, text, n, BUILDID_TEXT_SIZE - 1);
    buildid_copy_folded(text, n, folded.text);
    size_t from = 0;
    if (strncmp(folded.text, BUILDID_SHA256, BUILDID_SHA256_SIZE) == 0) {
        from = BUILDID_SHA256_SIZE;
        FAIL_IF(n - from != BUILDID_SHA256_DIGITS, e, PROFD_REFUSED,
                "build-id '%.*s' has %zu digits after sha256-: it must have %d", shown, text, n - from,
                BUILDID_SHA256_DIGITS);
    } else if (n % 2 != 0) {
        return profd_error_set(e, PROFD_REFUSED, "build-id '%.*s' has an odd number of digits, %zu", shown, text, n);
    }
    for (size_t i = from; i < n; i++) {
        FAIL_IF(!buildid_digit(folded.text[i]), e, PROFD_REFUSED,
                "build-id '%.*s': character %zu is not a hexadecimal digit", shown, text, i + 1);
    }
    *id = folded;
    return PROFD_OK;
}

bool buildid_prefix_valid(const char *text, size_t n)
{
    if (n < 4 || n >= BUILDID_TEXT_SIZE) {
        return false;
    }
    char folded[BUILDID_TEXT_SIZE];
    buildid_copy_folded(text, n, folded);
    size_t from = 0;
    if (folded[0] == 's') {
        size_t head = n < BUILDID_SHA256_SIZE ? n : BUILDID_SHA256_SIZE;
        if (memcmp(folded, BUILDID_SHA256, head) != 0 || n > BUILDID_SHA256_SIZE + BUILDID_SHA256_DIGITS) {
            return false;
        }
        from = head;
    }
    for (size_t i = from; i < n; i++) {
        if (!buildid_digit(folded[i])) {
            return false;
        }
    }
    return true;
}
