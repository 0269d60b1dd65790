/* Lengths of those x86-64 instructions that compilers emit before a call of mcount. */
#include "client/collect/rewrite_find.h"

#include <stdbool.h>

/* The operand after an opcode. UNKNOWN also stands for all instructions that branch. */
enum form { UNKNOWN, NOTHING, BYTE, WORD, MODRM, MODRM_BYTE, MODRM_WORD, GROUP3_BYTE, GROUP3_WORD, GROUP5, IMMEDIATE };

struct prefixes {
    bool narrow; /* 66: immediates of 2 bytes */
    bool wide;   /* REX.W */
};

static enum form form_one(uint8_t op)
{
    if (op < 0x40) {
        return (op & 7) < 4 ? MODRM : (op & 7) == 4 ? BYTE : (op & 7) == 5 ? WORD : UNKNOWN;
    }
    if ((op >= 0x50 && op <= 0x5f) || op == 0x90 || op == 0x98 || op == 0x99) {
        return NOTHING;
    }
    if ((op >= 0x70 && op <= 0x7f) || op == 0x6a || op == 0xa8 || (op >= 0xb0 && op <= 0xb7)) {
        return BYTE;
    }
    if (op == 0x68 || op == 0xa9) {
        return WORD;
    }
    if (op >= 0xb8 && op <= 0xbf) {
        return IMMEDIATE;
    }
    if (op == 0x63 || (op >= 0x84 && op <= 0x8e) || (op >= 0xd0 && op <= 0xd3) || op == 0xfe) {
        return MODRM;
    }
    if (op == 0x6b || op == 0x80 || op == 0x83 || op == 0xc0 || op == 0xc1 || op == 0xc6) {
        return MODRM_BYTE;
    }
    if (op == 0x69 || op == 0x81 || op == 0xc7) {
        return MODRM_WORD;
    }
    return op == 0xf6 ? GROUP3_BYTE : op == 0xf7 ? GROUP3_WORD : op == 0xff ? GROUP5 : UNKNOWN;
}

/* Opcodes after 0f, and in the first map of VEX and EVEX. */
static enum form form_two(uint8_t op)
{
    if (op == 0x0d || (op >= 0x10 && op <= 0x1f) || (op >= 0x28 && op <= 0x2f) || (op >= 0x40 && op <= 0x6f)) {
        return MODRM;
    }
    if ((op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
        (op >= 0xc4 && op <= 0xc6)) {
        return MODRM_BYTE;
    }
    if ((op >= 0x74 && op <= 0x76) || (op >= 0x7c && op <= 0x7f) || (op >= 0x90 && op <= 0x9f)) {
        return MODRM;
    }
    if (op >= 0x80 && op <= 0x8f) {
        return WORD;
    }
    if (op == 0x77 || (op >= 0xc8 && op <= 0xcf)) {
        return NOTHING;
    }
    if (op == 0xa3 || op == 0xa5 || op == 0xab || op == 0xad || op == 0xae || op == 0xaf || op == 0xb0 || op == 0xb1 ||
        op == 0xb3 || (op >= 0xb6 && op <= 0xb8) || (op >= 0xbb && op <= 0xbf) || op == 0xc0 || op == 0xc1 ||
        op == 0xc3 || op >= 0xd0) {
        return op == 0xff ? UNKNOWN : MODRM;
    }
    return UNKNOWN;
}

static enum form form_map(unsigned map, uint8_t op)
{
    return map == 1 ? form_two(op) : map == 2 ? MODRM : map == 3 ? MODRM_BYTE : UNKNOWN;
}

/* Length of ModRM, SIB and displacement; 0 if they do not end before end. */
static unsigned modrm_length(const uint8_t *code, const uint8_t *end)
{
    if (code >= end) {
        return 0;
    }
    unsigned mod = *code >> 6, rm = *code & 7, n = 1;
    if (mod == 3) {
        return n;
    }
    if (rm == 4) {
        if (end - code < 2) {
            return 0;
        }
        if ((code[1] & 7) == 5 && mod == 0) {
            n += 4;
        }
        n++;
    } else if (rm == 5 && mod == 0) {
        n += 4;
    }
    return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* Length of the bytes after the opcode at code − 1. False: unknown. */
static bool form_length(enum form form, const uint8_t *code, const uint8_t *end, struct prefixes p, unsigned *out)
{
    unsigned word = p.narrow && !p.wide ? 2 : 4, n = 0, reg = code < end ? *code >> 3 & 7 : 0;
    if (form >= MODRM && form <= GROUP5) {
        n = modrm_length(code, end);
        if (n == 0) {
            return false;
        }
    }
    switch (form) {
    case BYTE:
    case MODRM_BYTE:
        n += 1;
        break;
    case WORD:
    case MODRM_WORD:
        n += word;
        break;
    case IMMEDIATE:
        n += p.wide ? 8 : word;
        break;
    case GROUP3_BYTE:
        n += reg < 2 ? 1 : 0;
        break;
    case GROUP3_WORD:
        n += reg < 2 ? word : 0;
        break;
    case GROUP5:
        if (reg != 0 && reg != 1 && reg != 6) { /* inc, dec, push; the others call and jump */
            return false;
        }
        break;
    case UNKNOWN:
        return false;
    default:
        break;
    }
    *out = n;
    return true;
}

unsigned rewrite_decode_length(const uint8_t *code, const uint8_t *end)
{
    struct prefixes p = {false, false};
    const uint8_t *at = code;
    enum form form;
    unsigned n = 0;
    for (; at < end && at - code < 14; at++) {
        if (*at == 0x66) {
            p.narrow = true;
        } else if (*at != 0xf0 && *at != 0xf2 && *at != 0xf3 && *at != 0x2e && *at != 0x36 && *at != 0x3e &&
                   *at != 0x26 && *at != 0x64 && *at != 0x65) {
            break;
        }
    }
    if (at < end && (*at & 0xf0) == 0x40) {
        p.wide = (*at++ & 8) != 0;
    }
    if (at >= end) {
        return 0;
    }
    if (*at == 0xc4 || *at == 0xc5 || *at == 0x62) {
        unsigned head = *at == 0xc5 ? 3 : *at == 0xc4 ? 4 : 5; /* VEX of two and three bytes, EVEX, and the opcode */
        if (end - at < (long)head) {
            return 0;
        }
        form = form_map(head == 3 ? 1 : head == 4 ? at[1] & 31u : at[1] & 7u, at[head - 1]);
        at += head;
        p.narrow = p.wide = false;
    } else if (*at == 0x0f && end - at >= 3 && (at[1] == 0x38 || at[1] == 0x3a)) {
        form = form_map(at[1] == 0x38 ? 2 : 3, at[2]);
        at += 3;
    } else if (*at == 0x0f && end - at >= 2) {
        bool jump = at[1] >= 0x80 && at[1] <= 0x8f;
        form = p.narrow && jump ? UNKNOWN : form_two(at[1]); /* processors differ on the meaning of 66 before a jump */
        at += 2;
    } else {
        form = form_one(*at++);
    }
    if (!form_length(form, at, end, p, &n) || n > (uintptr_t)(end - at) || (uintptr_t)(at - code) + n > 15) {
        return 0;
    }
    return (unsigned)(at - code) + n;
}
