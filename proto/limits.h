/* Every limit of size, number and time that the other side can reach. A limit is checked before memory is allocated for
 * what it bounds. */
#ifndef PROFD_PROTO_LIMITS_H
#define PROFD_PROTO_LIMITS_H

/* frames */
#define LIMIT_FRAME_PAYLOAD (64u << 20)     /* bytes after the header */
#define LIMIT_FRAME_SMALL (1u << 20)        /* a larger body waits for the daemon's global budget */
#define LIMIT_BODIES_IN_FLIGHT (256u << 20) /* bytes of bodies the daemon holds for all connections */
#define LIMIT_FRAME_FDS 8u                  /* descriptors one frame may carry */
#define LIMIT_CLOSING_PER_UID                                                                                          \
    256u /* descriptors of one user in an unfinished close(); beyond it the user's connections wait */
#define LIMIT_HELLO_SECONDS 5              /* from accept to a complete HELLO */
#define LIMIT_FRAME_HEADER_SECONDS 2       /* from the first byte of a header to its last */
#define LIMIT_FRAME_SECONDS 10             /* for a body, plus one second per LIMIT_FRAME_RATE bytes */
#define LIMIT_FRAME_RATE (64u << 10)       /* bytes per second that a slow sender must reach */
#define LIMIT_WRITE_SECONDS 10             /* a peer must read some bytes within this time */
#define LIMIT_OUTPUT (16u << 10)           /* unread bytes of a connection's answers; above, it is not read */
#define LIMIT_ANSWERS_PER_UID (128u << 20) /* bytes of answers that one user has not read; above, BUSY */
#define LIMIT_IN_FLIGHT 256u               /* unanswered frames of one connection; then it is not read */

/* connections */
#define LIMIT_CONNECTIONS 12288u
#define LIMIT_CONNECTIONS_PER_UID 10240u
#define LIMIT_HTTP_CONNECTIONS 256u
#define LIMIT_READS_PER_UID 32u /* connections of one user that are read before other events are handled */

/* live processes (ATTACH). Each has a connection, a memory and a handle of the process, and until it is acknowledged a
 * page: three descriptors, then four */
#define LIMIT_ATTACHED 12288u
#define LIMIT_ATTACHED_PER_UID 10240u
#define LIMIT_ATTACHED_KEPT 1024u   /* memories kept by the service manager: their names are one environment variable */
#define LIMIT_HARVESTS_AT_ONCE 128u /* processes that are being read or stored */
#define LIMIT_ATTACH_SNAPSHOTS                                                                                         \
    (64u << 20) /* of all snapshots that are kept in memory, too; the others are read from the store each time */
#define LIMIT_HARVEST_BYTES (128u << 20) /* of counts that are read and not stored yet; then no more are read */

/* uploads */
#define LIMIT_BUILDS 1024u     /* builds of an upload */
#define LIMIT_BUILD_NAME 4096u /* bytes of an object's name */
#define LIMIT_PROCESS 16u      /* bytes that identify a process */
#define LIMIT_LABELS 64u
#define LIMIT_LABEL_NAME 128u                /* bytes */
#define LIMIT_LABEL_VALUE 1024u              /* bytes */
#define LIMIT_LABEL_BYTES 16384u             /* names and values of one upload together */
#define LIMIT_LABEL_VALUES_PER_HOUR 1000u    /* new values of one label that one user may use; then "other" */
#define LIMIT_LABEL_VALUES_OF_TENANT 100000u /* the same of a tenant */
#define LIMIT_HISTOGRAMS 4096u
#define LIMIT_HISTOGRAM_BINS (1u << 30)      /* bins of one geometry, stored or not */
#define LIMIT_BINS (16u << 20)               /* non-zero bins of one upload */
#define LIMIT_ARCS (4u << 20)                /* arcs of one upload */
#define LIMIT_STACK_DEPTH 128u               /* nodes of a stack: 127 return addresses and a program counter */
#define LIMIT_STACK_NODES 65536u             /* of all trees of an upload or a sum */
#define LIMIT_STACK_TREES 64u                /* of an upload or a sum */
#define LIMIT_SUM_ROWS (1u << 19)            /* arcs and bins of a stored sum; each takes 200 bytes of memory */
#define LIMIT_RATE 1000000000u               /* ticks per second */
#define LIMIT_COUNTS_RAW (512u << 20)        /* bytes of an upload's columns once decompressed */
#define LIMIT_CLOCK_PAST_DAYS 7              /* the window of the sender is accepted */
#define LIMIT_CLOCK_FUTURE_MINUTES 5         /* between these, else the time of receipt is used */
#define LIMIT_ID_DAYS 30                     /* upload ids are remembered this long */
#define LIMIT_BUILDS_PER_HOUR_PER_UID 10000u /* builds one user may name for the first time; then BUSY */

