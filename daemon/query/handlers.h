/* The handlers of the paths; the table is in route.c. Contract: job_handler. */
#ifndef PROFD_QUERY_HANDLERS_H
#define PROFD_QUERY_HANDLERS_H

#include "proto/status.h"
#include "query/job.h"

enum profd_status builds_list(struct job *job, struct profd_error *e);
enum profd_status builds_show(struct job *job, struct profd_error *e);
enum profd_status labels_list(struct job *job, struct profd_error *e);
enum profd_status labels_list_values(struct job *job, struct profd_error *e);
enum profd_status counts_show(struct job *job, struct profd_error *e);
enum profd_status report_show(struct job *job, struct profd_error *e);
enum profd_status function_show(struct job *job, struct profd_error *e);
enum profd_status addresses_show(struct job *job, struct profd_error *e);
enum profd_status callers_show(struct job *job, struct profd_error *e);
enum profd_status series_show(struct job *job, struct profd_error *e);
enum profd_status versions_list(struct job *job, struct profd_error *e);
enum profd_status joined_list(struct job *job, struct profd_error *e);
enum profd_status function_search(struct job *job, struct profd_error *e);
enum profd_status diff_show(struct job *job, struct profd_error *e);
enum profd_status cycles_list(struct job *job, struct profd_error *e);
enum profd_status never_called_show(struct job *job, struct profd_error *e);
enum profd_status groups_show(struct job *job, struct profd_error *e);
/* NOT_FOUND if the request has no processes: its path was written with escapes. */
enum profd_status processes_list(struct job *job, struct profd_error *e);
enum profd_status loads_list(struct job *job, struct profd_error *e);
enum profd_status hosts_list(struct job *job, struct profd_error *e);
enum profd_status openapi_show(struct job *job, struct profd_error *e);

#endif
