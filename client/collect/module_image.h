/* Reads the ELF header of an object in memory, without the loader's help or locks. */
#ifndef PROFD_COLLECT_MODULE_IMAGE_H
#define PROFD_COLLECT_MODULE_IMAGE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/collect/unwind.h"
#include "proto/attach.h"

struct module_image {
    uint64_t low, high;           /* link-time, of all segments */
    uint64_t text_low, text_high; /* of the executable ones */
    uint64_t bias;
    struct unwind_place unwind; /* as mapped */
    uint16_t id_size;
    uint8_t id[BUILDID_BYTES_MAX];
};

/* Finds the object of an address by the loader; false if there is none. Preserves vector registers. */
bool module_image_find(uintptr_t pc, struct dl_find_object *found);

/* Reads the object mapped at [low, high). False: no ELF header there. */
bool module_image_read(uintptr_t low, uintptr_t high, struct module_image *out);

/* Reads the program itself, from the auxiliary vector: the loader does not know a static program. */
bool module_image_read_program(struct module_image *out);

#endif
