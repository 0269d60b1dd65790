/* Law: whatever the bytes, no read outside them, no endless loop; what comes out names modules that are there, inside
 * them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/attach_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every node of a table of stacks has its own number. */
static void judge_nodes(const struct attach_image *image)
{
    struct attach_cursor cursor = {0};
    struct attach_frame f;
    uint64_t size;
    uint32_t slots, number, before = 0;
    while (attach_table_next(image, &cursor, &size)) {
        bool stacks = attach_table_kind(image, &cursor, &slots) == ATTACH_KIND_STACKS;
        for (uint32_t i = 0; i < slots && stacks; i++) {
            enum attach_there there = attach_node_get(image, &cursor, i, &number, &f);
            if (number <= before || number > image->nodes || (there == ATTACH_THERE && f.parent > ATTACH_NODES_MAX)) {
                abort();
            }
            before = number;
        }
    }
}

/* Inputs are short: pages are filled with 256 bytes each. The first 512 bytes are the header. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attach_image image;
    struct attach_cursor cursor = {0};
    struct attach_count c;
    struct attach_module m;
    size_t pages = size / 512, at = 0, n;
    unsigned letters = 0;
    uint64_t found = 0, used;
    const char *name, *value;
    bool bad;
    if (pages < 1 || pages > 64) {
        return 0;
    }
    uint8_t *bytes = calloc(pages, ATTACH_PAGE);
    if (!bytes) {
        return 0;
    }
    for (size_t i = 0; i < pages; i++) {
        memcpy(bytes + i * ATTACH_PAGE, data + i * 512, 512);
    }
    attach_measure(bytes, pages * ATTACH_PAGE, ATTACH_SIZE_MIN, &used, NULL);
    if (attach_parse(bytes, pages * ATTACH_PAGE, &image, NULL) == PROFD_OK) {
        while (attach_count_next(&image, &cursor, &c)) {
            found++;
            if (c.count == 0 || c.count > INT64_MAX) {
                abort();
            }
            if (c.self_module != ATTACH_MODULE_NONE && attach_module_get(&image, c.self_module, &m, &bad) &&
                (c.self < m.low || c.self >= m.high)) {
                abort();
            }
        }
        if (found > image.slots) {
            abort();
        }
        judge_nodes(&image);
        for (uint32_t id = 0; id <= image.module_count; id++) {
            if (attach_module_get(&image, id, &m, &bad)) {
                for (size_t i = 0; i < m.name_size; i++) {
                    letters += (unsigned char)m.name[i]; /* all of them can be read */
                }
            }
        }
        while (attach_label_next(&image, &at, &name, &n, &value, &bad)) {
            if (at > image.labels_size) {
                abort();
            }
        }
    }
    free(bytes);
    return letters == UINT32_MAX;
}
