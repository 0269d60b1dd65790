/* Reason phrases of HTTP statuses (RFC 9110, 15): in the status line, and as titles of problem documents. */
#ifndef PROFD_PROTO_HTTP_PHRASE_H
#define PROFD_PROTO_HTTP_PHRASE_H

/* "Not Found" for 404; "Error" for a status that profd does not send. Static. */
const char *http_phrase(int http_status);

#endif