/* what a host sends to a centre (segment.h). The limit of rows implies the others: whatever has no more can be sent */
#define LIMIT_SEGMENT_ROWS (1u << 18)     /* bins and arcs, and LIMIT_SEGMENT_HISTOGRAM for each histogram */
#define LIMIT_SEGMENT_HISTOGRAM 64u       /* rows that a histogram counts as */
#define LIMIT_SEGMENT_CONTENT (56u << 20) /* bytes of its counts once decompressed */
#define LIMIT_SEGMENTS_SEALED 512u        /* of one host that the centre has not acknowledged */
#define LIMIT_SEGMENTS_AT_ONCE 8u         /* that are sealed in one transaction */
#define LIMIT_BATCH_UPLOADS 512u          /* of one request of a host */
#define LIMIT_BATCH_BYTES (4u << 20)      /* of these uploads, unless it is one */

/* parsed objects on their way to a centre */
#define LIMIT_PARSED_OBJECT (32u << 20) /* bytes of one */
#define LIMIT_PARSED_PIECE (256u << 10) /* of one message */

/* live processes */
#define LIMIT_ATTACH_RESIDENT                                                                                          \
    (128u << 20)                      /* bytes of one's memory that the daemon holds at a time, or of one table        \
                                       */
#define LIMIT_ATTACH_WHOLE (4u << 20) /* bytes in use that are read at once; else table by table */
#define LIMIT_ATTACH_SLOTS (8u << 20) /* slots that count anything */
#define LIMIT_ATTACH_NEWS (1u << 20)  /* changed slots in one harvest; the others are in the next */

/* executables */
#define LIMIT_OBJECT_BYTES (4ull << 30) /* size of an executable */
#define LIMIT_SYMBOLS 4000000u
#define LIMIT_SYMBOL_NAME 4096u         /* bytes of one name, raw or demangled */
#define LIMIT_NAME_BYTES (512u << 20)   /* of all names of one object */
#define LIMIT_INLINED_BYTES (64u << 20) /* of .debug_info and of .debug_str, for inlined functions */
#define LIMIT_STATIC_ARCS 16000000u
#define LIMIT_RETURNS 16000000u /* return addresses behind calls that are no static arcs */
#define LIMIT_LINES 4000000u    /* ranges of source lines; of a larger table none is kept */
#define LIMIT_SECTIONS 65536u   /* executable sections and segments described */
#define LIMIT_SECTION_NAMES (16u << 20)
#define LIMIT_CODE_BYTES (16u << 20)        /* executable sections of an object; of more no instruction is kept */
#define LIMIT_INSTRUCTION_TEXT 255u         /* bytes of an instruction's text */
#define LIMIT_INSTRUCTION_TEXTS (64u << 20) /* of all different texts of one object */
#define LIMIT_WORKER_CPU_SECONDS 5          /* plus LIMIT_WORKER_CPU_PER_MB_MS per MB of text */
#define LIMIT_WORKER_CPU_PER_MB_MS 200
#define LIMIT_WORKER_MEMORY (512ull << 20)    /* plus twice text and symbols, and debug information */
#define LIMIT_WORKERS 2u                      /* executables read at a time, each of another user */
#define LIMIT_WORKERS_MEMORY (2ull << 30)     /* of all workers that run at a time */
#define LIMIT_WORKER_SMALL_FILE (64ull << 20) /* bytes of a file that can always be parsed beside others */
#define LIMIT_WORKER_MEMORY_SMALL (LIMIT_WORKER_MEMORY + 2 * LIMIT_WORKER_SMALL_FILE)
#define LIMIT_WORKER_MEMORY_MAX                                                                                        \
    (LIMIT_WORKERS_MEMORY - LIMIT_WORKER_MEMORY_SMALL) /* however large text and symbols are */
