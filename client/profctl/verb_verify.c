/* profctl verify: everything stored is added up again and compared with the ledger. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "profctl/profctl.h"
#include "profctl/profctl_admin.h"
#include "profctl/profctl_rows.h"
#include "proto/noun.h"

static enum profd_status verdict_print(const char *text, size_t n, struct profd_error *e)
{
    struct rows *whole = NULL, *found = NULL;
    enum profd_status status = rows_parse_object(text, n, &whole, e);
    if (status == PROFD_OK) {
        status = rows_parse(text, n, &found, e);
    }
    if (status != PROFD_OK) {
        rows_free(whole);
        return status;
    }
    uint64_t uploads = rows_number(whole, 0, "uploads"), mismatches = rows_number(whole, 0, "mismatches");
    for (size_t i = 0; i < rows_count(found); i++) {
        puts(rows_text(found, i, "mismatch"));
    }
    if (mismatches > rows_count(found)) {
        printf("and %" PRIu64 " more\n", mismatches - rows_count(found));
    }
    if (mismatches) {
        status = profd_error_set(e, PROFD_MALFORMED, "%" PRIu64 " %s in %" PRIu64 " %s", mismatches,
                                 noun_for(mismatches, "mismatch", "mismatches"), uploads,
                                 noun_for(uploads, "upload", "uploads"));
    } else {
        printf("%" PRIu64 " %s verified, no mismatch\n", uploads, noun_for(uploads, "upload", "uploads"));
    }
    rows_free(whole);
    rows_free(found);
    return status;
}

static enum profd_status verify_run(const struct profctl_call *call, struct profd_error *e)
{
    char *text = NULL;
    size_t n = 0;
    struct rows *whole = NULL;
    enum profd_status status = admin_read(call, "verify", NULL, 0, "verifying", &text, &n, e);
    if (status == PROFD_OK && call->json) {
        status = rows_parse_object(text, n, &whole, e);
        if (status == PROFD_OK) {
            (void)fwrite(text, 1, n, stdout);
            status = rows_number(whole, 0, "mismatches") ? PROFD_MALFORMED : PROFD_OK; /* the document has said it */
        }
        rows_free(whole);
    } else if (status == PROFD_OK) {
        status = verdict_print(text, n, e);
    }
    free(text);
    return status;
}

const struct profctl_verb verb_verify = {
    .name = "verify",
    .arguments = "",
    .summary = "Verify all stored data against the ledger",
    .details = "Prints every difference; exits with 65 if there is one. The daemon does the same by itself, one round "
               "a day.\n",
    .arguments_most = 0,
    .run = verify_run,
};
