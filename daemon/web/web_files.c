#include "web/web_files.h"

#include <nettle/sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "query/answer.h"

#define HTML "text/html; charset=utf-8"
#define CSS "text/css; charset=utf-8"
#define SVG "image/svg+xml"
#define SCRIPT "text/javascript; charset=utf-8"

struct web_file {
    const char *path, *content_type;
    const unsigned char *bytes;
    const size_t *size;
};

/* path, name of the embedded file, type; app.js is the bundle of all modules */
#define FILES(X)                                                                                                       \
    X("/", index_html, HTML)                                                                                           \
    X("/style.css", style_css, CSS)                                                                                    \
    X("/icon.svg", icon_svg, SVG)                                                                                      \
    X("/app.js", app_js, SCRIPT)                                                                                       \
    X("/dagre.js", dagre_js, SCRIPT)                                                                                   \
    X("/theme.js", theme_js, SCRIPT)

#define DECLARE(path, name, type)                                                                                      \
    extern const unsigned char embed_daemon_web_##name[];                                                              \
    extern const size_t embed_daemon_web_##name##_size;
FILES(DECLARE)
#undef DECLARE

#define ROW(path, name, type) {path, type, embed_daemon_web_##name, &embed_daemon_web_##name##_size},
static const struct web_file web_files[] = {FILES(ROW)};
#undef ROW

#define WEB_COUNT (sizeof web_files / sizeof *web_files)

static const struct web_file *web_find(const char *path, size_t n)
{
    for (size_t i = 0; i < WEB_COUNT; i++) {
        if (strlen(web_files[i].path) == n && memcmp(web_files[i].path, path, n) == 0) {
            return &web_files[i];
        }
    }
    return NULL;
}

bool web_has(const char *path, size_t n)
{
    return web_find(path, n) != NULL;
}

struct web_one {
    struct buffer coded[CODING_COUNT]; /* empty: no smaller than the file */
    char etags[CODING_COUNT][80];
};

struct web_coded {
    struct web_one files[WEB_COUNT]; /* in the order of web_files */
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
        if (!query_pack((enum coding)c, true, false, b)) {
            buffer_done(b);
        }
    }
    return true;
}

struct web_coded *web_coded_new(void)
{
    struct web_coded *web = calloc(1, sizeof *web);

    for (size_t i = 0; web && i < WEB_COUNT; i++) {
        if (!web_code(&web_files[i], &web->files[i])) {
            web_coded_free(web);
            return NULL;
        }
    }
    return web;
}

void web_coded_free(struct web_coded *web)
{
    for (size_t i = 0; web && i < WEB_COUNT; i++) {
        for (int c = 0; c < CODING_COUNT; c++) {
            buffer_done(&web->files[i].coded[c]);
        }
    }
    free(web);
}

bool web_coded_find(const struct web_coded *web, const char *path, size_t n, enum coding wanted, struct web_form *out)
{
    const struct web_file *file = web_find(path, n);

    if (!file) {
        return false;
    }
    const struct web_one *one = &web->files[file - web_files];
    const struct buffer *coded = &one->coded[wanted];

    out->content_type = file->content_type;
    out->tag = one->etags[CODING_IDENTITY];
    out->coding = coded->size ? wanted : CODING_IDENTITY;
    out->etag = one->etags[out->coding];
    out->bytes = coded->size ? (const void *)coded->data : file->bytes;
    out->size = coded->size ? coded->size : *file->size;
    return true;
}
