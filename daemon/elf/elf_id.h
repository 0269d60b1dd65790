/* Identity of a file: the GNU build-id of its notes, otherwise the hash of its code (DECISIONS 11); and the hash of its
 * contents. */
#ifndef PROFD_ELF_ELF_ID_H
#define PROFD_ELF_ELF_ID_H

#include <nettle/sha2.h>
#include <stdint.h>

#include "core/object.h"
#include "elf/elf_file.h"
#include "proto/buildid.h"

/* Reads the build-id. NOT_FOUND: no note section or segment contains a build-id of 1–64 bytes. Notes above 1 MiB are
 * skipped. */
enum profd_status elf_id_from_notes(const struct elf_file *f, struct buildid *id, struct profd_error *e);

/* One executable section of the hash over code: u64 address, u64 size (little-endian), bytes. Ascending by address. */
void elf_id_hash_section(struct sha256_ctx *hash, const GElf_Shdr *s, const uint8_t *bytes);

/* The same, of a section inside the file, in pieces: in constant memory. MALFORMED or IO as elf_file_read. */
enum profd_status elf_id_hash_file(struct sha256_ctx *hash, const struct elf_file *f, const GElf_Shdr *s,
                                   struct profd_error *e);

/* Finishes a copy of the hash. MALFORMED if sections is 0: such a file cannot be identified. */
enum profd_status elf_id_from_code(const struct sha256_ctx *hash, uint32_t sections, struct buildid *id,
                                   struct profd_error *e);

/* SHA-256 in hex over the code's hash and the object's symbols (address, size, bind, type, name each). */
void elf_id_variant(const struct sha256_ctx *code, const struct object *o, const char *names, char variant[65]);

#endif
