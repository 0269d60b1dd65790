/* The files that processes have mapped, and the builds that they are. A file is opened when a sample fell into it for
 * the first time, as its process sees it: through /proc/PID/root. Only ELF headers and notes are read. The vDSO, which
 * the kernel maps under the name IMAGE_VDSO, is a file, too. */
#ifndef PROFD_CLIENT_RECORD_IMAGE_H
#define PROFD_CLIENT_RECORD_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/buildid.h"
#include "record/tally.h"
#include "record/unwind_table.h"

struct images;

#define IMAGE_NONE UINT32_MAX
#define IMAGE_VDSO "[vdso]"

/* What the kernel says of a mapped file. */
struct image_key {
    const char *path; /* as the process sees it */
    const uint8_t *id;
    uint8_t id_size; /* 0: not known; then the numbers of the file identify it */
    uint32_t major, minor;
    uint64_t inode, generation;
};

enum profd_status images_new(struct images **out, struct profd_error *e);
/* Accepts NULL. */
void images_free(struct images *m);

/* The number of a mapped file, the same for every process that has mapped it. IMAGE_NONE: no memory. O(path). */
uint32_t images_take_file(struct images *m, const struct image_key *key);
/* True if something could not be remembered, or soon cannot be: then everything is to be forgotten and read again. */
bool images_full(const struct images *m);
/* True if the file has the name of the library that contains the collector. */
bool images_is_collector(const struct images *m, uint32_t file);

/* A process that has mapped a file, of that user. Where it is gone, the file is opened as elder sees it, the process
 * that it inherited its maps from: 0 after execve. */
struct image_user {
    uint32_t pid, elder, uid;
};

/* The build of a file that a process has mapped: IMAGE_NONE if it is no readable ELF file, or not the file that was
 * mapped. Opens it at the first call, and again at later ones while no process is left that could show it. */
uint32_t images_find_build(struct images *m, uint32_t file, const struct image_user *user);
/* True if the build of a file was found before. */
bool images_has_build(const struct images *m, uint32_t file);
/* Adds a build that is no mapped file. fd is its ELF file, which the images own from then on; its code is at [low,
 * high). IMAGE_NONE: no memory. */
uint32_t images_add_build(struct images *m, const struct buildid *id, const char *name, int fd, uint64_t low,
                          uint64_t high);
/* Adds a build of which the id is not known yet: images_set_build sets it before anything asks for it. IMAGE_NONE: no
 * memory, or there are too many. */
uint32_t images_reserve_build(struct images *m, const char *name);
/* Sets id, ELF file and code, at [0, size), of a reserved build, which is of that user. fd is owned from then on. */
void images_set_build(struct images *m, uint32_t build, const struct buildid *id, int fd, uint64_t size, uint32_t uid);
/* Number of reserved builds, and how many there may be. */
#define IMAGE_RESERVED_MAX 64u
uint32_t images_reserved(const struct images *m);
/* The user that a set-user-ID program runs as, of a file of which the build was found; false: it is none. */
bool images_find_setuid(const struct images *m, uint32_t file, uint32_t *uid);
/* The link-time address of an offset in a file of which the build was found; false: nothing of it is loaded there.
 * O(segments). */
bool images_find_address(const struct images *m, uint32_t file, uint64_t offset, uint64_t *address);

/* The unwind table of a file of which the build was found; NULL: it has none. */
const struct unwind_table *images_find_table(const struct images *m, uint32_t file);

const char *images_get_id(const struct images *m, uint32_t build);
const char *images_get_name(const struct images *m, uint32_t build);
/* The range of a build's link-time addresses. */
struct tally_range images_get_range(const struct images *m, uint32_t build);

/* The ELF file of a build for the daemon, and the user of the process that it was opened for: a descriptor that the
 * caller closes, −1 if it cannot be opened any more. */
int images_open_build(const struct images *m, const char *id, uint32_t *uid, const char **name);
/* Closes the files of builds that were in use before the previous call. */
void images_close_old(struct images *m);

#endif
