#include "elf/elf_internal.h"

/* What follows an opcode. One letter each:
 *   .  nothing          m  ModRM             b  imm8             w  imm16          z  imm16/32 by operand size
 *   B  ModRM imm8       Z  ModRM imm16/32    v  imm16/32/64      a  an address     j  branch offset, 32 bits
 *   e  imm16 imm8       t  ModRM, imm8 if its reg field is 0–1   T  the same with imm16/32
 *   f  far pointer (32-bit only)   1  one byte, 32-bit only   2  imm8, 32-bit only   3  ModRM imm8, 32-bit only
 *   p  prefix           r  REX or inc/dec    x  escape           -  invalid        c  ModRM without memory form */
static const char one_byte[257] = "mmmmbz11mmmmbz1xmmmmbz11mmmmbz11"
                                  "mmmmbzp1mmmmbzp1mmmmbzp1mmmmbzp1"
                                  "rrrrrrrrrrrrrrrr................"
                                  "11xmppppzZbB....bbbbbbbbbbbbbbbb"
                                  "BZ3Bmmmmmmmmmmmx..........f....."
                                  "aaaa....bz......bbbbbbbbvvvvvvvv"
                                  "BBw.xxBZe.w..b1.mmmm221.mmmmmmmm"
                                  "bbbbbbbbjjfb....p.pp..tT......mm";
static const char two_bytes[257] = "mmmm-.....-.-m.Bmmmmmmmmmmmmmmmm"
                                   "cccc----mmmmmmmm........x-x-----"
                                   "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
                                   "mmmmmmmmmmmmmmmmBBBBmmm.mm--mmmm"
                                   "jjjjjjjjjjjjjjjjmmmmmmmmmmmmmmmm"
                                   "...mBm--...mBmmmmmmmmmmmmmBmmmmm"
                                   "mmBmBBBm........mmmmmmmmmmmmmmmm"
                                   "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm";

/* The instruction being decoded. */
struct cursor {
    const uint8_t *p;
    size_t n, at, address;
    bool wide, operand16, address_override, rex_w;
    bool failed;
};

static uint8_t next_byte(struct cursor *c)
{
    if (c->at >= c->n || c->at >= 15) {
        c->failed = true;
        return 0;
    }
    return c->p[c->at++];
}

static void skip(struct cursor *c, size_t n)
{
    c->at += n;
    if (c->at > c->n || c->at > 15) {
        c->failed = true;
    }
}

/* Reads ModRM, SIB and displacement; returns ModRM. */
static uint8_t skip_operand(struct cursor *c)
{
    uint8_t modrm = next_byte(c), mod = modrm >> 6, rm = modrm & 7;
    if (mod == 3) {
        return modrm;
    }
    if (!c->wide && c->address_override) {
        skip(c, mod == 1 ? 1 : mod == 2 || rm == 6 ? 2 : 0);
        return modrm;
    }
    uint8_t base = rm == 4 ? next_byte(c) & 7 : rm;
    c->address = mod == 0 && base == 5 ? c->at : 0;
    skip(c, mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0);
    return modrm;
}

static size_t immediate(const struct cursor *c)
{
    return c->operand16 && !c->rex_w ? 2 : 4;
}

static void only_narrow(struct cursor *c, size_t n)
{
    if (c->wide) {
        c->failed = true;
    } else {
        skip(c, n);
    }
}

/* Skips the operand after ModRM, for the letters that have one. */
static void skip_with_modrm(struct cursor *c, char kind)
{
    uint8_t reg = skip_operand(c) >> 3 & 7;
    switch (kind) {
    case 'B':
        skip(c, 1);
        break;
    case '3':
        only_narrow(c, 1);
        break;
    case 'Z':
        skip(c, immediate(c));
        break;
    case 't':
        skip(c, reg < 2 ? 1 : 0);
        break;
    case 'T':
        skip(c, reg < 2 ? immediate(c) : 0);
        break;
    default:
        break;
    }
}

