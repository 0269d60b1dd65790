/* Every page of a database file ends with a checksum over its content and its number. A page that is read and does not
 * have it is refused, so that no damaged row, index or blob becomes a number of a report. This is a layer between
 * SQLite and its own access to files. The frames of the log have checksums of SQLite. */
#include <endian.h>
#include <stdlib.h>

#include "store/store_internal.h"

#define HEADER_SIZE 100
#define HEADER_PAGE_SIZE 16 /* offset, 2 bytes; 1 means 65536 */
#define HEADER_RESERVED 20  /* offset of the number of bytes that SQLite leaves free at the end of each page */
#define SCAN_LOOKS 20

struct seal_file {
    sqlite3_file base;
    /* Bytes; 0: the header does not say that pages have space for the checksum. A file is taken for sealed until its
     * header is written, because SQLite may write other pages before that. */
    int page;
    _Alignas(8) uint8_t real[]; /* SQLite takes memory that is aligned to 8 bytes */
};

static sqlite3_vfs seal_vfs, *seal_real;
static _Thread_local int64_t seal_fault;

static sqlite3_file *real_of(sqlite3_file *f)
{
    return (sqlite3_file *)((struct seal_file *)f)->real;
}

static uint64_t mix(uint64_t sum, const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    sum ^= le64toh(word);
    return (sum << 29 | sum >> 35) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Each step is a bijection of the word, and words of different sums never meet before the end: damage within one word
 * is always found. The number of the page is part of it, so that a page written to a wrong place is found, too. */
static uint64_t seal_sum(const uint8_t *page, int size, int64_t number)
{
    uint64_t sums[4] = {(uint64_t)number, 1, 2, 3};
    int at = 0;
    for (; at + 32 < size; at += 32) {
        for (int i = 0; i < 4; i++) {
            sums[i] = mix(sums[i], page + at + 8 * i);
        }
    }
    for (; at + 8 < size; at += 8) {
        sums[0] = mix(sums[0], page + at);
    }
    return sums[0] ^ (sums[1] << 17 | sums[1] >> 47) ^ (sums[2] << 31 | sums[2] >> 33) ^
           (sums[3] << 47 | sums[3] >> 17);
}

static void note_header(struct seal_file *f, const uint8_t *bytes, int size, sqlite3_int64 at)
{
    if (at == 0 && size >= HEADER_SIZE && memcmp(bytes, "SQLite format 3", 16) == 0) {
        int page = bytes[HEADER_PAGE_SIZE] << 8 | bytes[HEADER_PAGE_SIZE + 1];
        f->page = bytes[HEADER_RESERVED] != SQLITE_SEAL_SIZE ? 0 : page == 1 ? 65536 : page;
    }
}

static int seal_read_page(struct seal_file *f, uint8_t *bytes, sqlite3_int64 number)
{
    int rc = real_of(&f->base)->pMethods->xRead(real_of(&f->base), bytes, f->page, (number - 1) * f->page);
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ) {
        return rc;
    }
    uint64_t stored;
    memcpy(&stored, bytes + f->page - SQLITE_SEAL_SIZE, sizeof stored);
    /* SQLite never writes a page that is freed in the transaction which allocated it: it is a hole of the file, and
     * read only to be copied. Nothing refers to such a page, and no page that is in use has only zeros. */
    const bool hole = bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)f->page - 1) == 0;
    if (hole || le64toh(stored) == seal_sum(bytes, f->page, number)) {
        return rc;
    }
    seal_fault = number;
    return SQLITE_IOERR_DATA;
}

static int seal_read(sqlite3_file *base, void *bytes, int size, sqlite3_int64 at)
{
    struct seal_file *f = (struct seal_file *)base;
    if (f->page > 0 && size == f->page) {
        return seal_read_page(f, bytes, at / size + 1);
    }
    if (f->page > 0 && size < f->page && at >= f->page) { /* a newer SQLite reads parts of large values */
        uint8_t *page = malloc((size_t)f->page);
        int rc = page ? seal_read_page(f, page, at / f->page + 1) : SQLITE_IOERR_NOMEM;
        if (rc == SQLITE_OK) {
            memcpy(bytes, page + at % f->page, (size_t)size);
        }
        free(page);
        return rc;
    }
    int rc = real_of(base)->pMethods->xRead(real_of(base), bytes, size, at);
    if (rc == SQLITE_OK) {
        note_header(f, bytes, size, at);
    }
    return rc;
}

static int seal_write(sqlite3_file *base, const void *bytes, int size, sqlite3_int64 at)
{
    struct seal_file *f = (struct seal_file *)base;
    note_header(f, bytes, size, at);
    if (size == f->page) {
        /* The buffer is SQLite's own, and its last bytes are reserved for this. */
        uint64_t sum = htole64(seal_sum(bytes, size, at / size + 1));
        memcpy((uint8_t *)(uintptr_t)bytes + size - SQLITE_SEAL_SIZE, &sum, sizeof sum);
    }
    return real_of(base)->pMethods->xWrite(real_of(base), bytes, size, at);
}

#define PASS(name, parameters, arguments)                                                                              \
    static int seal_##name parameters                                                                                  \
    {                                                                                                                  \
        return real_of(f)->pMethods->name arguments;                                                                   \
    }
