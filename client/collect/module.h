/* Objects of the process: found by address, each written into the region once. */
#ifndef PROFD_COLLECT_MODULE_H
#define PROFD_COLLECT_MODULE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/collect/unwind.h"
#include "proto/attach_memory.h"

/* Reads the ELF header of an object in memory, without the loader's help or locks. */

struct module_image {
    uint64_t low, high;           /* link-time, of all segments */
    uint64_t text_low, text_high; /* of the executable ones */
    uint64_t bias;
    struct unwind_info unwind; /* as mapped */
    bool text_secret;          /* code that cannot be read as data */
    uint16_t id_size;
    uint8_t id[BUILDID_BYTES_MAX];
};

/* Finds the object of an address by the loader; false if there is none. Preserves vector registers. */
bool module_image_find(uintptr_t pc, struct dl_find_object *found);

/* Location of an address. module is ATTACH_MODULE_NONE if the address is in no object, or not in its code. */
struct module_place {
    uint16_t module;
    uint32_t offset; /* bytes above the object's low */
};

/* Finds the object of an address, and registers new objects. The loader is called (with all vector registers saved)
 * only for addresses of unknown objects. Any thread, any handler, lock-free. O(objects). */
struct module_place module_find(uintptr_t pc);

/* Reads the unwind information of the object that contains an address. False: no known object contains it, it has none,
 * or libc has unloaded it by itself. *known: number of the object of the previous call, 0 before the first; the loader
 * is called if the object is another one. Between unload_read_begin and unload_read_end only. */
bool module_find_unwind(uintptr_t pc, uint32_t *known, struct unwind_info *out);

/* True if the code in [low, high) belongs to one known object and can be read; *known and where it may be called: as
 * above. */
bool module_has_code(uintptr_t low, uintptr_t high, uint32_t *known);

/* In a child of fork: resets the table, because the new process has no modules yet. */
void module_reset(void);

/* Registers the program as module 1. */
void module_learn_program(void);

/* Marks objects that are no longer in memory as unloaded and calls each(id) for them. `only`: an address in the one
 * object to check, which is about to be unloaded; 0: none. */
void module_each_gone(uintptr_t only, void (*each)(uint16_t id));

/* Records that slots exist for it: its tables must be searched when it is unloaded. */
void module_set_counted(uint16_t id);
bool module_is_counted(uint16_t id);

/* A function of it was called and counted. Where its code and that of another such object differ in address by whole 4
 * GiB, that is noted: keys cannot tell them apart. Objects that only call, as libc calls back, are left out: they would
 * have to call the very same function from the very same 32 bits, one chance in 2^32 for each pair of call sites, and
 * to say so of every overlap would call one process in 3,000 inexact for nothing. */
void module_set_called(uint16_t id);

/* Modules have the numbers 1 … module_count(). Bytes of the build-id of one, 0 if it has none or is not there yet; name
 * as below. */
uint32_t module_count(void);
unsigned module_get(uint32_t number, uint8_t id[BUILDID_BYTES_MAX], char *name, unsigned size);
/* Bytes of the build-id alone. */
unsigned module_get_id(uint32_t number, uint8_t id[BUILDID_BYTES_MAX]);
/* Where it is mapped. */
uintptr_t module_get_low(uint32_t number);

/* Finds the module with this build-id, and its name as the loader knew it (NUL-terminated). Its number, 0 if there is
 * none. */
unsigned module_name_by_id(const uint8_t *id, unsigned id_size, char *name, unsigned size);

#endif
