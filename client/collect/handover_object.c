#include "client/collect/handover_object.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <linux/memfd.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/collect/module.h"
#include "client/collect/raw.h"

#define IMAGE_MOST 65536u
#define STATUS_BYTES 4096

/* A seccomp filter that allows the other system calls may kill the program because of memfd_create(). */
static bool is_filtered(void)
{
    static const char path[] = "/proc/self/status";
    static char text[STATUS_BYTES + 1]; /* only one thread uses it at a time */
    long fd = raw_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0), n = 0;
    if (fd < 0) {
        return true;
    }
    n = raw_call(SYS_read, fd, text, STATUS_BYTES, 0);
    raw_call(SYS_close, fd, 0, 0, 0);
    text[n > 0 ? n : 0] = '\0';
    for (const char *at = text; *at; at++) {
        const char *value = *at == '\n' ? raw_after(at + 1, "Seccomp:") : NULL;
        while (value && (*value == ' ' || *value == '\t')) {
            value++;
        }
        if (value) {
            return *value != '0';
        }
    }
    return true;
}

/* Size of the image, from its section headers, which end it. */
static uint64_t image_size(const ElfW(Ehdr) * h)
{
    uint64_t size = h->e_shoff + (uint64_t)h->e_shnum * h->e_shentsize;
    return size < IMAGE_MOST ? size : 0;
}

/* The kernel reads the image: an image that ends early is then an error and not a fault. */
static int image_open(uintptr_t low)
{
    static const char label[] = "profd-vdso";
    uint64_t size = low && !is_filtered() ? image_size((const ElfW(Ehdr) *)low) : 0;
    long fd = size ? raw_call(SYS_memfd_create, label, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0) : -1;
    if (fd >= 0 &&
        (raw_call(SYS_write, fd, low, size, 0) != (long)size ||
         raw_call(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL, 0) < 0)) {
        raw_call(SYS_close, fd, 0, 0, 0);
        fd = -1;
    }
    return (int)fd;
}

int handover_object_open(uint32_t number, const char *name)
{
    static const char self[] = "/proc/self/exe";
    long fd = -1;
    if (raw_after(name, "linux-vdso") || raw_after(name, "linux-gate")) {
        return image_open(module_get_low(number));
    }
    if (number == 1) { /* the program by the kernel's link: its path may be in another root, or removed */
        fd = raw_call(SYS_openat, AT_FDCWD, self, O_RDONLY | O_CLOEXEC, 0);
    }
    if (fd < 0) {
        fd = raw_call(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
    }
    return fd < 0 ? -1 : (int)fd;
}
