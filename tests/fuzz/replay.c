/* Runs a fuzz target over files: the corpus, in make check, with any compiler. Arguments are files or folders. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

#define REPLAY_FILE_MAX (64L << 20)

/* The bytes in a block of exactly their size, so that the address sanitizer sees a read behind them. */
static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    long size = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    rewind(f);
    uint8_t *data = size >= 0 && size <= REPLAY_FILE_MAX ? malloc(size > 0 ? (size_t)size : 1) : NULL;
    int failed = data == NULL || fread(data, 1, (size_t)size, f) != (size_t)size;
    fclose(f);
    if (failed) {
        fprintf(stderr, "%s: cannot be read\n", path);
    } else {
        LLVMFuzzerTestOneInput(data, (size_t)size);
    }
    free(data);
    return failed;
}

static int replay_folder(const char *path, unsigned *files)
{
    DIR *d = opendir(path);
    if (d == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    int failed = 0;
    for (struct dirent *entry = readdir(d); entry != NULL; entry = readdir(d)) {
        char file[4096];
        struct stat st;
        int n = snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (n < 0 || n >= (int)sizeof file || stat(file, &st) != 0 || !S_ISREG(st.st_mode)) {
            continue;
        }
        failed |= replay_file(file);
        ++*files;
    }
    closedir(d);
    return failed;
}

int main(int argc, char **argv)
{
    if (LLVMFuzzerInitialize != NULL) {
        LLVMFuzzerInitialize(&argc, &argv);
    }
    int failed = 0;
    unsigned files = 0;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            failed |= replay_folder(argv[i], &files);
        } else {
            failed |= replay_file(argv[i]);
            files++;
        }
    }
    printf("%s: %u inputs\n", argv[0], files);
    if (files == 0) {
        fprintf(stderr, "%s: no input was given\n", argv[0]);
    }
    return failed || files == 0;
}
