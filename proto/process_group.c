#include "proto/process_group.h"

#include <string.h>

/* FNV-1a. */
static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

uint32_t process_group_find(const char *host, uint32_t uid, const void *key, size_t n)
{
    uint64_t hash = mix_bytes(UINT64_C(0xcbf29ce484222325), host, strlen(host));
    hash = mix_bytes(hash, &uid, sizeof uid);
    hash = mix_bytes(hash, key, n);
    /* FNV's low bits know little of the last bytes. */
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(hash >> 60);
}
