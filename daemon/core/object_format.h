/* The stored form of an object, version 2; in version 1 symbols have no UNLISTED. Varints (proto/varint.h) unless said
 * otherwise: 3 magic bytes and the version; id, variant: length and bytes; machine; bits; flags; executable_start;
 * etext; note; names; symbols: count, then per symbol address (zigzag difference to the one before), size, name
 * (likewise), demangled − name (zigzag), file (zigzag difference to the one before), line, bind | type << 2 | flags <<
 * 5; ranges: count, then kind, low, high − low;   plt: count, then address (difference), size, import; arcs: count,
 * then from (difference), import << 1 | kind, and to − from (zigzag), or plain to if there is an import. */
#ifndef PROFD_CORE_OBJECT_FORMAT_H
#define PROFD_CORE_OBJECT_FORMAT_H

#include <stdint.h>

static const uint8_t object_magic[3] = {'P', 'F', 'O'};

#define OBJECT_VERSION_BY_NAME 1u
#define OBJECT_VERSION 2u

#define OBJECT_FLAG_BIG_ENDIAN 1u
#define OBJECT_FLAG_POSITION_INDEPENDENT 2u
#define OBJECT_FLAG_HAS_NAMES 4u
#define OBJECT_FLAG_ONLY_DYNAMIC 8u
#define OBJECT_FLAG_HAS_EXECUTABLE_START 16u
#define OBJECT_FLAG_HAS_ETEXT 32u
#define OBJECT_FLAGS_KNOWN 63u

/* Fewest bytes of one row: a count above bytes left / this is a lie, refused before memory is taken. */
#define OBJECT_SYMBOL_BYTES 7u
#define OBJECT_RANGE_BYTES 3u
#define OBJECT_PLT_BYTES 3u
#define OBJECT_ARC_BYTES 3u

#endif
