#include "profctl/annotate_source.h"

#include <nettle/md5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profctl/profctl_pipe.h"

#define FILE_MOST ((off_t)64 << 20)
#define DIGEST_TEXT (2 * MD5_DIGEST_SIZE)

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What the line tables say of files with this last name: with MD5, and is one that of the text? */
struct checking {
    const char *base;
    char digest[DIGEST_TEXT + 1]; /* of the text */
    bool stated, same;
};

/* objdump may write the 16 bytes as a number, the last one first. */
static bool same_digest(const char *hex, const char *digest)
{
    bool forward = true, backward = true;
    for (size_t i = 0; i < DIGEST_TEXT; i++) {
        forward = forward && hex[i] == digest[i];
        backward = backward && hex[i] == digest[(DIGEST_TEXT - 2 - i / 2 * 2) + i % 2];
    }
    return forward || backward;
}

/* "  0\t0 0x29db2e79ae406a0bb1a954a22c626f80\t(indirect line string, offset: 0xb): t.c" */
static bool take_entry(void *context, char *line)
{
    struct checking *c = context;
    char *hex = strstr(line, " 0x");
    const char *name = strstr(line, "): ");
    if (hex && name && name > hex && strspn(hex + 3, "0123456789abcdef") == DIGEST_TEXT &&
        strcmp(base_of(name + 3), c->base) == 0) {
        c->stated = true;
        c->same = c->same || same_digest(hex + 3, c->digest);
    }
    return !c->same;
}

static char *read_file(const char *path, size_t *size)
{
    struct stat s;
    FILE *in = stat(path, &s) == 0 && S_ISREG(s.st_mode) && s.st_size <= FILE_MOST ? fopen(path, "re") : NULL;
    char *text = in ? malloc((size_t)s.st_size + 1) : NULL;
    if (text) {
        *size = fread(text, 1, (size_t)s.st_size, in);
        text[*size] = '\0';
    }
    if (in) {
        (void)fclose(in);
    }
    return text;
}

/* The first file there is; path is where it was. */
static char *find_text(const struct source_finder *f, const char *name, char path[4096], size_t *size)
{
    char *text = NULL;
    for (size_t i = 0; !text && i < f->folder_count; i++) {
        const char *end = name;
        do {
            end += *end == '/';
            (void)snprintf(path, 4096, "%s/%s", f->folders[i], end);
            text = read_file(path, size);
            end = strchr(end, '/');
        } while (!text && end);
    }
    if (!text) {
        (void)snprintf(path, 4096, "%s", name);
        text = name[0] == '/' ? read_file(name, size) : NULL;
    }
    return text;
}

/* False: it is not what the compiler read. */
static bool check_text(const struct source_finder *f, const char *name, const char *path, size_t size, struct source *s)
{
    const char *words[] = {"objdump", "--dwarf=rawline", "--", f->executable, NULL};
    struct checking c = {.base = base_of(name)};
    struct stat source, executable;
    struct md5_ctx md5;
    uint8_t digest[MD5_DIGEST_SIZE];
    md5_init(&md5);
    md5_update(&md5, size, (const uint8_t *)s->text);
    md5_digest(&md5, MD5_DIGEST_SIZE, digest);
    for (size_t i = 0; i < MD5_DIGEST_SIZE; i++) {
        (void)snprintf(c.digest + 2 * i, 3, "%02x", digest[i]);
    }
    (void)pipe_read_lines(words, "binutils", take_entry, &c, NULL);
    if (c.stated && !c.same) {
        (void)snprintf(s->note, sizeof s->note,
                       "%.300s differs from the file that was compiled: its MD5 is not that of the line table", path);
        return false;
    }
    if (!c.stated && stat(path, &source) == 0 && stat(f->executable, &executable) == 0 &&
        source.st_mtime > executable.st_mtime) {
        (void)snprintf(s->note, sizeof s->note, "%.300s is newer than the executable and may differ", path);
    }
    return true;
}

static bool split(struct source *s)
{
    size_t n = 1;
    for (const char *p = s->text; *p; p++) {
        n += *p == '\n';
    }
    s->lines = calloc(n, sizeof *s->lines);
    for (char *at = s->text; s->lines && at; s->count++) {
        s->lines[s->count] = at;
        at = strchr(at, '\n');
        if (at) {
            *at++ = '\0';
        }
    }
    return s->lines != NULL;
}

/* The text of a file from elsewhere, if it is what the compiler read. */
static bool take_fetched(const struct source_finder *f, const char *name, struct source *s)
{
    char *path = f->fetch ? f->fetch(f->context, name) : NULL;
    size_t size = 0;
    struct source fetched = {.text = path ? read_file(path, &size) : NULL};
    if (fetched.text && check_text(f, name, path, size, &fetched)) {
        free(s->text);
        *s = (struct source){.text = fetched.text};
        free(path);
        return true;
    }
    free(fetched.text);
    free(path);
    return false;
}

enum profd_status source_find(const struct source_finder *f, const char *name, struct source *out,
                              struct profd_error *e)
{
    char path[4096];
    size_t size = 0;
    *out = (struct source){.text = find_text(f, name, path, &size)};
    bool good = out->text && check_text(f, name, path, size, out) && !out->note[0];
    if (!good && take_fetched(f, name, out)) {
        return split(out) ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the lines of %.200s", name);
    }
    if (!out->text) {
        (void)snprintf(out->note, sizeof out->note,
                       "%.280s is not on this machine%s; --source-path names its directory", name,
                       f->fetch ? ", nor could it be downloaded" : "");
        return PROFD_OK;
    }
    if (!good && !check_text(f, name, path, size, out)) {
        free(out->text);
        out->text = NULL;
        return PROFD_OK;
    }
    return split(out) ? PROFD_OK : profd_error_set(e, PROFD_NO_MEMORY, "no memory for the lines of %.200s", name);
}

void source_done(struct source *s)
{
    free(s->text);
    free(s->lines);
}
