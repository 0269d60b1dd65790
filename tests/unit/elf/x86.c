/* The lengths of x86 instructions agree with capstone's, and no byte behind the end is read. */
#include "elf/elf_internal.h"
#include "tests/rounds.h"

#include <capstone/capstone.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static size_t length(const char *bytes, size_t n, bool wide)
{
    struct elf_x86 x;
    return elf_x86_decode((const uint8_t *)bytes, n, wide, &x) ? x.length : 0;
}

#define WIDE(bytes) length(bytes, sizeof bytes - 1, true)
#define NARROW(bytes) length(bytes, sizeof bytes - 1, false)

Test(elf_x86, known_instructions)
{
    cr_expect_eq(WIDE("\xe8\1\2\3\4"), 5);
    cr_expect_eq(WIDE("\x66\xe8\1\2\3\4"), 6, "Intel ignores the operand prefix");
    cr_expect_eq(NARROW("\x66\xe8\1\2\3\4"), 4);
    cr_expect_eq(WIDE("\x48\xb8\1\2\3\4\5\6\7\x08"), 10);
    cr_expect_eq(WIDE("\x66\xb8\1\2"), 4);
    cr_expect_eq(WIDE("\x66\x48\xb8\1\2\3\4\5\6\7\x08"), 11);
    cr_expect_eq(WIDE("\x48\x66\xb8\1\2\3\4"), 5, "a REX that isn't last is void");
    cr_expect_eq(WIDE("\xa1\1\2\3\4\5\6\7\x08"), 9);
    cr_expect_eq(NARROW("\xa1\1\2\3\4"), 5);
    cr_expect_eq(WIDE("\xf6\x04\x25\1\2\3\4\5"), 8);
    cr_expect_eq(WIDE("\xf6\x14\x25\1\2\3\4"), 7);
    cr_expect_eq(WIDE("\xf7\xc0\1\2\3\4"), 6);
    cr_expect_eq(NARROW("\x67\x8b\x06\1\2"), 5);
    cr_expect_eq(NARROW("\x67\x8b\x46\1"), 4);
    cr_expect_eq(WIDE("\xc8\1\2\3"), 4);
    cr_expect_eq(WIDE("\xc4\xe3\x7d\x19\xc1\x01"), 6, "vextractf128");
    cr_expect_eq(WIDE("\xc5\xf8\x77"), 3, "vzeroupper");
    cr_expect_eq(NARROW("\xc5\x06\1\2\3\4"), 2, "lds");
    cr_expect_eq(WIDE("\x62\xf1\x6d\x48\xfe\xd9"), 6, "vpaddd");
    cr_expect_eq(WIDE("\x62\xf3\x75\x48\x25\xc2\xff"), 7, "vpternlogd");
    cr_expect_eq(WIDE("\x0f\x1f\x84\0\1\2\3\4"), 8);
    cr_expect_eq(WIDE("\x8f\xe8\x78\xc0\xc1\5"), 6, "XOP vprotb");
    cr_expect_eq(WIDE("\x8f\xc0"), 2, "pop");
    cr_expect_eq(WIDE("\x06"), 0, "push %%es has no place in 64-bit mode");
    cr_expect_eq(NARROW("\x06"), 1);
    cr_expect_eq(NARROW("\xea\1\2\3\4\5\6"), 7);
    cr_expect_eq(NARROW("\x40"), 1);
}

Test(elf_x86, never_reads_beyond)
{
    static const uint8_t jump[] = {0x0f, 0x84, 1, 2, 3, 4};
    struct elf_x86 x;
    for (size_t n = 0; n < sizeof jump; n++) {
        uint8_t *exact = malloc(n + (n == 0));
        memcpy(exact, jump, n);
        cr_expect(!elf_x86_decode(exact, n, true, &x), "%zu bytes", n);
        free(exact);
    }
    cr_expect(elf_x86_decode(jump, sizeof jump, true, &x) && x.length == 6 && x.at == 0 && x.opcode == 0x0f &&
              x.second == 0x84 && x.plain);
    uint8_t prefixes[32];
    memset(prefixes, 0x66, sizeof prefixes);
    cr_expect(!elf_x86_decode(prefixes, sizeof prefixes, true, &x), "no instruction is longer than 15 bytes");
}

/* Random bytes: where capstone sees a branch, we see one of the same length; where both decode, nearly all lengths
 * agree (capstone 4 knows neither every EVEX form nor that prefixes don't change every instruction). */
static void compare(bool wide, unsigned seed)
{
    csh handle;
    cr_assert_eq(cs_open(CS_ARCH_X86, wide ? CS_MODE_64 : CS_MODE_32, &handle), CS_ERR_OK);
    cs_insn *i = cs_malloc(handle);
    unsigned both = 0, same = 0;
    srand(seed);
    for (unsigned round = 0; round < rounds(100000); round++) {
        uint8_t bytes[16];
        for (size_t k = 0; k < sizeof bytes; k++) {
            bytes[k] = (uint8_t)(rand() >> 8);
        }
        const uint8_t *p = bytes;
        size_t n = 15;
        uint64_t address = 0x1000;
        struct elf_x86 x;
        if (!cs_disasm_iter(handle, &p, &n, &address, i) || !elf_x86_decode(bytes, 15, wide, &x)) {
            continue;
        }
        both++;
        same += i->size == x.length;
        bool branch = bytes[0] == 0xe8 || bytes[0] == 0xe9 || bytes[0] == 0xeb || (bytes[0] & 0xf0) == 0x70 ||
                      (bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80);
        cr_expect(!branch || i->size == x.length, "seed %u round %u: %s %s", seed, round, i->mnemonic, i->op_str);
    }
    cr_expect_gt(both, rounds(100000) / 2);
    cr_expect_gt(same * 1000ull, both * 995ull, "seed %u: %u of %u lengths agree", seed, same, both);
    cs_free(i, 1);
    cs_close(&handle);
}

Test(elf_x86, lengths_equal_capstone)
{
    compare(true, 20261121);
    compare(false, 20261122);
}