#define LIMIT_WORKER_HEADERS_MS 10000                  /* by the clock, for a slow file system to deliver the headers */
#define LIMIT_OBJECT_ANSWER (1ull << 30) /* bytes of a worker's answer, which is at most a quarter of its memory */

/* queries */
#define LIMIT_QUERY_BYTES 4096u               /* path and parameters on the Unix socket */
#define LIMIT_QUERY_BODY (1u << 20)           /* bytes of a question that is asked by POST, as sent and decoded */
#define LIMIT_MATCHERS 16u                    /* of one query; each regular expression among them has these: */
#define LIMIT_PATTERN 1024u                   /* bytes of the expression */
#define LIMIT_PATTERN_STEPS 100000u           /* of matching one value */
#define LIMIT_PATTERN_DEPTH 10000u            /* of nested alternatives in matching */
#define LIMIT_PATTERN_KIB 4096u               /* of memory for matching */
#define LIMIT_QUERY_MEMORY (1536ull << 20)    /* bytes of memory for a query of a user who may read everything */
#define LIMIT_QUERY_MEMORY_OWN (384ull << 20) /* and of other users: two at a time must not exhaust the daemon */
#define LIMIT_ROLLUP_CACHE (256u << 20)       /* of sums kept for later queries, for all readers together */
#define LIMIT_REPORT_BYTES (256u << 20)
#define LIMIT_ANSWER_CACHE (64u << 20)    /* bytes of the cache of finished answers */
#define LIMIT_ANSWER_KEPT (4u << 20)      /* of one of them; a larger one is only known by its ETag */
#define LIMIT_ANSWER_AT_ONCE (256u << 10) /* of one that the loop sends without a reader thread */
#define LIMIT_CODING_LEAST 1024u          /* bytes of the smallest answer that is compressed */
#define LIMIT_REPORT_ROWS 100u            /* default rows= of a report that has a limit= */
#define LIMIT_HTTP_ROWS 1000u             /* default limit= of a report over HTTP */
#define LIMIT_WORK 100000000u             /* bins, arcs and functions that one query of many reports may process */
#define LIMIT_STEPS 2000u                 /* into which one query may divide its window */
#define LIMIT_PAGE_DEFAULT 100u
#define LIMIT_PAGE 1000u

/* administration */
#define LIMIT_ADMIN_ARGUMENTS 8u
#define LIMIT_ADMIN_JOBS 16u   /* requests that wait or run, of all connections; then BUSY */
#define LIMIT_MISMATCHES 1000u /* sentences in one answer to verify; the others are counted */

/* HTTP (reference: RFC 9112, a strict subset) */
#define LIMIT_HTTP_LINE 4096u    /* request line */
#define LIMIT_HTTP_HEADERS 8192u /* bytes of the header block */
#define LIMIT_HTTP_FIELDS 64u
#define LIMIT_HTTP_HEADER_SECONDS 2
#define LIMIT_HTTP_REQUESTS 1000u           /* on one connection */
#define LIMIT_HTTP_SECONDS 60               /* life of a connection */
#define LIMIT_HTTP_PUT (256u << 20)         /* bytes of a file */
#define LIMIT_HTTP_PUTS (512u << 20)        /* of memory of all files that are received or handled, one of a token */
#define LIMIT_HTTP_POST (16u << 20)         /* bytes of a POST's body, as it is sent and when it is decoded */
#define LIMIT_HTTP_POSTS (64u << 20)        /* of memory of all bodies of POST that are received or handled */
#define LIMIT_HTTP_POSTS_OF_ONE (32u << 20) /* of those of one token */
#define LIMIT_HTTP_POST_LEAST (256u << 10)  /* for which a smaller body counts: no token has all connections */

/* the sender's side */
#define LIMIT_SPOOL_BYTES (64u << 20)
#define LIMIT_SPOOL_DAYS 7
#define LIMIT_EXIT_MS 250 /* added to a host program's exit */

/* Numbers of users from here on belong to the tenants of a centre. No user of a machine may have one. */
#define LIMIT_UID_TENANTS UINT32_C(0xffff0000)

#endif
