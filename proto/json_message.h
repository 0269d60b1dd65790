/* Converts protobuf messages to JSON and back by protobuf's JSON mapping, with the tables that protoc-c generates. */
#ifndef PROFD_PROTO_JSON_MESSAGE_H
#define PROFD_PROTO_JSON_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "proto/status.h"

/* Reads n bytes of JSON. A field has its own name, or this name in lowerCamelCase. Unknown fields are skipped, and null
 * is an absent field. Integers of 64 bits may be strings, enums are names or numbers, and bytes are base64. An empty
 * text is an empty message. On OK the caller frees *out with protobuf_c_message_free_unpacked(*out, NULL).
 * TOO_LARGE: there are more than `most` values. This is checked before memory is taken. MALFORMED: names the field. */
enum profd_status json_message_decode(const ProtobufCMessageDescriptor *d, const char *text, size_t n, size_t most,
                                      ProtobufCMessage **out, struct profd_error *e);

/* Makes a text of the message: fields in lowerCamelCase, integers of 64 bits as strings, enums by name, fields without
 * a value left out. Bytes of texts that are not UTF-8 become U+FFFD. *text is a new block of *n bytes. NO_MEMORY or OK.
 */
enum profd_status json_message_encode(const ProtobufCMessage *m, char **text, size_t *n, struct profd_error *e);

#endif
