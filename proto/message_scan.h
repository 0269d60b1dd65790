/* A first look at protobuf bytes, before memory is taken for what they say. Private to proto/message*. */
#ifndef PROFD_PROTO_MESSAGE_SCAN_H
#define PROFD_PROTO_MESSAGE_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "proto/status.h"

#define MESSAGE_SCAN_NUMBERS 16 /* field numbers counted one by one */
#define MESSAGE_FIELDS_MAX 8192 /* fields of one message and its submessages: all builds and labels twice over */

struct message_scan {
    size_t fields;                          /* with those of submessages */
    size_t of_number[MESSAGE_SCAN_NUMBERS]; /* occurrences of each field of the message itself */
};

/* Walks the fields of a message and of its submessages (one level). MALFORMED: bytes that are not protobuf, a string
 * that is not UTF-8 or holds a NUL; the sentence names the field. Counting goes on beyond every limit. O(n), takes no
 * memory. */
enum profd_status message_scan(const ProtobufCMessageDescriptor *descriptor, const uint8_t *in, size_t n,
                               struct message_scan *scan, struct profd_error *e);

#endif
