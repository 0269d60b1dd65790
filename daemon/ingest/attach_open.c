/* A descriptor from an untrusted process: it is read only after it is known that reading cannot block. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ingest/attach_internal.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define BLOCK 512u           /* of st_blocks */
#define HUGE_PAGE (2u << 20) /* tmpfs may take one where a small page would do */

static const char *seal_name(int seals)
{
    return !(seals & F_SEAL_SHRINK) ? "SHRINK"
           : !(seals & F_SEAL_GROW) ? "GROW"
           : !(seals & F_SEAL_SEAL) ? "SEAL"
                                    : "FUTURE_WRITE";
}

/* Only memory files have seals: no pipe, device, directory or file of another's file system comes further. */
static enum profd_status judge_seals(int memfd, struct profd_error *e)
{
    int seals = fcntl(memfd, F_GET_SEALS);
    if (seals < 0) {
        return profd_error_set(e, PROFD_REFUSED, "the descriptor is not a sealable memory file: %s", strerror(errno));
    }
    if ((seals & SEALS) != SEALS) {
        return profd_error_set(e, PROFD_REFUSED, "the memory file lacks the seal %s (it has 0x%x, wanted are 0x%x)",
                               seal_name(seals), (unsigned)seals, (unsigned)SEALS);
    }
    return PROFD_OK;
}

static enum profd_status judge_size(int memfd, uint64_t *file_size, struct profd_error *e)
{
    struct stat st;
    if (fstat(memfd, &st) != 0) {
        return profd_error_set(e, PROFD_REFUSED, "cannot stat the memory file: %s", strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return profd_error_set(e, PROFD_REFUSED, "the memory file has mode 0%o, it is not a regular file",
                               (unsigned)st.st_mode);
    }
    if (st.st_size < (off_t)ATTACH_SIZE_MIN || st.st_size > (off_t)ATTACH_SIZE_MAX) {
        return profd_error_set(e, PROFD_REFUSED, "the memory file has %lld bytes; allowed are %u to %u",
                               (long long)st.st_size, ATTACH_SIZE_MIN, ATTACH_SIZE_MAX);
    }
    if (st.st_blocks < 0 || (uint64_t)st.st_blocks > ((uint64_t)st.st_size + HUGE_PAGE) / BLOCK) {
        return profd_error_set(e, PROFD_REFUSED, "the memory file has %lld bytes but takes %lld blocks of %u",
                               (long long)st.st_size, (long long)st.st_blocks, BLOCK);
    }
    *file_size = (uint64_t)st.st_size;
    return PROFD_OK;
}

enum profd_status attach_read_file(int memfd, uint8_t *out, uint64_t n, uint64_t at, struct profd_error *e)
{
    uint64_t done = 0;
    while (done < n) {
        ssize_t got = pread(memfd, out + done, (size_t)(n - done), (off_t)(at + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return profd_error_set(e, errno == EBADF ? PROFD_REFUSED : PROFD_IO,
                                   "shared counts cannot be read at %llu: %s", (unsigned long long)(at + done),
                                   strerror(errno));
        }
        if (got == 0) {
            return profd_error_set(e, PROFD_REFUSED, "shared counts end at %llu, before byte %llu",
                                   (unsigned long long)(at + done), (unsigned long long)(at + n));
        }
        done += (uint64_t)got;
    }
    return PROFD_OK;
}

enum profd_status attach_judge_file(int memfd, uint8_t page[ATTACH_PAGE], uint64_t *file_size, struct profd_error *e)
{
    struct statfs fs;
    uint64_t size = 0, used;
    enum profd_status status = judge_seals(memfd, e);
    if (status != PROFD_OK) {
        return status;
    }
    if (fstatfs(memfd, &fs) != 0) {
        return profd_error_set(e, PROFD_REFUSED, "cannot determine the file system of the memory file: %s",
                               strerror(errno));
    }
    if (fs.f_type != TMPFS_MAGIC) {
        return profd_error_set(e, PROFD_REFUSED, "the memory file is of file system 0x%llx, not tmpfs (no huge pages)",
                               (unsigned long long)fs.f_type);
    }
    status = judge_size(memfd, &size, e);
    if (status == PROFD_OK) {
        status = attach_read_file(memfd, page, ATTACH_PAGE, 0, e);
    }
    if (status == PROFD_OK) {
        status = attach_measure(page, ATTACH_PAGE, size, &used, e);
    }
    if (status == PROFD_OK) {
        *file_size = size;
    }
    return status;
}
