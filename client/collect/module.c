#include "client/collect/module.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>

#include "client/collect/collect.h"
#include "client/collect/raw.h"
#include "client/collect/region.h"
#include "client/collect/saved.h"
#include "proto/uncounted.h"

#pragma weak _dl_find_object

bool module_image_find(uintptr_t pc, struct dl_find_object *found)
{
    return _dl_find_object && saved_call((void (*)(void))_dl_find_object, pc, (uintptr_t)found) == 0;
}

static void id_read(uintptr_t note, uint64_t size, uint64_t align, struct module_image *out)
{
    uint64_t step = align == 8 ? 8 : 4;
    for (uint64_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
        const ElfW(Nhdr) *n = (const void *)(note + at);
        uint64_t name = (n->n_namesz + step - 1) / step * step, value = (n->n_descsz + step - 1) / step * step;
        const uint8_t *text = (const uint8_t *)(n + 1);
        if (name + value > size - at - sizeof *n) {
            return;
        }
        if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && text[0] == 'G' && text[1] == 'N' && text[2] == 'U' &&
            n->n_descsz > 0 && n->n_descsz <= sizeof out->id) {
            out->id_size = (uint16_t)n->n_descsz;
            raw_copy(out->id, text + name, n->n_descsz);
            return;
        }
        at += sizeof *n + name + value;
    }
}

/* Finds the segment of an address; its part of the file is mapped and unchanged. */
static struct frame_bytes segment_find(const ElfW(Phdr) * p, unsigned count, uint64_t at, uint64_t bias)
{
    for (unsigned i = 0; i < count; i++) {
        if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_R && at >= p[i].p_vaddr && at - p[i].p_vaddr < p[i].p_filesz) {
            uintptr_t low = (uintptr_t)(p[i].p_vaddr + bias);
            return (struct frame_bytes){low, low + p[i].p_filesz};
        }
    }
    return (struct frame_bytes){0, 0};
}

static bool headers_read(const ElfW(Phdr) * p, unsigned count, uintptr_t mapped_low, bool by_low, uint64_t bias,
                         struct module_image *out)
{
    out->low = UINT64_MAX;
    out->high = out->text_high = 0;
    out->text_low = UINT64_MAX;
    out->id_size = 0;
    out->unwind.table = 0;
    out->text_secret = false;
    for (unsigned i = 0; i < count; i++) {
        if (p[i].p_type != PT_LOAD) {
            continue;
        }
        uint64_t low = p[i].p_vaddr / ATTACH_PAGE * ATTACH_PAGE, high = p[i].p_vaddr + p[i].p_memsz;
        out->low = low < out->low ? low : out->low;
        out->high = high > out->high ? high : out->high;
        if (p[i].p_flags & PF_X) {
            out->text_low = low < out->text_low ? low : out->text_low;
            out->text_high = high > out->text_high ? high : out->text_high;
            out->text_secret = out->text_secret || !(p[i].p_flags & PF_R);
        }
    }
    if (out->high <= out->low || out->text_high <= out->text_low || out->high - out->low > UINT32_MAX) {
        return false;
    }
    out->bias = by_low ? mapped_low - out->low : bias;
    for (unsigned i = 0; i < count; i++) {
        if (p[i].p_type == PT_NOTE && !out->id_size && p[i].p_vaddr >= out->low && p[i].p_vaddr < out->high) {
            id_read((uintptr_t)(p[i].p_vaddr + out->bias), p[i].p_filesz, p[i].p_align, out);
        }
        if (p[i].p_type == PT_GNU_EH_FRAME) {
            out->unwind.bytes = segment_find(p, count, p[i].p_vaddr, out->bias);
            out->unwind.table = out->unwind.bytes.high > 0 ? (uintptr_t)(p[i].p_vaddr + out->bias) : 0;
        }
    }
    return true;
}

/* Reads the object mapped at [low, high). False: no ELF header there. */
static bool module_image_read(uintptr_t low, uintptr_t high, struct module_image *out)
{
    const ElfW(Ehdr) *h = (const void *)low;
    if (high - low < sizeof *h || h->e_ident[0] != 0x7f || h->e_ident[1] != 'E' || h->e_ident[2] != 'L' ||
        h->e_ident[3] != 'F' || h->e_phentsize != sizeof(ElfW(Phdr)) || h->e_phnum == 0 || h->e_phoff > ATTACH_PAGE ||
        h->e_phoff + (uint64_t)h->e_phnum * sizeof(ElfW(Phdr)) > high - low) {
        return false;
    }
    return headers_read((const void *)(low + h->e_phoff), h->e_phnum, low, true, 0, out);
}

