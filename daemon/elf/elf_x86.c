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
struct x86_cursor {
    const uint8_t *p;
    size_t n, at, address;
    bool wide, operand16, address_override, rex_w;
    bool failed;
};

static uint8_t next_byte(struct x86_cursor *c)
{
    if (c->at >= c->n || c->at >= 15) {
        c->failed = true;
        return 0;
    }
    return c->p[c->at++];
}

static void skip(struct x86_cursor *c, size_t n)
{
    c->at += n;
    if (c->at > c->n || c->at > 15) {
        c->failed = true;
    }
}

/* Reads ModRM, SIB and displacement; returns ModRM. */
static uint8_t skip_operand(struct x86_cursor *c)
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

static size_t immediate(const struct x86_cursor *c)
{
    return c->operand16 && !c->rex_w ? 2 : 4;
}

static void only_narrow(struct x86_cursor *c, size_t n)
{
    if (c->wide) {
        c->failed = true;
    } else {
        skip(c, n);
    }
}

static void skip_rest(struct x86_cursor *c, char kind)
{
    uint8_t reg;
    switch (kind) {
    case '.':
        break;
    case 'm':
        skip_operand(c);
        break;
    case 'B':
        skip_operand(c);
        skip(c, 1);
        break;
    case '3':
        skip_operand(c);
        only_narrow(c, 1);
        break;
    case 'Z':
        skip_operand(c);
        skip(c, immediate(c));
        break;
    case 't':
        reg = skip_operand(c) >> 3 & 7;
        skip(c, reg < 2 ? 1 : 0);
        break;
    case 'T':
        reg = skip_operand(c) >> 3 & 7;
        skip(c, reg < 2 ? immediate(c) : 0);
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
static void skip_vector(struct x86_cursor *c, unsigned map)
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

/* 0x62, 0x8f, 0xc4, 0xc5: the next byte decides between a vector prefix and an older instruction. Returns whether it
 * was a vector instruction. */
static bool skip_escape(struct x86_cursor *c, uint8_t opcode)
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

bool elf_x86_decode(const uint8_t *p, size_t n, bool wide, struct elf_x86 *out)
{
    struct x86_cursor c = {.p = p, .n = n, .wide = wide};
    uint8_t opcode = next_byte(&c);
    char kind;
    for (; (kind = one_byte[opcode]) == 'p' || (kind == 'r' && wide); opcode = next_byte(&c)) {
        /* A REX prefix is effective only directly before the opcode. */
        c.rex_w = kind == 'r' && (opcode & 8) != 0;
        c.operand16 |= opcode == 0x66;
        c.address_override |= opcode == 0x67;
    }
    if (c.failed) {
        return false;
    }
    const size_t at = c.at - 1;
    bool plain = true;
    if (opcode == 0x0f) {
        const uint8_t second = next_byte(&c);
        if (second == 0x38 || second == 0x3a) {
            next_byte(&c);
            skip_rest(&c, second == 0x38 ? 'm' : 'B');
        } else {
            skip_rest(&c, two_bytes[second]);
        }
    } else if (kind == 'x') {
        plain = !skip_escape(&c, opcode);
    } else if (kind != 'r') {
        skip_rest(&c, kind);
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
