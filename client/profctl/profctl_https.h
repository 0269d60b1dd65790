/* HTTP over TLS, by libcurl: what libprofd leaves to its user (profd_http of profd.h). */
#ifndef PROFD_CLIENT_PROFCTL_HTTPS_H
#define PROFD_CLIENT_PROFCTL_HTTPS_H

#include "profd.h"

/* A profd_http. The context is the name of a file with the certificates of CAs, which stand in place of the system's;
 * NULL: the system's. Certificate and name of the server are always checked; no redirection is followed. UNTRUSTED: the
 * certificate is not that of the server. */
enum profd_status https_ask(void *context, const struct profd_http_request *r, profd_sink sink, void *sink_context,
                            struct profd_error *e);

#endif
