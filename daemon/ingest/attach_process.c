#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ingest/attach_internal.h"

/* The memory of a process, copied in bounded memory. */

#define AHEAD_MAX (256u << 10)
#define NEEDED_PAGES 5u /* of a chunk that is not a table: the rest is not read */

/* n bytes at an offset. REFUSED: not to be read, or the file ends before; IO. */
static enum profd_status attach_read_file(int memfd, uint8_t *out, uint64_t n, uint64_t at, struct profd_error *e)
{
    uint64_t done = 0;
    while (done < n) {
        ssize_t got = pread(memfd, out + done, (size_t)(n - done), (off_t)(at + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        FAIL_IF(got < 0, e, errno == EBADF ? PROFD_REFUSED : PROFD_IO, "shared counts cannot be read at %llu: %s",
                (unsigned long long)(at + done), strerror(errno));
        FAIL_IF(got == 0, e, PROFD_REFUSED, "shared counts end at %llu, before byte %llu",
                (unsigned long long)(at + done), (unsigned long long)(at + n));
        done += (uint64_t)got;
    }
    return PROFD_OK;
}

_Static_assert(ATTACH_LABEL_BYTES + sizeof(struct attach_chunk) <= NEEDED_PAGES * ATTACH_PAGE, "labels");
_Static_assert(ATTACH_NAME_MAX + sizeof(struct attach_chunk) <= NEEDED_PAGES * ATTACH_PAGE, "a name");
_Static_assert(64 + ATTACH_MODULES_PER_CHUNK * sizeof(struct attach_module_row) <= NEEDED_PAGES * ATTACH_PAGE,
               "modules");

/* Reads everything but the slots of tables. Pages that are not published are dropped. The image ends with the last
 * chunk, at *end, so that a file that uses much and has published nothing there is walked over once, in large steps,
 * and its copy not at all. */
static enum profd_status outline_copy(struct attach_reading *r, uint64_t used, uint64_t *end, struct profd_error *e)
{
    /* Pages of the file, read ahead: one where chunks follow each other, many where nothing is published. */
    struct {
        uint64_t at, end; /* of the file, what the buffer has */
        uint64_t step;    /* bytes of the next read */
        uint8_t *bytes;
    } w = {.step = ATTACH_PAGE, .bytes = malloc(AHEAD_MAX)};
    enum profd_status status = PROFD_OK;
    uint64_t kept = 0, next = ATTACH_PAGE;
    FAIL_IF(!w.bytes, e, PROFD_NO_MEMORY, "no memory to read shared counts");
    *end = ATTACH_PAGE;
    for (uint64_t at = next; at < used && status == PROFD_OK; at = next) {
        uint32_t magic = 0;
        next = at + ATTACH_PAGE;
        if (at < w.at || at >= w.end) {
            const uint64_t n = w.step < used - at ? w.step : used - at;
            status = attach_read_file(r->memfd, w.bytes, n, at, e);
            w.at = at;
            w.end = at + n;
            w.step = w.step < AHEAD_MAX ? w.step * 2 : AHEAD_MAX;
        }
        const uint8_t *page = w.bytes + (at - w.at);
        if (status == PROFD_OK) {
            memcpy(&magic, page, sizeof magic);
        }
        if (magic != ATTACH_CHUNK_MAGIC && magic != ATTACH_STACKS_MAGIC) {
            continue;
        }
        struct attach_chunk c;
        memcpy(r->bytes + at, page, ATTACH_PAGE);
        memcpy(&c, page, sizeof c);
        w.step = ATTACH_PAGE;
        kept += ATTACH_PAGE;
        const bool whole = c.size >= ATTACH_PAGE && c.size % ATTACH_PAGE == 0 && c.size <= used - at;
        if (whole) { /* else attach_parse reports the error */
            next = at + c.size;
        }
        if (whole && (c.kind < ATTACH_KIND_ARCS || c.kind > ATTACH_KIND_STACKS)) {
            const uint64_t rest =
                (c.size < NEEDED_PAGES * ATTACH_PAGE ? c.size : NEEDED_PAGES * ATTACH_PAGE) - ATTACH_PAGE;
            kept += rest;
            status = attach_read_file(r->memfd, r->bytes + at + ATTACH_PAGE, rest, at + ATTACH_PAGE, e);
        }
        *end = next;
        if (status == PROFD_OK && kept > LIMIT_ATTACH_RESIDENT) {
            status = profd_error_set(
                e, PROFD_TOO_LARGE,
                "shared counts: the first pages, names and modules of the chunks take more than %u bytes",
                LIMIT_ATTACH_RESIDENT);
        }
    }
    free(w.bytes);
    return status;
}

enum profd_status attach_reading_open(int memfd, uint64_t file_size, struct attach_reading *r, struct profd_error *e)
{
    _Alignas(ATTACH_PAGE) uint8_t page[ATTACH_PAGE];
    struct attach_reading reading = {.memfd = memfd};
    uint64_t used, end;
    TRY(attach_read_file(memfd, page, ATTACH_PAGE, 0, e));
    TRY(attach_measure(page, ATTACH_PAGE, file_size, &used, e));
    reading.whole = used <= LIMIT_ATTACH_WHOLE;
    void *bytes = mmap(NULL, (size_t)used, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | (reading.whole ? MAP_POPULATE : MAP_NORESERVE), -1, 0);
    FAIL_IF(bytes == MAP_FAILED, e, PROFD_NO_MEMORY, "no memory to read %llu bytes of shared counts",
            (unsigned long long)used);
    reading.bytes = bytes;
    reading.size = end = used;
    memcpy(reading.bytes, page, ATTACH_PAGE);
    enum profd_status status =
        reading.whole ? attach_read_file(memfd, reading.bytes + ATTACH_PAGE, used - ATTACH_PAGE, ATTACH_PAGE, e)
                      : outline_copy(&reading, used, &end, e);
    if (status == PROFD_OK) {
        status = attach_parse(reading.bytes, (size_t)end, &reading.image, e);
    }
    if (status == PROFD_OK) {
        *r = reading;
    } else {
        attach_reading_close(&reading);
    }
    return status;
}

enum profd_status attach_reading_load(struct attach_reading *r, uint64_t at, uint64_t size, struct profd_error *e)
{
    if (r->whole) {
        return PROFD_OK;
    }
    FAIL_IF(size > LIMIT_ATTACH_RESIDENT, e, PROFD_TOO_LARGE,
            "shared counts have a table of %llu bytes at %llu; at most %u are read", (unsigned long long)size,
            (unsigned long long)at, LIMIT_ATTACH_RESIDENT);
    return attach_read_file(r->memfd, r->bytes + at + ATTACH_PAGE, size - ATTACH_PAGE, at + ATTACH_PAGE, e);
}

enum profd_status attach_reading_refresh(struct attach_reading *r, uint64_t at, uint64_t size, struct profd_error *e)
{
    const uint64_t head = sizeof(struct attach_chunk);
    TRY(attach_reading_load(r, at, size, e));
    return attach_read_file(r->memfd, r->bytes + at + head, size - head, at + head, e);
}

/* The first page stays: the way to the next table leads over it. */
void attach_reading_drop(struct attach_reading *r, uint64_t at, uint64_t size)
{
    if (!r->whole && size > ATTACH_PAGE) {
        madvise(r->bytes + at + ATTACH_PAGE, (size_t)(size - ATTACH_PAGE), MADV_DONTNEED);
    }
}

void attach_reading_close(struct attach_reading *r)
{
    if (r->bytes) {
        munmap(r->bytes, r->size);
    }
    *r = (struct attach_reading){.memfd = -1};
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define BLOCK 512u           /* of st_blocks */
#define HUGE_PAGE (2u << 20) /* tmpfs may take one where a small page would do */

#define ARENA_MAX ((size_t)64 << 20) /* builds, names and labels of one process */

struct attach_inside *attach_inside_new(void)
{
    struct attach_inside *in = calloc(1, sizeof *in);
    if (in) {
        in->arena = arena_new(ARENA_MAX);
    }
    if (in && !in->arena) {
        free(in);
        in = NULL;
    }
    return in;
}

void attach_inside_free(struct attach_inside *in)
{
    if (!in) {
        return;
    }
    arena_free(in->arena);
    free(in->counts);
    free(in->snapshot);
    free(in);
}

/* Judges a descriptor by the rules of attach_open. page takes the first page, aligned. */
static enum profd_status judge_file(int memfd, uint8_t page[ATTACH_PAGE], uint64_t *file_size, struct profd_error *e)
{
    struct statfs fs;
    struct stat st;
    uint64_t used;
    /* Only memory files have seals: no pipe, device, directory or file of another's file system comes further. */
    int seals = fcntl(memfd, F_GET_SEALS);
    FAIL_IF(seals < 0, e, PROFD_REFUSED, "the descriptor is not a sealable memory file: %s", strerror(errno));
    if ((seals & SEALS) != SEALS) {
        const char *name = !(seals & F_SEAL_SHRINK) ? "SHRINK"
                           : !(seals & F_SEAL_GROW) ? "GROW"
                           : !(seals & F_SEAL_SEAL) ? "SEAL"
                                                    : "FUTURE_WRITE";
        return profd_error_set(e, PROFD_REFUSED, "the memory file lacks the seal %s (it has 0x%x, wanted are 0x%x)",
                               name, (unsigned)seals, (unsigned)SEALS);
    }
    FAIL_IF(fstatfs(memfd, &fs) != 0, e, PROFD_REFUSED, "cannot determine the file system of the memory file: %s",
            strerror(errno));
    FAIL_IF(fs.f_type != TMPFS_MAGIC, e, PROFD_REFUSED,
            "the memory file is of file system 0x%llx, not tmpfs (no huge pages)", (unsigned long long)fs.f_type);
    FAIL_IF(fstat(memfd, &st) != 0, e, PROFD_REFUSED, "cannot stat the memory file: %s", strerror(errno));
    FAIL_IF(!S_ISREG(st.st_mode), e, PROFD_REFUSED, "the memory file has mode 0%o, it is not a regular file",
            (unsigned)st.st_mode);
    FAIL_IF(st.st_size < (off_t)ATTACH_SIZE_MIN || st.st_size > (off_t)ATTACH_SIZE_MAX, e, PROFD_REFUSED,
            "the memory file has %lld bytes; allowed are %u to %u", (long long)st.st_size, ATTACH_SIZE_MIN,
            ATTACH_SIZE_MAX);
    FAIL_IF(st.st_blocks < 0 || (uint64_t)st.st_blocks > ((uint64_t)st.st_size + HUGE_PAGE) / BLOCK, e, PROFD_REFUSED,
            "the memory file has %lld bytes but takes %lld blocks of %u", (long long)st.st_size,
            (long long)st.st_blocks, BLOCK);
    *file_size = (uint64_t)st.st_size;
    TRY(attach_read_file(memfd, page, ATTACH_PAGE, 0, e));
    return attach_measure(page, ATTACH_PAGE, *file_size, &used, e);
}

enum profd_status attach_open(int memfd, uint32_t uid, const struct attach_origin *origin, struct attach_process **out,
                              struct profd_error *e)
{
    _Alignas(ATTACH_PAGE) uint8_t page[ATTACH_PAGE];
    static const uint8_t nobody[ATTACH_INSTANCE_SIZE];
    struct attach_header h;
    uint64_t size = 0;
    TRY(judge_file(memfd, page, &size, e));
    memcpy(&h, page, sizeof h);
    FAIL_IF(memcmp(h.instance, nobody, UPLOAD_SENDER_SIZE) == 0, e, PROFD_REFUSED,
            "the instance of the process begins with %d zeros, so it is not random", UPLOAD_SENDER_SIZE);
    struct attach_process *p = calloc(1, sizeof *p);
    FAIL_IF(!p, e, PROFD_NO_MEMORY, "no memory for a process that counts");
    *p = (struct attach_process){.memfd = memfd, .uid = uid, .size = size, .origin = *origin, .filters = h.filters};
    p->summary = (struct attach_summary){.uid = uid,
                                         .pid = origin->pid,
                                         .pid_inside = h.pid,
                                         .build_id = "",
                                         .name = "",
                                         .start = (int64_t)(h.start > INT64_MAX ? INT64_MAX : h.start),
                                         .rate = h.rate,
                                         .mode = (enum attach_mode)h.mode,
                                         .why = ""};
    memcpy(p->summary.instance, h.instance, sizeof h.instance);
    memcpy(p->summary.parent, h.parent, sizeof h.parent);
    *out = p;
    return PROFD_OK;
}

void attach_close(struct attach_process *p)
{
    if (!p) {
        return;
    }
    close(p->memfd);
    free(p->snapshot);
    free(p->texts);
    free(p);
}

const uint8_t *attach_get_instance(const struct attach_process *p)
{
    return p->summary.instance;
}

uint32_t attach_get_user(const struct attach_process *p)
{
    return p->uid;
}

void attach_set_user(struct attach_process *p, uint32_t uid)
{
    p->uid = uid;
    p->summary.uid = uid;
}

enum profd_status attach_resume(struct attach_process *p, uint64_t generation, const uint8_t *snapshot, size_t size,
                                struct profd_error *e)
{
    struct attach_snapshot s;
    FAIL_IF(generation == 0 && p->generation > 0 && !p->snapshot, e, PROFD_DAMAGED,
            "the snapshot of the process, generation %llu, is not in the store", (unsigned long long)p->generation);
    if (generation == 0) {
        p->generation = 0;
        return PROFD_OK;
    }
    TRY(attach_snapshot_decode(snapshot, size, &s, e));
    bool same = memcmp(s.instance, p->summary.instance, sizeof s.instance) == 0;
    attach_snapshot_done(&s);
    FAIL_IF(!same, e, PROFD_DAMAGED, "the snapshot is of another process");
    uint8_t *copy = malloc(size);
    FAIL_IF(!copy, e, PROFD_NO_MEMORY, "no memory for a snapshot of %zu bytes", size);
    memcpy(copy, snapshot, size);
    free(p->snapshot);
    p->snapshot = copy;
    p->snapshot_size = size;
    p->generation = generation;
    return PROFD_OK;
}

struct process_place *attach_get_place(struct attach_process *p)
{
    return p->has_place ? &p->place : NULL;
}

void attach_set_place(struct attach_process *p, const struct process_place *place)
{
    p->place = *place;
    p->has_place = true;
}

void attach_set_cpu(struct attach_process *p, uint64_t cpu_ns)
{
    p->cpu_ns = cpu_ns;
}

uint32_t attach_get_filters(const struct attach_process *p)
{
    return p->filters;
}

static const char *text_put(char **at, const char *text)
{
    size_t n = strlen(text) + 1;
    char *put = *at;
    memcpy(put, text, n);
    *at += n;
    return put;
}

void attach_publish(struct attach_process *p, const struct attach_summary *summary)
{
    struct attach_summary f = *summary;
    size_t size = f.label_count * sizeof(struct store_label) + strlen(f.build_id) + strlen(f.name) + 2;
    for (size_t i = 0; i < f.label_count; i++) {
        size += strlen(f.labels[i].name) + strlen(f.labels[i].value) + 2;
    }
    struct store_label *labels = malloc(size);
    f.calls_before = p->summary.calls;
    f.harvested_before = p->summary.harvested;
    if (labels) {
        char *at = (char *)(labels + f.label_count);
        for (size_t i = 0; i < f.label_count; i++) {
            labels[i].name = text_put(&at, summary->labels[i].name);
            labels[i].value = text_put(&at, summary->labels[i].value);
        }
        f.build_id = text_put(&at, summary->build_id);
        f.name = text_put(&at, summary->name);
        f.labels = labels;
    } else {
        f.build_id = f.name = "";
        f.label_count = 0;
        f.labels = NULL;
    }
    free(p->texts);
    p->texts = labels;
    p->summary = f;
}

void attach_get_summary(const struct attach_process *p, struct attach_summary *out)
{
    *out = p->summary;
}

void attach_settle(struct attach_process *p, struct attach_harvest *h)
{
    struct attach_inside *in = h->inside;
    if (!in || !in->snapshot) {
        return;
    }
    free(p->snapshot);
    p->snapshot = in->snapshot;
    p->snapshot_size = h->put.snapshot_size;
    p->generation = h->put.base + 1;
    p->told = true;
    p->behind = h->more ? h->put.since : 0;
    in->snapshot = NULL;
    h->put.snapshot = p->snapshot;
    attach_publish(p, &in->summary);
}

size_t attach_get_kept(const struct attach_process *p)
{
    return p->snapshot ? p->snapshot_size : 0;
}

void attach_let_go(struct attach_process *p)
{
    free(p->snapshot);
    p->snapshot = NULL;
}

void attach_harvest_done(struct attach_harvest *h)
{
    attach_inside_free(h->inside);
    free(h->missing);
    *h = (struct attach_harvest){.any = false};
}