/* Reads the program itself, from the auxiliary vector: the loader does not know a static program. */
static bool module_image_read_program(struct module_image *out)
{
    uintptr_t headers = (uintptr_t)getauxval(AT_PHDR);
    unsigned count = (unsigned)getauxval(AT_PHNUM);
    uint64_t bias = 0;
    if (!headers) {
        return false;
    }
    /* Nearly always after the ELF header; otherwise PT_PHDR states their address. */
    if (headers % ATTACH_PAGE == sizeof(ElfW(Ehdr)) &&
        module_image_read(headers - sizeof(ElfW(Ehdr)), headers + UINT32_MAX, out)) {
        return true;
    }
    const ElfW(Phdr) *p = (const void *)headers;
    for (unsigned i = 0; i < count; i++) {
        if (p[i].p_type == PT_PHDR) {
            bias = headers - p[i].p_vaddr;
        }
    }
    return headers_read(p, count, 0, false, bias, out);
}

/* Data of an object for the slow path, in private memory. */
struct module_range {
    uintptr_t low, high;           /* as mapped */
    uintptr_t text_low, text_high; /* its code */
    struct attach_module_row *row;
    struct unwind_info unwind;
    bool text_secret;
    uint32_t live;    /* written last; 0 when unloaded */
    uint32_t counted; /* slots refer to it */
    uint32_t called;  /* its functions were counted, so it is instrumented */
};

static struct module_range ranges[ATTACH_MODULES_MAX + 1];
static uint32_t range_count; /* ids in use: 1 … range_count */
static struct attach_chunk *row_chunks[ATTACH_MODULE_CHUNKS];

void module_reset(void)
{
    uint32_t n = range_count < ATTACH_MODULES_MAX ? range_count : ATTACH_MODULES_MAX;
    for (uint32_t i = 1; i <= n; i++) {
        ranges[i].live = 0;
        ranges[i].row = NULL;
        ranges[i].counted = ranges[i].called = 0;
    }
    for (unsigned i = 0; i < ATTACH_MODULE_CHUNKS; i++) {
        row_chunks[i] = NULL;
    }
    range_count = 0;
}

/* The chunk for a row, created by the first thread. If a second thread creates one at the same time, its pages stay
 * empty. */
