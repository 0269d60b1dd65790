/* Sizes and tags of gmon.out that reader and writer share. Private to proto/gmon*. */
#ifndef PROFD_PROTO_GMON_LAYOUT_H
#define PROFD_PROTO_GMON_LAYOUT_H

#define GMON_MAGIC "gmon"
#define GMON_MAGIC_SIZE 4
#define GMON_VERSION 1
#define GMON_HEADER_SIZE 20 /* magic, u32 version, 12 spare bytes */

enum gmon_tag { GMON_TAG_HISTOGRAM = 0, GMON_TAG_ARC = 1, GMON_TAG_BLOCKS = 2 };

#define GMON_DIMENSION_SIZE 15 /* NUL-padded, perhaps without a NUL; an abbreviation follows */
#define GMON_HISTOGRAM_TAIL 24 /* after the two pointers: u32 bins, u32 rate, dimension, abbreviation */
#define GMON_ARC_TAIL 4        /* after the two pointers: u32 count */
#define GMON_BIN_MAX 65535u
#define GMON_ARC_MAX 4294967295u

#endif
