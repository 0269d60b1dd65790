/* Remarks about an executable that programs recognise. */
#ifndef PROFD_PROTO_OBJECT_NOTE_H
#define PROFD_PROTO_OBJECT_NOTE_H

/* The beginning of the remark about a stripped file: profctl shows such names as "exported". */
#define OBJECT_NOTE_EXPORTED "Only exported functions have names"

#endif
