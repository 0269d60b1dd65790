#include "pages/web_coded.h"

#include <nettle/sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/buffer.h"
#include "query/query.h"

struct web_one {
    struct buffer coded[CODING_COUNT]; /* empty: no smaller than the file */
    char etags[CODING_COUNT][80];
};

struct web_coded {
    size_t count;
    struct web_one *files; /* in the order of the list */
};

static bool web_code(const struct web_file *file, struct web_one *one)
{
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    uint64_t head = 0;

    sha256_init(&sha);
    sha256_update(&sha, *file->size, file->bytes);
    sha256_digest(&sha, sizeof digest, digest);
    for (int i = 0; i < 8; i++) {
        head = head << 8 | digest[i];
    }
    snprintf(one->etags[CODING_IDENTITY], 80, "\"%016llx\"", (unsigned long long)head);
    for (int c = CODING_GZIP; c < CODING_COUNT; c++) {
        struct buffer *b = &one->coded[c];

        query_code_etag(one->etags[CODING_IDENTITY], (enum coding)c, one->etags[c]);
        buffer_init(b, *file->size + 1);
        buffer_add(b, file->bytes, *file->size);
        if (b->failed) {
            return false;
        }
        if (!query_code_file((enum coding)c, b)) {
            buffer_done(b);
        }
    }
    return true;
}

struct web_coded *web_coded_new(void)
{
    struct web_coded *web = calloc(1, sizeof *web);
    const struct web_file *files = web_list(web ? &web->count : &(size_t){0});

    if (!web) {
        return NULL;
    }
    web->files = calloc(web->count, sizeof *web->files);
    for (size_t i = 0; web->files && i < web->count; i++) {
        if (!web_code(&files[i], &web->files[i])) {
            web_coded_free(web);
            return NULL;
        }
    }
    if (!web->files) {
        free(web);
        return NULL;
    }
    return web;
}

void web_coded_free(struct web_coded *web)
{
    if (!web) {
        return;
    }
    for (size_t i = 0; i < web->count; i++) {
        for (int c = 0; c < CODING_COUNT; c++) {
            buffer_done(&web->files[i].coded[c]);
        }
    }
    free(web->files);
    free(web);
}

bool web_coded_find(const struct web_coded *web, const char *path, size_t n, enum coding wanted, struct web_form *out)
{
    const struct web_file *file = web_find(path, n);
    size_t count;

    if (!file) {
        return false;
    }
    const struct web_one *one = &web->files[file - web_list(&count)];
    const struct buffer *coded = &one->coded[wanted];

    out->content_type = file->content_type;
    out->tag = one->etags[CODING_IDENTITY];
    out->coding = coded->size ? wanted : CODING_IDENTITY;
    out->etag = one->etags[out->coding];
    out->bytes = coded->size ? (const void *)coded->data : file->bytes;
    out->size = coded->size ? coded->size : *file->size;
    return true;
}
