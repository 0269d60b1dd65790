#include "client/collect/module_image.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "client/collect/raw.h"
#include "client/collect/saved.h"

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

bool module_image_read(uintptr_t low, uintptr_t high, struct module_image *out)
{
    const ElfW(Ehdr) *h = (const void *)low;
    if (high - low < sizeof *h || h->e_ident[0] != 0x7f || h->e_ident[1] != 'E' || h->e_ident[2] != 'L' ||
        h->e_ident[3] != 'F' || h->e_phentsize != sizeof(ElfW(Phdr)) || h->e_phnum == 0 || h->e_phoff > ATTACH_PAGE ||
        h->e_phoff + (uint64_t)h->e_phnum * sizeof(ElfW(Phdr)) > high - low) {
        return false;
    }
    return headers_read((const void *)(low + h->e_phoff), h->e_phnum, low, true, 0, out);
}

bool module_image_read_program(struct module_image *out)
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
