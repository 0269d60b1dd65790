/* What a centre, its signer and the hosts that enrol there must agree on. A token is the prefix and, as base64url, the
 * pin of the CA (SHA-256 of its public key) and a secret. */
#ifndef PROFD_PROTO_ENROLMENT_H
#define PROFD_PROTO_ENROLMENT_H

#define ENROLMENT_TOKEN_PREFIX "profd1-"
#define ENROLMENT_PIN_SIZE 32
#define ENROLMENT_SECRET_SIZE 25      /* with the pin a multiple of 3: no padding */
#define ENROLMENT_CERTIFICATE_DAYS 30 /* that the certificate of a host is valid */
#define ENROLMENT_RENEW_DAYS 10       /* before its end a host shall renew it */

#endif
