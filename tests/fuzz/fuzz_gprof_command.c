/* Law: `profctl gprof` with any options, executable and profile ends with an exit status of its own, and leaves nothing
 * behind. Input: a byte n and n bytes of options, one a line; three bytes (little-endian) m and m bytes of executable;
 * the profile. What would name other files is left out of the options. It runs in a folder of its own, where -s writes.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gprof/gprof_main.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity) __attribute__((weak));

#define WORDS_MAX 24

static char folder[64];
static FILE *sink;

/* The three parts of an input; what is missing is empty. */
struct parts {
    const uint8_t *part[3];
    size_t size[3];
};

static void parts_find(const uint8_t *data, size_t size, struct parts *p)
{
    static const uint8_t none[1];
    size_t at = 0;
    *p = (struct parts){{none, none, none}, {0, 0, 0}};
    for (unsigned i = 0; i < 3; i++) {
        size_t head = i == 0 ? 1 : i == 1 ? 3 : 0, n = 0;
        if (size - at < head || size == at) {
            return;
        }
        for (size_t k = 0; k < head; k++) {
            n |= (size_t)data[at + k] << 8 * k;
        }
        at += head;
        n = i == 2 || n > size - at ? size - at : n;
        p->part[i] = data + at;
        p->size[i] = n;
        at += n;
    }
}

static void folder_remove(void)
{
    char path[96];
    snprintf(path, sizeof path, "%s/gmon.sum", folder);
    unlink(path);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *temporary = getenv("TMPDIR");
    (void)argc;
    (void)argv;
    snprintf(folder, sizeof folder, "%.40s/gprof-XXXXXX", temporary != NULL ? temporary : "/tmp");
    sink = fopen("/dev/null", "w");
    if (mkdtemp(folder) == NULL || sink == NULL || atexit(folder_remove) != 0) {
        abort();
    }
    return 0;
}

/* Bytes as a file whose path is put into path. */
static int file_of(const uint8_t *data, size_t size, char *path, size_t capacity)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
        abort();
    }
    snprintf(path, capacity, "/proc/self/fd/%d", fd);
    return fd;
}

/* Splits the options; text is theirs. */
static int options_split(char *text, char **words)
{
    int n = 0;
    for (char *next, *word = text; word != NULL && n < WORDS_MAX; word = next) {
        next = strchr(word, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (word[0] == '\0' || word[0] == '@' || strcmp(word, "-") == 0 ||
            (word[0] != '-' && strchr(word, '/') != NULL)) {
            continue;
        }
        words[n++] = word;
    }
    return n;
}

/* Runs the command as main would. */
static int command_run(int argc, char **argv)
{
    FILE *out = stdout, *err = stderr;
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), saved = dup(STDOUT_FILENO);
    if (here < 0 || saved < 0 || chdir(folder) != 0 || dup2(fileno(sink), STDOUT_FILENO) < 0) {
        abort();
    }
    stdout = stderr = sink;
    int status = gprof_main("profctl gprof", argc, argv, NULL);
    stdout = out;
    stderr = err;
    if (fchdir(here) != 0 || dup2(saved, STDOUT_FILENO) < 0) {
        abort();
    }
    close(here);
    close(saved);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct parts p;
    parts_find(data, size, &p);
    char text[256] = "", executable[48], profile[48], name[] = "gprof";
    memcpy(text, p.part[0], p.size[0]);
    char *argv[WORDS_MAX + 5] = {name};
    int argc = 1 + options_split(text, argv + 1);
    int files[2] = {file_of(p.part[1], p.size[1], executable, sizeof executable),
                    file_of(p.part[2], p.size[2], profile, sizeof profile)};
    argv[argc++] = executable;
    argv[argc++] = profile;
    argv[argc++] = profile; /* twice: sums */
    int status = command_run(argc, argv);
    if (status < 0 || status > 78 || (status > 1 && status < 64)) {
        abort();
    }
    close(files[0]);
    close(files[1]);
    return 0;
}

/* Adds an option that there is. */
static size_t options_grow(uint8_t *text, size_t size, size_t capacity, unsigned seed)
{
    static const char *const options[] = {"-b",
                                          "-z",
                                          "-p",
                                          "-q",
                                          "-C",
                                          "-s",
                                          "-l",
                                          "-i",
                                          "-T",
                                          "-a",
                                          "-D",
                                          "-c",
                                          "-L",
                                          "-B",
                                          "-P",
                                          "-Q",
                                          "-Z",
                                          "-w1",
                                          "-w200",
                                          "-pmain",
                                          "-Pf",
                                          "-qmain",
                                          "-Qf",
                                          "-Cf",
                                          "-qf/g",
                                          "-kf/",
                                          "-k/main",
                                          "-emain",
                                          "-Ef",
                                          "-fmain",
                                          "-Ff",
                                          "-nf",
                                          "-Nmain",
                                          "-p7",
                                          "-pa.c",
                                          "-qa.c:f",
                                          "-pa.c:3",
                                          "--inline-file-names",
                                          "--no-demangle",
                                          "--demangle",
                                          "--demangle=gnu-v3",
                                          "--demangle=rust",
                                          "--demangle=none",
                                          "-d",
                                          "--"};
    const char *option = options[seed % (sizeof options / sizeof *options)];
    size_t n = strlen(option);
    if (n + 1 > capacity - size) {
        return size;
    }
    memcpy(text + size, option, n);
    text[size + n] = '\n';
    return size + n + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
    struct parts p;
    parts_find(data, size, &p);
    unsigned chosen = seed % 8 == 0 ? 0 : seed % 8 < 5 ? 1 : 2;
    uint8_t *copy = malloc(capacity + 256);
    if (copy == NULL || LLVMFuzzerMutate == NULL || capacity < 300) {
        free(copy);
        return size;
    }
    size_t at = 0;
    for (unsigned i = 0; i < 3; i++) {
        size_t head = i == 0 ? 1 : i == 1 ? 3 : 0, most = capacity - at - head - (i == 0 ? 3 : 0), n = p.size[i];
        most = i == 0 && most > 255 ? 255 : most;
        n = n < most ? n : most;
        memcpy(copy + at + head, p.part[i], n);
        if (i == chosen && i == 0 && seed / 8 % 2 == 0) {
            n = options_grow(copy + at + head, seed / 16 % 4 == 0 ? 0 : n, most, seed / 64);
        } else if (i == chosen && most > 0) {
            n = LLVMFuzzerMutate(copy + at + head, n, most);
        }
        for (size_t k = 0; k < head; k++) {
            copy[at + k] = (uint8_t)(n >> 8 * k);
        }
        at += head + n;
    }
    memcpy(data, copy, at);
    free(copy);
    return at;
}
