/* The text of /proc/PID/cgroup, a NUL, and the name of a kubelet's link. Laws: every value is a valid label, and only a
 * container whose group root made has a pod. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/label.h"
#include "proto/place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct process_place p;
    char *text = malloc(size + 1);
    if (!text) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    const size_t n = strlen(text);
    char *link = strdup(n < size ? text + n + 1 : "");
    place_parse(place_find_path(text), &p);
    (void)(link && place_parse_link(link, &p));
    for (unsigned i = 0; i < PLACE_COUNT; i++) {
        if (label_check(place_get_name(i), place_get_value(&p, i), NULL) != PROFD_OK) {
            abort();
        }
    }
    if (p.k8s_pod_uid[0] && (!p.by_root || p.unit[0] == '@' || !p.container_id[0])) {
        abort();
    }
    free(link);
    free(text);
    return 0;
}
