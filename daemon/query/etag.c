#include "query/etag.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

void etag_make(const char *canonical, size_t n, uint64_t epoch, char out[ETAG_SIZE])
{
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    uint64_t head = 0;
    sha256_init(&sha);
    sha256_update(&sha, n, (const uint8_t *)canonical);
    sha256_digest(&sha, sizeof digest, digest);
    for (int i = 0; i < 8; i++) {
        head = head << 8 | digest[i];
    }
    snprintf(out, ETAG_SIZE, "\"%016" PRIx64 "-%" PRIu64 "\"", head, epoch);
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
