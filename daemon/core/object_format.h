/* The stored form of an object. Varints (proto/varint.h) unless said otherwise: 3 magic bytes and the version; id,
 * variant: length and bytes; machine; bits; flags; executable_start; etext; note; names; symbols: count, then per
 * symbol address (zigzag difference to the one before), size, name (likewise), demangled − name (zigzag), file (zigzag
 * difference to the one before), line, bind | type << 2 | flags << 5; ranges: count, then kind, low, high − low; plt:
 * count, then address (difference), size, import; arcs: count, then from (difference), import << 1 | kind, and to −
 * from (zigzag), or plain to if there is an import; returns, then signal returns: count, then differences; code of each
 * symbol; 1 if inlined names are known, else 0; inlined: count, then name (zigzag difference to the one before); lines:
 * count, then bytes, then per line low (difference to the one before), high − low, file and line (zigzag differences);
 * digests: count, then per digest file (zigzag difference) and 16 bytes; instructions: bytes and texts (each
 * NUL-terminated, the first one empty), then count, bytes, and per instruction address (difference to the one before),
 * size, text (zigzag difference to the one before) << 1 | has a target, and if it has one target − address (zigzag). */
#ifndef PROFD_CORE_OBJECT_FORMAT_H
#define PROFD_CORE_OBJECT_FORMAT_H

#include <stdint.h>

static const uint8_t object_magic[3] = {'P', 'F', 'O'};

#define OBJECT_VERSION 1u

#define OBJECT_FLAG_BIG_ENDIAN 1u
#define OBJECT_FLAG_POSITION_INDEPENDENT 2u
#define OBJECT_FLAG_HAS_NAMES 4u
#define OBJECT_FLAG_ONLY_DYNAMIC 8u
#define OBJECT_FLAG_HAS_EXECUTABLE_START 16u
#define OBJECT_FLAG_HAS_ETEXT 32u
#define OBJECT_FLAG_KNOWS_RETURNS 64u
#define OBJECT_FLAGS_KNOWN 127u

/* Fewest bytes of one row: a count above bytes left / this is a lie, refused before memory is taken. */
#define OBJECT_SYMBOL_BYTES 7u
#define OBJECT_RANGE_BYTES 3u
#define OBJECT_PLT_BYTES 3u
#define OBJECT_ARC_BYTES 3u
#define OBJECT_LINE_BYTES 4u
#define OBJECT_FILE_BYTES (1u + OBJECT_DIGEST_BYTES)
#define OBJECT_INSTRUCTION_BYTES 3u

#endif
