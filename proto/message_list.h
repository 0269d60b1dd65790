/* Every type of message once. From this list come the numbers of frames (frame.h), the structures (message.h), and the
 * translation from and to protobuf (message.c). */
#ifndef PROFD_PROTO_MESSAGE_LIST_H
#define PROFD_PROTO_MESSAGE_LIST_H

/* MESSAGE(NAME, number, member, Type, fields): a type with the protobuf message Type as its payload. member is its name
 * in struct message and, as the protobuf compiler spells it, in generated functions. EMPTY(NAME, number): a type
 * without payload. Numbers are never reused. Meaning and size of each field: profd.proto; fields have the same names
 * there.
 *
 * U32, U64, FLAG, TEXT and BYTES(name) are one value; FLAG is a bool; TEXT is never NULL. BUILDS, LABELS, TEXTS and
 * NUMBERS(count, name) are an array and its length.
 *
 * A further type needs a row here, its message in profd.proto, and profd-protocol(7). If a client sends it: a row in
 * requests/handlers.c, and in client/lib/client.c the answers that settle it. tests/integration/wire.py lists the types
 * by number. */
#define MESSAGE_LIST(MESSAGE, EMPTY, U32, U64, FLAG, TEXT, BYTES, BUILDS, LABELS, TEXTS, NUMBERS)                      \
    /* client → daemon: versions, name of the program */                                                             \
    MESSAGE(HELLO, 1, hello, Hello, U32(version_oldest) U32(version_newest) TEXT(client))                              \
    /* daemon → client: version chosen, limits; the run of the daemon, and what it refused in this run */            \
    MESSAGE(WELCOME, 2, welcome, Welcome,                                                                              \
            U32(version) U32(payload_max) U32(in_flight_max) TEXT(daemon) U64(run) U64(refused) FLAG(claims))          \
    /* client → daemon: one upload; process of size 0: this is all that its process sends */                         \
    MESSAGE(UPLOAD, 3, upload, Upload,                                                                                 \
            BYTES(sender) U32(sequence) U64(start) U64(end) U32(program) BUILDS(build_count, builds)                   \
                LABELS(label_count, labels) BYTES(counts) U32(inexact) U32(processes_started) TEXT(host)               \
                    BYTES(process) FLAG(claimed) U32(uid) U32(kind) BYTES(shares) U64(uploads)                         \
                        NUMBERS(group_count, processes) U64(ended) TEXT(boot) BYTES(checksum))                         \
    /* daemon → client: committed and fsynced; run and refused are those of a SYNC */                                \
    MESSAGE(ACK, 4, ack, Ack, FLAG(duplicate) U64(run) U64(refused))                                                   \
    /* both directions: status and sentence; tag 0: for the connection as a whole */                                   \
    MESSAGE(NACK, 5, nack, Nack, U32(status) FLAG(retry) U32(retry_after_ms) TEXT(sentence))                           \
    /* daemon → client: please send the executable of this build */                                                  \
    MESSAGE(WANT_OBJECT, 6, want_object, WantObject, TEXT(build_id) TEXT(name))                                        \
    /* client → daemon: descriptors of it */                                                                         \
    MESSAGE(OBJECT, 7, object, Object, TEXT(build_id) TEXT(name) FLAG(claimed) U32(uid) FLAG(code))                    \
    /* client → daemon: cannot send it, and why */                                                                   \
    MESSAGE(DECLINE, 8, decline, Decline, TEXT(build_id) TEXT(reason))                                                 \
    /* client → daemon: path?parameters of the HTTP interface */                                                     \
    MESSAGE(QUERY, 9, query, Query, TEXT(target) TEXT(if_none_match))                                                  \
    /* daemon → client: a piece of the answer; LAST ends it */                                                       \
    MESSAGE(REPLY, 10, reply, Reply, U32(http_status) TEXT(content_type) TEXT(etag) BYTES(body) U64(done) U64(total))  \
    /* client → daemon: ACK when all before is durable and parsed */                                                 \
    EMPTY(SYNC, 11)                                                                                                    \
    /* client → daemon: the memory a live process counts in */                                                       \
    EMPTY(ATTACH, 12)                                                                                                  \
    /* client → daemon: administrative command; REPLY answers */                                                     \
    MESSAGE(ADMIN, 13, admin, Admin, TEXT(verb) TEXTS(argument_count, arguments))                                      \
    /* relay → daemon: the next sealed segment; incarnation of size 0: the centre has not answered */                \
    MESSAGE(FETCH, 14, fetch, Fetch,                                                                                   \
            BYTES(incarnation) U64(backup) U64(after) U64(through) TEXT(error) FLAG(went_back) U64(number)             \
                BYTES(centre) U64(moves))                                                                              \
    /* daemon → relay: a sealed segment; id 0: there is none */                                                      \
    MESSAGE(SEGMENT, 15, segment, Segment,                                                                             \
            U64(id) BYTES(epoch) U64(sequence) BYTES(segment) U64(through) U64(number) U64(held) U64(oldest)           \
                BYTES(centre) BYTES(incarnation) U64(moves))                                                           \
    /* relay → daemon: the centre has committed a segment; ACK answers */                                            \
    MESSAGE(ACKNOWLEDGE, 16, acknowledge, Acknowledge,                                                                 \
            BYTES(epoch) U64(sequence) BYTES(incarnation) U64(number) U32(outcome))                                    \
    /* relay → daemon: a piece of the parsed object that names functions here */                                     \
    MESSAGE(FETCH_OBJECT, 17, fetch_object, FetchObject, TEXT(build_id) U64(offset))                                   \
    /* daemon → relay: hash of size 0: there is none */                                                              \
    MESSAGE(PARSED, 18, parsed, Parsed, BYTES(hash) U64(size) BYTES(piece))

#endif
