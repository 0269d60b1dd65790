#include "elf/elf_scan.h"

/* Sign-extends the low bits of value, times 4. */
static uint64_t words(uint32_t value, unsigned bits)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);
    uint64_t low = value & ((UINT64_C(1) << bits) - 1);
    return ((low ^ sign) - sign) << 2;
}

void elf_scan_arm64(struct elf_arcs *a, const GElf_Shdr *s, const uint8_t *bytes)
{
    uint64_t skew = s->sh_addr & 3 ? 4 - (s->sh_addr & 3) : 0;
    for (uint64_t at = skew; at < s->sh_size && s->sh_size - at >= 4 && !a->full; at += 4) {
        uint32_t w;
        memcpy(&w, bytes + at, 4);
        w = le32toh(w); /* instructions are little-endian whatever the data is */
        struct elf_branch b = {.from = s->sh_addr + at, .length = 4};
        if ((w & 0x7c000000) == 0x14000000) { /* b, bl */
            b.call = (w & 0x80000000) != 0;
            b.to = b.from + words(w, 26);
        } else if ((w & 0xff000010) == 0x54000000 || (w & 0x7e000000) == 0x34000000) { /* b.cond, cbz, cbnz */
            b.to = b.from + words(w >> 5, 19);
        } else if ((w & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
            b.to = b.from + words(w >> 5, 14);
        } else {
            continue;
        }
        elf_scan_branch(a, &b, bytes + at);
    }
}
