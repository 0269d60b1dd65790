#include "elf/elf_disassembler.h"

#include <elf.h>

#include "proto/late.h"

static struct {
    __typeof__(cs_open) *open;
    __typeof__(cs_option) *option;
    __typeof__(cs_malloc) *malloc;
    __typeof__(cs_disasm_iter) *next;
    __typeof__(cs_free) *free;
    __typeof__(cs_close) *close;
} capstone;
static const char *const names[] = {"cs_open", "cs_option", "cs_malloc", "cs_disasm_iter", "cs_free", "cs_close"};

enum profd_status disassembler_load(struct profd_error *e)
{
    return late_load("libcapstone.so.4", names, sizeof names / sizeof *names, &capstone, e);
}

bool disassembler_knows(uint16_t machine)
{
    return machine == EM_X86_64 || machine == EM_386 || machine == EM_AARCH64;
}

enum profd_status disassembler_open(struct disassembler *d, uint16_t machine, bool text, struct profd_error *e)
{
    const cs_arch arch = machine == EM_AARCH64 ? CS_ARCH_ARM64 : CS_ARCH_X86;
    const cs_mode mode = machine == EM_X86_64 ? CS_MODE_64 : machine == EM_386 ? CS_MODE_32 : CS_MODE_LITTLE_ENDIAN;
    *d = (struct disassembler){0};
    TRY(disassembler_load(e));
    if (capstone.open(arch, mode, &d->handle) == CS_ERR_OK) {
        if (text) {
            (void)capstone.option(d->handle, CS_OPT_SKIPDATA, CS_OPT_ON);
        }
        if (text && arch == CS_ARCH_X86) {
            (void)capstone.option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
        }
        d->instruction = capstone.malloc(d->handle);
        if (d->instruction) {
            return PROFD_OK;
        }
        (void)capstone.close(&d->handle);
    }
    return profd_error_set(e, PROFD_NO_MEMORY, "out of memory for the disassembler");
}

bool disassembler_next(struct disassembler *d, const uint8_t **bytes, size_t *size, uint64_t *address)
{
    return capstone.next(d->handle, bytes, size, address, d->instruction);
}

void disassembler_close(struct disassembler *d)
{
    if (d->instruction) {
        capstone.free(d->instruction, 1);
        (void)capstone.close(&d->handle);
        d->instruction = NULL;
    }
}