PASS(xClose, (sqlite3_file * f), (real_of(f)))
PASS(xTruncate, (sqlite3_file * f, sqlite3_int64 size), (real_of(f), size))
PASS(xSync, (sqlite3_file * f, int flags), (real_of(f), flags))
PASS(xFileSize, (sqlite3_file * f, sqlite3_int64 *size), (real_of(f), size))
PASS(xLock, (sqlite3_file * f, int level), (real_of(f), level))
PASS(xUnlock, (sqlite3_file * f, int level), (real_of(f), level))
PASS(xCheckReservedLock, (sqlite3_file * f, int *held), (real_of(f), held))
PASS(xFileControl, (sqlite3_file * f, int op, void *value), (real_of(f), op, value))
PASS(xSectorSize, (sqlite3_file * f), (real_of(f)))
PASS(xDeviceCharacteristics, (sqlite3_file * f), (real_of(f)))
PASS(xShmMap, (sqlite3_file * f, int page, int size, int extend, void volatile **out),
     (real_of(f), page, size, extend, out))
PASS(xShmLock, (sqlite3_file * f, int offset, int n, int flags), (real_of(f), offset, n, flags))
PASS(xShmUnmap, (sqlite3_file * f, int remove), (real_of(f), remove))

static void seal_xShmBarrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

/* Version 2 has no xFetch: mapped pages would be read without this layer. */
static const sqlite3_io_methods seal_methods = {.iVersion = 2,
                                                .xClose = seal_xClose,
                                                .xRead = seal_read,
                                                .xWrite = seal_write,
                                                .xTruncate = seal_xTruncate,
                                                .xSync = seal_xSync,
                                                .xFileSize = seal_xFileSize,
                                                .xLock = seal_xLock,
                                                .xUnlock = seal_xUnlock,
                                                .xCheckReservedLock = seal_xCheckReservedLock,
                                                .xFileControl = seal_xFileControl,
                                                .xSectorSize = seal_xSectorSize,
                                                .xDeviceCharacteristics = seal_xDeviceCharacteristics,
                                                .xShmMap = seal_xShmMap,
                                                .xShmLock = seal_xShmLock,
                                                .xShmBarrier = seal_xShmBarrier,
                                                .xShmUnmap = seal_xShmUnmap};

static int seal_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out)
{
    (void)vfs;
    if (!(flags & SQLITE_OPEN_MAIN_DB)) {
        return seal_real->xOpen(seal_real, name, base, flags, out);
    }
    struct seal_file *f = (struct seal_file *)base;
    sqlite3_int64 bytes = 0;
    f->page = 0;
    int rc = seal_real->xOpen(seal_real, name, real_of(base), flags, out);
    base->pMethods = real_of(base)->pMethods ? &seal_methods : NULL;
    if (rc == SQLITE_OK && real_of(base)->pMethods->xFileSize(real_of(base), &bytes) == SQLITE_OK && bytes == 0) {
        f->page = SQLITE_PAGE;
    }
    return rc;
}

void sqlite_seal_register(void)
{
    /* Nobody asks how much memory SQLite uses, and to count it each allocation of any thread would take one lock. Once
     * SQLite is initialized this changes nothing. */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_initialize();
    sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
    sqlite3_mutex_enter(mutex);
    if (!seal_real) {
        /* The other members of the layer are those of SQLite. They use nothing of their first argument but what was
         * copied. */
        seal_real = sqlite3_vfs_find(NULL);
        seal_vfs = *seal_real;
        seal_vfs.zName = "profd-sealed";
        seal_vfs.szOsFile = (int)offsetof(struct seal_file, real) + seal_real->szOsFile;
        seal_vfs.xOpen = seal_open;
        sqlite3_vfs_register(&seal_vfs, 1);
    }
    sqlite3_mutex_leave(mutex);
}

int64_t sqlite_seal_take_fault(void)
{
    int64_t page = seal_fault;
    seal_fault = 0;
    return page;
}

int sqlite_seal_reserve(sqlite3 *db, int bytes)
{
    sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
    return bytes;
}

enum profd_status sqlite_seal_scan(struct store *s, int64_t n, int64_t *page, int64_t *bad, struct profd_error *e)
{
    sqlite3_file *f = NULL;
    sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &f);
    int size = f && f->pMethods == &seal_methods ? ((struct seal_file *)f)->page : 0;
    *bad = 0;
    if (size == 0) { /* a database in memory */
        *page = 0;
        return PROFD_OK;
    }
    uint8_t *bytes = malloc((size_t)size);
    TRY(bytes ? PROFD_OK : profd_no_memory(e));
    int rc = SQLITE_OK;
    for (int64_t end = *page + n; *page < end && rc == SQLITE_OK && !*bad; ++*page) {
        /* A page that is being written back from the log is read in parts of both: another look finds it whole. */
        for (int i = 0; i < SCAN_LOOKS; i++) {
            rc = seal_read_page((struct seal_file *)f, bytes, *page + 1);
            if (rc != SQLITE_IOERR_DATA) {
                break;
            }
            sqlite3_sleep(1);
        }
        if (rc == SQLITE_IOERR_DATA) {
            *bad = *page + 1;
            rc = SQLITE_OK;
        }
    }
    free(bytes);
    if (rc == SQLITE_IOERR_SHORT_READ) {
        *page = 0;
        rc = SQLITE_OK;
    }
    return rc == SQLITE_OK ? PROFD_OK
                           : profd_error_set(e, PROFD_IO, "database %s: page %lld: %s", s->path, (long long)*page,
                                             sqlite3_errstr(rc));
}
