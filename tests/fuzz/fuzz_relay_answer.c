/* Input: how many uploads a batch has (first byte), and the body of an answer to it.
 * Law: it is refused with a sentence, or it is about each of these uploads and has sensible numbers. */
#include <stdlib.h>
#include <string.h>

#include "relay/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct batch b;
    static struct batch_answer a;
    struct profd_error e = {""};
    char sentence[64];
    const size_t n = size ? data[0] % 4u : 0;

    b = (struct batch){.upload_count = n};
    for (size_t i = 0; i < n; i++) {
        b.uploads[i].sequence = i + 1;
        memset(b.uploads[i].sender, 'a', sizeof b.uploads[i].sender);
    }
    data += size > 0;
    size -= size > 0;
    if (batch_read_answer(&b, (const char *)data, size, &a, &e)) {
        batch_read_problem((const char *)data, size, sentence, sizeof sentence);
        if (!*e.sentence || strlen(sentence) >= sizeof sentence) {
            abort();
        }
        return 0;
    }
    if (a.wanted_count > BATCH_BUILDS || a.send_count > BATCH_BUILDS || a.wait_ms > INT64_MAX) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        if (a.results[i].outcome >= BATCH_OUTCOMES || a.results[i].number > INT64_MAX) {
            abort();
        }
    }
    return 0;
}
