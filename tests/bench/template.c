/* Writes the payload of an UPLOAD frame made of a gmon.out, for the load generator: template EXE GMON OUT.
 * Prints the sizes of the file, the payload and the counts in it, and the numbers of arcs and bins. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "profd.h"
#include "lib/profd_upload.h"
#include "proto/counts.h"
#include "proto/frame.h"
#include "proto/message.h"

static int fail(const struct profd_error *e)
{
    fprintf(stderr, "template: %s\n", e->sentence);
    return 1;
}

int main(int argc, char *argv[])
{
    struct profd_error e = {""};
    struct profd_executable *x;
    struct profd_upload *u;
    struct profd_id id;
    struct message m;
    struct counts c;
    struct stat st;
    uint8_t *frame;
    size_t size;

    if (argc != 4 || stat(argv[2], &st) != 0) {
        fprintf(stderr, "usage: template EXE GMON OUT\n");
        return 64;
    }
    if (profd_executable_open(argv[1], &x, &e) || profd_executable_import(x, argv[2], &u, &e) ||
        profd_id_make(&id, &e)) {
        return fail(&e);
    }
    id.sequence = 1;
    if (upload_encode(u, &id, &frame, &size, &e) ||
        message_decode(FRAME_UPLOAD, frame + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE, &m, &e) ||
        counts_decode(m.as.upload.counts.data, m.as.upload.counts.size, (uint32_t)m.as.upload.build_count, &c, &e)) {
        return fail(&e);
    }
    FILE *out = fopen(argv[3], "wb");
    if (!out || fwrite(frame + FRAME_HEADER_SIZE, 1, size - FRAME_HEADER_SIZE, out) != size - FRAME_HEADER_SIZE ||
        fclose(out) != 0) {
        perror(argv[3]);
        return 73;
    }
    printf("gmon %lld\npayload %zu\ncounts %zu\narcs %u\nbins %u\n", (long long)st.st_size, size - FRAME_HEADER_SIZE,
           m.as.upload.counts.size, c.arc_count, c.bin_count);
    counts_done(&c);
    message_done(&m);
    free(frame);
    profd_upload_free(u);
    profd_executable_free(x);
    return 0;
}
