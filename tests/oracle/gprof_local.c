/* What `gprof -b` prints, by our own code: gprof_local [-z] [-P] [-Q] [-w WIDTH] EXE GMON… to standard output.
 * Driven by test_gprof_real.py and test_gprof_random.py, which compare with the installed gprof. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compat/compat.h"
#include "elf/elf_read.h"
#include "proto/gmon.h"

static enum profd_status file_read(const char *path, uint8_t **out, size_t *size, struct profd_error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return profd_error_set(e, PROFD_NO_INPUT, "cannot open %s", path);
    uint8_t *bytes = malloc((size_t)st.st_size + 1);
    size_t n = 0;
    ssize_t got = 1;
    while (bytes != NULL && n < (size_t)st.st_size && (got = read(fd, bytes + n, (size_t)st.st_size - n)) > 0)
        n += (size_t)got;
    close(fd);
    if (bytes == NULL || got < 0)
        return profd_error_set(e, PROFD_IO, "cannot read %s", path);
    *out = bytes;
    *size = n;
    return PROFD_OK;
}

/* sum becomes sum followed by next's records. */
static enum profd_status counts_append(struct counts *sum, const struct counts *next, struct profd_error *e)
{
    struct counts both;
    uint32_t h = sum->histogram_count, b = sum->bin_count, a = sum->arc_count;
    enum profd_status status = counts_init(&both, h + next->histogram_count, b + next->bin_count, a + next->arc_count, e);
    if (status != PROFD_OK)
        return status;
    const struct counts *parts[] = {sum, next};
    for (unsigned p = 0; p < 2; p++) {
        const struct counts *c = parts[p];
        uint32_t h0 = p * h, b0 = p * b, a0 = p * a;
        for (uint32_t i = 0; i < c->histogram_count; i++) {
            both.histograms[h0 + i] = c->histograms[i];
            both.histograms[h0 + i].first += b0;
        }
        for (uint32_t i = 0; i < c->bin_count; i++) {
            both.bin_index[b0 + i] = c->bin_index[i];
            both.bin_ticks[b0 + i] = c->bin_ticks[i];
        }
        for (uint32_t i = 0; i < c->arc_count; i++) {
            both.from[a0 + i] = c->from[i];
            both.to[a0 + i] = c->to[i];
            both.calls[a0 + i] = c->calls[i];
        }
    }
    counts_done(sum);
    *sum = both;
    return PROFD_OK;
}

static enum profd_status gmon_add(const char *path, const struct gmon_format *format, struct counts *sum,
                                  struct profd_error *e)
{
    uint8_t *bytes = NULL;
    size_t n = 0;
    struct counts c = {0};
    enum profd_status status = file_read(path, &bytes, &n, e);
    if (status == PROFD_OK)
        status = gmon_parse(bytes, n, format, &c, e);
    if (status == PROFD_OK)
        status = counts_append(sum, &c, e);
    counts_done(&c);
    free(bytes);
    return status;
}

static enum profd_status print(const struct compat_options *options, char **files, int n, struct arena *a,
                               struct profd_error *e)
{
    int fd = open(files[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return profd_error_set(e, PROFD_NO_INPUT, "cannot open %s", files[0]);
    struct elf_read_options how = {.demangle = true, .lines = true};
    struct object *object = NULL;
    enum profd_status status = elf_read(fd, -1, &how, a, &object, e);
    close(fd);
    if (status != PROFD_OK)
        return status;
    struct gmon_format format = {object->big_endian, object->bits / 8};
    struct counts sum;
    status = counts_init(&sum, 0, 0, 0, e);
    if (status != PROFD_OK)
        return status;
    for (int i = 1; i < n && status == PROFD_OK; i++)
        status = gmon_add(files[i], &format, &sum, e);
    struct buffer out;
    buffer_init(&out, 1u << 30);
    if (status == PROFD_OK)
        status = compat_print(options, object, &sum, a, &out, e);
    counts_done(&sum);
    if (status == PROFD_OK && out.size > 0 && fwrite(out.data, 1, out.size, stdout) != out.size)
        status = profd_error_set(e, PROFD_IO, "cannot write to standard output");
    buffer_done(&out);
    return status;
}

int main(int argc, char **argv)
{
    struct compat_options options = {.brief = true};
    int c;
    while ((c = getopt(argc, argv, "zPQw:")) != -1) {
        if (c == 'z')
            options.all_symbols = true;
        else if (c == 'P')
            options.no_flat = true;
        else if (c == 'Q')
            options.no_graph = true;
        else if (c == 'w')
            options.width = (unsigned)strtoul(optarg, NULL, 10);
        else
            return profd_status_exit(PROFD_USAGE);
    }
    if (argc - optind < 2) {
        fprintf(stderr, "usage: gprof_local [-z] [-P] [-Q] [-w WIDTH] EXE GMON...\n");
        return profd_status_exit(PROFD_USAGE);
    }
    struct profd_error e = {{0}};
    struct arena *a = arena_new(0);
    enum profd_status status = a == NULL ? PROFD_NO_MEMORY : print(&options, argv + optind, argc - optind, a, &e);
    arena_free(a);
    if (status != PROFD_OK)
        fprintf(stderr, "%s: %s\n", profd_status_name(status), e.sentence);
    return profd_status_exit(status);
}
