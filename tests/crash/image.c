#include "tests/crash/image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/crash/daemon.h"
#include "tests/crash/place.h"

#define LOOP_MAJOR 7
#define SHUT_DOWN _IOR('X', 125, uint32_t) /* EXT4_IOC_SHUTDOWN, which no header of user space has */
/* After a sync. At once (2, or 1 with its journal written) an fdatasync that is under way says yes to what is lost, in
 * Linux 6.18 at least; a power cut is better made otherwise (cuts.c). */
#define SHUT_DOWN_SYNCED 0u

bool image_make(const char *path, unsigned mib)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool sized = fd >= 0 && !ftruncate(fd, (off_t)mib << 20);

    if (fd >= 0) {
        close(fd);
    }
    return sized && place_run((const char *const[]){"mkfs.ext4", "-q", "-F", "-b", "4096", "-N", "256", "-J", "size=4",
                                                    "-E", "lazy_itable_init=0,lazy_journal_init=0", path, NULL}) == 0;
}

/* Takes a free loop device; another may take it between our asking and our taking. */
static int attach(const char *path, char device[32])
{
    const int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), file = open(path, O_RDWR | O_CLOEXEC);
    struct loop_config config = {.fd = (unsigned)file, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
    int loop = -1;

    for (unsigned tries = 0; control >= 0 && file >= 0 && loop < 0 && tries < 50; tries++) {
        const int number = ioctl(control, LOOP_CTL_GET_FREE);

        if (number < 0) {
            break;
        }
        snprintf(device, 32, "/dev/loop%d", number);
        mknod(device, S_IFBLK | 0600, makedev(LOOP_MAJOR, (unsigned)number)); /* a container may lack the node */
        loop = open(device, O_RDWR | O_CLOEXEC);
        if (loop >= 0 && ioctl(loop, LOOP_CONFIGURE, &config)) {
            close(loop);
            loop = -1;
        }
    }
    if (control >= 0) {
        close(control);
    }
    if (file >= 0) {
        close(file);
    }
    return loop;
}

bool image_mount(const char *path, const char *folder, bool errors_read_only, char why[128])
{
    char device[32] = "";
    const int loop = attach(path, device);
    bool ok = loop >= 0;

    mkdir(folder, 0755);
    if (ok) {
        ok = !mount(device, folder, "ext4", MS_NOATIME | MS_NOSUID | MS_NODEV,
                    errors_read_only ? "commit=300,errors=remount-ro" : "commit=300,errors=continue");
    }
    if (!ok && why) {
        snprintf(why, 128, "%s: %s", loop < 0 ? "no loop device" : "mount", strerror(errno));
    }
    if (loop >= 0) {
        close(loop); /* the mount holds it; without a mount it is free again */
    }
    return ok;
}

bool image_limit_requests(const char *folder, unsigned kib)
{
    char path[64];
    struct stat st;
    FILE *f;
    bool ok;

    if (stat(folder, &st)) {
        return false;
    }
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u/queue/max_sectors_kb", major(st.st_dev), minor(st.st_dev));
    f = fopen(path, "we");
    ok = f && fprintf(f, "%u", kib) > 0;
    if (f && fclose(f)) {
        ok = false;
    }
    return ok;
}

bool image_mount_memory(const char *folder, unsigned kib)
{
    char size[32];

    snprintf(size, sizeof size, "size=%uk", kib);
    mkdir(folder, 0755);
    return !mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, size);
}

bool image_shut_down(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint32_t how = SHUT_DOWN_SYNCED;
    const bool ok = fd >= 0 && !ioctl(fd, SHUT_DOWN, &how);

    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

bool image_unmount(const char *folder)
{
    for (unsigned tries = 0; tries < 400; tries++) {
        if (!umount2(folder, 0)) {
            return true;
        }
        if (errno != EBUSY) {
            return false;
        }
        daemon_pause_us(5000);
    }
    umount2(folder, MNT_DETACH);
    return false;
}
