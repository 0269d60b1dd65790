#include "proto/hex.h"
#include "query/etag.h"

#include <nettle/hmac.h>
#include <stdio.h>
#include <string.h>

#define TAG_BYTES 16u

void etag_make(const char *canonical, size_t n, const struct store_epoch *epoch, char out[ETAG_SIZE])
{
    struct hmac_sha256_ctx hmac;
    uint8_t digest[TAG_BYTES];
    hmac_sha256_set_key(&hmac, sizeof epoch->salt, (const uint8_t *)&epoch->salt);
    hmac_sha256_update(&hmac, sizeof epoch->number, (const uint8_t *)&epoch->number);
    hmac_sha256_update(&hmac, n, (const uint8_t *)canonical);
    hmac_sha256_digest(&hmac, sizeof digest, digest);
    out[0] = '"';
    memcpy(hex_put(out + 1, digest, sizeof digest), "\"", sizeof "\"");
}

bool etag_match(const char *if_none_match, const char *etag)
{
    size_t n = strlen(etag);
    const char *at = if_none_match;
    at += strspn(at, " \t");
    if (*at == '*') {
        return at[1 + strspn(at + 1, " \t")] == '\0';
    }
    while (*at != '\0') {
        at += strspn(at, " \t,");
        if (strncmp(at, "W/", 2) == 0) {
            at += 2;
        }
        if (*at != '"') {
            return false;
        }
        const char *end = strchr(at + 1, '"');
        if (end == NULL) {
            return false;
        }
        if ((size_t)(end - at) + 1 == n && memcmp(at, etag, n) == 0) {
            return true;
        }
        at = end + 1;
    }
    return false;
}

void etag_code(const char *etag, enum coding coding, char out[ETAG_SIZE])
{
    size_t n = strlen(etag), more = strlen(coding_name(coding));
    char coded[ETAG_SIZE] = "";
    if (coding == CODING_IDENTITY && n < ETAG_SIZE) {
        memcpy(coded, etag, n + 1);
    } else if (n > 1 && n + 1 + more < ETAG_SIZE) {
        memcpy(coded, etag, n - 1);
        coded[n - 1] = '-';
        memcpy(coded + n, coding_name(coding), more);
        memcpy(coded + n + more, "\"", 2);
    }
    memcpy(out, coded, sizeof coded);
}

bool etag_match_coded(const char *if_none_match, const char *etag, enum coding wanted, char out[ETAG_SIZE])
{
    bool any = if_none_match[strspn(if_none_match, " \t")] == '*';
    const enum coding order[] = {any ? CODING_IDENTITY : wanted, CODING_IDENTITY, CODING_GZIP, CODING_ZSTD};
    char tag[ETAG_SIZE];
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        etag_code(etag, order[i], tag);
        if (tag[0] != '\0' && etag_match(if_none_match, tag)) {
            memcpy(out, tag, sizeof tag);
            return true;
        }
    }
    return false;
}