static void skip_rest(struct cursor *c, char kind)
{
    switch (kind) {
    case '.':
        break;
    case 'm':
    case 'B':
    case '3':
    case 'Z':
    case 't':
    case 'T':
        skip_with_modrm(c, kind);
        break;
    case 'c':
    case 'b':
        skip(c, 1);
        break;
    case 'w':
        skip(c, 2);
        break;
    case 'e':
        skip(c, 3);
        break;
    case 'z':
        skip(c, immediate(c));
        break;
    case 'v':
        skip(c, c->rex_w ? 8 : immediate(c));
        break;
    case 'a':
        skip(c, c->wide ? (c->address_override ? 4 : 8) : (c->address_override ? 2 : 4));
        break;
    case 'j':
        skip(c, !c->wide && c->operand16 ? 2 : 4);
        break;
    case 'f':
        only_narrow(c, immediate(c) + 2);
        break;
    case '1':
        only_narrow(c, 0);
        break;
    case '2':
        only_narrow(c, 1);
        break;
    default:
        c->failed = true;
    }
}

/* Vector encodings: payload bytes, then an opcode of map 1, 2, 3 (or 5, 6 in EVEX; 8–10 in XOP). */
static void skip_vector(struct cursor *c, unsigned map)
{
    uint8_t opcode = next_byte(c);
    if (map == 1 && opcode == 0x77) {
        return;
    }
    skip_operand(c);
    bool byte = map == 3 || map == 8 || (map == 1 && two_bytes[opcode] == 'B');
    skip(c, byte ? 1 : map == 10 ? 4 : 0);
    if (map == 0 || map == 4 || map == 7 || map > 10) {
        c->failed = true;
    }
}

/* 0x62, 0x8f, 0xc4, 0xc5: vector prefixes, or an older instruction by the next byte. True if it was a vector
 * instruction. */
static bool skip_escape(struct cursor *c, uint8_t opcode)
{
    uint8_t first = c->at < c->n ? c->p[c->at] : 0;
    if (opcode == 0x8f ? (first & 31) < 8 : !c->wide && first < 0xc0) {
        skip_rest(c, 'm'); /* pop, bound, les, lds */
        return false;
    }
    if (opcode == 0xc5) {
        skip(c, 1);
        skip_vector(c, 1);
    } else if (opcode == 0x62) {
        skip(c, 3);
        skip_vector(c, first & 7);
    } else {
        skip(c, 2);
        skip_vector(c, first & 31);
    }
    return true;
}

static void skip_two_bytes(struct cursor *c)
{
    uint8_t opcode = next_byte(c);
    if (opcode == 0x38 || opcode == 0x3a) {
        next_byte(c);
        skip_rest(c, opcode == 0x38 ? 'm' : 'B');
    } else {
        skip_rest(c, two_bytes[opcode]);
    }
}

/* Skips prefixes and returns the opcode. A REX prefix is effective only directly before it. */
static uint8_t read_opcode(struct cursor *c)
{
    for (;;) {
        uint8_t byte = next_byte(c);
        char kind = one_byte[byte];
        if (c->failed) {
            return 0;
        }
        if (kind == 'p') {
            c->operand16 |= byte == 0x66;
            c->address_override |= byte == 0x67;
            c->rex_w = false;
        } else if (kind == 'r' && c->wide) {
            c->rex_w = (byte & 8) != 0;
        } else {
            return byte;
        }
    }
}

bool elf_x86_decode(const uint8_t *p, size_t n, bool wide, struct elf_x86 *out)
{
    struct cursor c = {.p = p, .n = n, .wide = wide};
    uint8_t opcode = read_opcode(&c);
    if (c.failed) {
        return false;
    }
    size_t at = c.at - 1;
    bool plain = true;
    if (opcode == 0x0f) {
        skip_two_bytes(&c);
    } else if (one_byte[opcode] == 'x') {
        plain = !skip_escape(&c, opcode);
    } else if (one_byte[opcode] != 'r') {
        skip_rest(&c, one_byte[opcode]);
    }
    if (c.failed) {
        return false;
    }
    *out = (struct elf_x86){.length = (uint8_t)c.at,
                            .at = (uint8_t)at,
                            .opcode = opcode,
                            .address = (uint8_t)c.address,
                            .second = at + 1 < c.at ? p[at + 1] : 0,
                            .plain = plain};
    return true;
}
