/* The spool: uploads that could not be delivered, one file each, until the next delivery (DECISIONS 21).
 * A file is written under a name beginning with "." , synced, and renamed: what has the right name is whole.
 * File: "profd-spool 1\n", lines "object BUILD-ID PATH\n", an empty line, and the UPLOAD frame as it is sent. */
#ifndef PROFD_CLIENT_SPOOL_H
#define PROFD_CLIENT_SPOOL_H

#include "profd.h"

struct spool;

/* What may be asked for later. */
struct spool_object {
    const char *build_id, *path;
};

struct spool_entry {
    char name[64];
    uint64_t size;
    uint64_t time; /* ns since the epoch */
};

/* An entry's contents; all in one block. */
struct spool_upload {
    size_t object_count;
    struct spool_object *objects;
    const uint8_t *frame;
    size_t frame_size;
    void *block;
};

/* Opens the directory, and creates it (0700) if create. NOT_FOUND: it does not exist. UNTRUSTED: other users have
 * access. UNAVAILABLE: the environment names none. Deletes uploads older than LIMIT_SPOOL_DAYS at time now (ns), and
 * incomplete files. */
enum profd_status spool_open(bool create, uint64_t now, struct spool **out, struct profd_error *e);
/* Accepts NULL. */
void spool_close(struct spool *s);
const char *spool_path(const struct spool *s);
/* Number of entries that spool_open found too old and deleted. */
size_t spool_expired(const struct spool *s);

/* Takes the lock for delivery; false: another process is delivering this spool. */
bool spool_lock(struct spool *s);

/* Writes one upload durably. FULL if the spool would exceed LIMIT_SPOOL_BYTES. A repeat of an id is written once.
 * Objects with a line break in their path are left out. */
enum profd_status spool_add(struct spool *s, const struct profd_id *id, const struct spool_object *objects,
                            size_t object_count, const uint8_t *frame, size_t frame_size, struct profd_error *e);

/* Entries, oldest sender first, in one block that the caller frees. O(n log n). */
enum profd_status spool_list(struct spool *s, struct spool_entry **out, size_t *n, struct profd_error *e);
/* Reads one and checks its form; spool_upload_done frees. MALFORMED: not a spooled upload. */
enum profd_status spool_read(struct spool *s, const char *name, struct spool_upload *out, struct profd_error *e);
void spool_upload_done(struct spool_upload *u);
/* Deletes one; it is no failure that another process did. */
void spool_remove(struct spool *s, const char *name);

#endif
