/* Messages about programs that a process under profctl run starts and that cannot be counted. Each is a datagram to the
 * abstract Unix socket that the environment variable PROFD_RUN names: one of these bytes, then the program's file. */
#ifndef PROFD_PROTO_UNCOUNTED_H
#define PROFD_PROTO_UNCOUNTED_H

#define UNCOUNTED_FILE 'f'        /* the file says why: set-user-id, static, another C library or machine */
#define UNCOUNTED_ROOT 'r'        /* the process changed its root, where the collector is not found */
#define UNCOUNTED_ENVIRONMENT 'e' /* its environment has no LD_PRELOAD with the collector */

/* Of the collector's path in LD_PRELOAD, behind a directory that only glibc's loader finds: up to the root directory,
 * beyond which more steps are harmless. The collector leaves it out of its own name. */
#define UNCOUNTED_TO_ROOT "/../../../../../../.."

#endif