static struct attach_chunk *row_chunk(unsigned which)
{
    struct attach_chunk *c = __atomic_load_n(&row_chunks[which], __ATOMIC_ACQUIRE), *none = NULL;
    if (c) {
        return c;
    }
    c = region_take(collect.header, sizeof *c + ATTACH_MODULES_PER_CHUNK * sizeof(struct attach_module_row), 0);
    if (!c) {
        return NULL;
    }
    if (!__atomic_compare_exchange_n(&row_chunks[which], &none, c, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return none;
    }
    c->primary = which * ATTACH_MODULES_PER_CHUNK + 1;
    region_publish(c, ATTACH_KIND_MODULES);
    return c;
}

/* Writes a name into its row, or into a chunk of its own. A relative name is made absolute. */
static void name_write(struct attach_module_row *row, const char *name)
{
    char folder[1024];
    size_t before = 0, n = raw_length(name);
    char *to = row->name;
    for (const char *at = name; *at; at++) {
        const char *rest = raw_after(at, UNCOUNTED_TO_ROOT "/");
        if (rest) {
            name = rest - 1;
            n = raw_length(name);
            break;
        }
    }
    if (name[0] != '/' && raw_after(name, "linux-") == NULL) {
        long got = raw_call(SYS_getcwd, folder, sizeof folder, 0, 0);
        if (got > 1 && folder[0] == '/') {
            folder[got - 1] = '/';
            before = (size_t)got;
        }
    }
    if (before + n > ATTACH_NAME_MAX) {
        return;
    }
    if (before + n > sizeof row->name) {
        struct attach_chunk *c = region_take(collect.header, sizeof *c + before + n, 0);
        if (!c) {
            return;
        }
        to = (char *)(c + 1);
        c->primary = (uint32_t)(before + n);
        region_publish(c, ATTACH_KIND_NAME);
        row->name_at = (uint64_t)((uint8_t *)to - (uint8_t *)collect.header);
    }
    raw_copy(to, folder, before);
    raw_copy(to + before, name, n);
    row->name_size = (uint16_t)(before + n);
}

/* The program's l_name is empty; its name is read from /proc. */
static void row_name(struct attach_module_row *row, const struct link_map *map)
{
    static char path[ATTACH_NAME_MAX + 1]; /* module 1 only, before there are other threads */
    if (map && map->l_name && map->l_name[0]) {
        name_write(row, map->l_name);
        return;
    }
    static const char exe[] = "/proc/self/exe";
    long n = raw_call(SYS_readlinkat, AT_FDCWD, exe, path, ATTACH_NAME_MAX);
    if (n > 0) {
        path[n] = '\0';
        name_write(row, path);
    }
}

static bool is_same(const struct attach_module_row *row, const struct module_image *image)
{
    if (!row || row->bias != image->bias || row->low != image->low || row->high != image->high ||
        row->id_size != image->id_size) {
        return false;
    }
    for (unsigned i = 0; i < image->id_size; i++) {
        if (row->id[i] != image->id[i]) {
            return false;
        }
    }
    return true;
}

static void range_write(struct module_range *r, struct attach_module_row *row, const struct module_image *image)
{
    r->low = (uintptr_t)(image->low + image->bias);
    r->high = (uintptr_t)(image->high + image->bias);
    r->text_low = (uintptr_t)(image->text_low + image->bias);
    r->text_high = (uintptr_t)(image->text_high + image->bias);
    r->row = row;
    r->unwind = image->unwind;
    r->text_secret = image->text_secret;
    __atomic_store_n(&row->loaded, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&r->live, 1, __ATOMIC_RELEASE);
}

/* If two threads find the same new object at once, they write two rows, which the reader adds up by build-id. */
static uint32_t range_add(const struct module_image *image, const struct link_map *map)
{
    uint32_t n = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
    /* An object that was loaded before at the same address keeps its id and its slots. An image without a build-id
     * cannot be recognized. */
    for (uint32_t before = 1; before <= n && image->id_size; before++) {
        if (!__atomic_load_n(&ranges[before].live, __ATOMIC_ACQUIRE) && is_same(ranges[before].row, image)) {
            range_write(&ranges[before], ranges[before].row, image);
            return before;
        }
    }
    uint32_t id = __atomic_add_fetch(&range_count, 1, __ATOMIC_ACQ_REL);
    if (id > ATTACH_MODULES_MAX) {
        __atomic_store_n(&range_count, ATTACH_MODULES_MAX, __ATOMIC_RELEASE);
        collect_counter_add(ATTACH_COUNTER_MODULES_LOST, 1);
        return 0;
    }
    struct attach_chunk *c = row_chunk((id - 1) / ATTACH_MODULES_PER_CHUNK);
    if (!c) {
        collect_counter_add(ATTACH_COUNTER_MODULES_LOST, 1);
        return 0;
    }
    struct attach_module_row *row = (struct attach_module_row *)(void *)(c + 1) + (id - 1) % ATTACH_MODULES_PER_CHUNK;
    row->low = image->low;
    row->high = image->high;
    row->bias = image->bias;
    row->id_size = image->id_size;
    raw_copy(row->id, image->id, image->id_size);
    row_name(row, map);
    __atomic_store_n(&row->state, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&collect.header->modules, 1, __ATOMIC_RELEASE);
    range_write(&ranges[id], row, image);
    return id;
}

static uint32_t range_find(uintptr_t pc)
{
    uint32_t n = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
    for (uint32_t id = n; id > 0; id--) { /* the newest first */
        if (pc >= ranges[id].low && pc < ranges[id].high && __atomic_load_n(&ranges[id].live, __ATOMIC_ACQUIRE)) {
            return id;
        }
    }
    return 0;
}

struct module_place module_find(uintptr_t pc)
{
    struct module_place nowhere = {ATTACH_MODULE_NONE, 0};
    uint32_t id = range_find(pc);
    if (!id) {
        struct dl_find_object found;
        struct module_image image;
        if (module_image_find(pc, &found) &&
            module_image_read((uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end, &image)) {
            id = range_add(&image, found.dlfo_link_map);
        }
    }
    if (!id || pc < ranges[id].text_low || pc >= ranges[id].text_high) {
        return nowhere;
    }
    return (struct module_place){(uint16_t)id, (uint32_t)(pc - ranges[id].low)};
}

/* The program itself stays, and a static one is unknown to its loader. */
static bool range_is_loaded(const struct module_range *r)
{
    struct dl_find_object found;
    return r == &ranges[1] || (module_image_find(r->text_low, &found) && (uintptr_t)found.dlfo_map_start == r->low);
}

bool module_find_unwind(uintptr_t pc, uint32_t *known, struct unwind_info *out)
{
    uint32_t id = range_find(pc);
    if (!id || !ranges[id].unwind.table || (id != *known && !range_is_loaded(&ranges[id]))) {
        return false;
    }
    *known = id;
    *out = ranges[id].unwind;
    return true;
}

bool module_has_code(uintptr_t low, uintptr_t high, uint32_t *known)
{
    uint32_t id = range_find(low);
    const struct module_range *r = &ranges[id];
    if (!id || low < r->text_low || high > r->text_high || high < low || r->text_secret ||
        (id != *known && !range_is_loaded(r))) {
        return false;
    }
    *known = id;
    return true;
}

void module_learn_program(void)
{
    struct module_image image;
    if (module_image_read_program(&image)) {
        range_add(&image, NULL);
    }
}

void module_each_gone(uintptr_t only, void (*each)(uint16_t id))
{
    struct dl_find_object found;
    uint32_t n = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
    for (uint32_t id = 2; id <= n; id++) {
        struct module_range *r = &ranges[id];
        bool chosen = only && only >= r->low && only < r->high;
        if (!__atomic_load_n(&r->live, __ATOMIC_ACQUIRE) || (only && !chosen)) {
            continue;
        }
        if (!chosen && module_image_find(r->text_low, &found) && (uintptr_t)found.dlfo_map_start == r->low) {
            continue;
        }
        if (!chosen) {
            __atomic_store_n(&r->live, 0, __ATOMIC_RELEASE);
            __atomic_store_n(&r->row->loaded, 0, __ATOMIC_RELEASE);
        }
        each((uint16_t)id);
    }
}

void module_set_called(uint16_t id)
{
    if (id == 0 || id > ATTACH_MODULES_MAX || __atomic_load_n(&ranges[id].called, __ATOMIC_RELAXED) ||
        __atomic_exchange_n(&ranges[id].called, 1, __ATOMIC_RELAXED)) {
        return;
    }
    uint32_t n = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
    for (uint32_t other = 1; other <= n; other++) {
        const struct module_range *a = &ranges[id], *b = &ranges[other];
        if (other != id && b->called && __atomic_load_n(&b->live, __ATOMIC_ACQUIRE) &&
            ((uint32_t)(a->text_low - b->text_low) < b->text_high - b->text_low ||
             (uint32_t)(b->text_low - a->text_low) <
                 a->text_high - a->text_low)) { /* keys hold 32 bits of an address */
            collect_counter_add(ATTACH_COUNTER_OVERLAPS, 1);
        }
    }
}

void module_set_counted(uint16_t id)
{
    if (id > 0 && id <= ATTACH_MODULES_MAX) {
        __atomic_store_n(&ranges[id].counted, 1, __ATOMIC_RELAXED);
    }
}

bool module_is_counted(uint16_t id)
{
    return id > 0 && id <= ATTACH_MODULES_MAX && __atomic_load_n(&ranges[id].counted, __ATOMIC_RELAXED);
}

/* The row of a module that has a build-id; NULL if there is none, or if there is no memory for its name. */
static const struct attach_module_row *row_find(uint32_t id, unsigned size)
{
    const struct attach_module_row *row =
        id <= __atomic_load_n(&range_count, __ATOMIC_ACQUIRE) && id <= ATTACH_MODULES_MAX ? ranges[id].row : NULL;
    return row && __atomic_load_n(&row->state, __ATOMIC_ACQUIRE) == 1 && row->id_size > 0 && row->name_size < size
               ? row
               : NULL;
}

static void row_read_name(const struct attach_module_row *row, char *name)
{
    raw_copy(name, row->name_at ? (const char *)collect.header + row->name_at : row->name, row->name_size);
    name[row->name_size] = '\0';
}

unsigned module_get_id(uint32_t number, uint8_t id[BUILDID_BYTES_MAX])
{
    const struct attach_module_row *row = row_find(number, UINT32_MAX);
    if (!row) {
        return 0;
    }
    raw_copy(id, row->id, row->id_size);
    return row->id_size;
}

unsigned module_get(uint32_t number, uint8_t id[BUILDID_BYTES_MAX], char *name, unsigned size)
{
    const struct attach_module_row *row = row_find(number, size);
    if (!row) {
        return 0;
    }
    row_read_name(row, name);
    return module_get_id(number, id);
}

uint32_t module_count(void)
{
    uint32_t n = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
    return n < ATTACH_MODULES_MAX ? n : ATTACH_MODULES_MAX;
}

uintptr_t module_get_low(uint32_t number)
{
    return ranges[number].low;
}

unsigned module_name_by_id(const uint8_t *id, unsigned id_size, char *name, unsigned size)
{
    uint32_t n = module_count();
    for (uint32_t i = 1; i <= n && id_size; i++) {
        const struct attach_module_row *row = row_find(i, size);
        unsigned same = 0;
        if (!row || row->id_size != id_size) {
            continue;
        }
        while (same < id_size && row->id[same] == id[same]) {
            same++;
        }
        if (same < id_size) {
            continue;
        }
        row_read_name(row, name);
        return i;
    }
    return 0;
}
