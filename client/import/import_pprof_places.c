/* Converts mappings to objects and locations to frames. */
#include <inttypes.h>
#include <string.h>

#include "import/import_pprof_internal.h"
#include "proto/buildid.h"

struct pprof_string pprof_string_at(const struct pprof *p, uint64_t index)
{
    return index < p->string_count ? p->strings[index] : (struct pprof_string){"", 0};
}

bool pprof_string_is(const struct pprof *p, uint64_t index, const char *text)
{
    struct pprof_string s = pprof_string_at(p, index);
    return s.size == strlen(text) && memcmp(s.text, text, s.size) == 0;
}

/* Addresses outside every mapping's memory are link-time addresses, as some collectors write them. So are all addresses
 * of a mapping that begins at 0, where nothing can be mapped. */
static enum import_addressing addressing_of(const struct pprof_mapping *m)
{
    return (m->start == 0 && m->offset == 0) || m->inside == 0 ? IMPORT_LINK_TIME : IMPORT_IN_FILE;
}

static void count_inside(struct pprof *p)
{
    for (uint32_t i = 0; i < p->location_count; i++) {
        const struct pprof_location *l = &p->locations[i];
        const struct pprof_mapping *found = l->mapping != 0 ? pprof_ids_find(&p->mapping_ids, l->mapping) : NULL;
        struct pprof_mapping *m = found ? &p->mappings[found - p->mappings] : NULL;
        if (m && l->address != 0) {
            *(l->address >= m->start && l->address < m->limit ? &m->inside : &m->outside) += 1;
        }
    }
}

static enum profd_status add_object(struct pprof *p, const struct pprof_mapping *m, struct profd_error *e)
{
    struct pprof_string name = pprof_string_at(p, m->filename), id_text = pprof_string_at(p, m->build_id);
    struct buildid id;
    if (memchr(name.text, '\0', name.size)) {
        return profd_error_set(e, PROFD_MALFORMED, "the file name of mapping %" PRIu64 " contains a NUL", m->id);
    }
    const char *path = import_texts_take(&p->texts, name.text, name.size), *build_id = NULL;
    if (id_text.size > 0 && buildid_parse(id_text.text, id_text.size, &id, NULL) == PROFD_OK) {
        build_id = import_texts_take(&p->texts, id.text, strlen(id.text));
        if (!build_id) {
            return import_profile_exhausted(p->arena, e);
        }
    }
    struct import_object *o = path ? import_profile_add_object(&p->profile, path) : NULL;
    if (!o) {
        return import_profile_exhausted(p->arena, e);
    }
    o->build_id = build_id;
    o->outside = o->outside && !(build_id && path[0] == '\0');
    o->addressing = addressing_of(m);
    o->low = o->addressing == IMPORT_LINK_TIME ? 0 : m->offset;
    o->high = o->addressing == IMPORT_LINK_TIME ? m->limit - m->start : m->offset + (m->limit - m->start);
    return PROFD_OK;
}

static enum profd_status add_frame(struct pprof *p, struct pprof_location *l, struct profd_error *e)
{
    struct import_frame f = {.object = IMPORT_NONE, .offset = IMPORT_NO_OFFSET};
    const struct pprof_mapping *m = l->mapping != 0 ? pprof_ids_find(&p->mapping_ids, l->mapping) : NULL;
    if (l->mapping != 0 && !m) {
        return profd_error_set(e, PROFD_MALFORMED,
                               "location %" PRIu64 " is in mapping %" PRIu64 ", which does not exist", l->id,
                               l->mapping);
    }
    if (m && l->address != 0) {
        f.object = (uint32_t)(m - p->mappings);
        bool in_file = p->profile.objects[f.object].addressing == IMPORT_IN_FILE;
        f.has_address = !in_file || (l->address >= m->start && l->address < m->limit);
        f.address = !f.has_address ? 0 : in_file ? l->address - m->start + m->offset : l->address;
    }
    if (m && l->address == 0 && p->own) { /* code that no symbol owns is a function without an address there */
        f.object = (uint32_t)(m - p->mappings);
        f.name = "[gap]";
    }
    return import_profile_take_frame(&p->profile, &f, &l->frame) ? PROFD_OK : import_profile_exhausted(p->arena, e);
}

/* By convention the first mapping is the program's, unless it is not a file, or is a library while others are not. */
static void choose_program(struct pprof *p)
{
    struct import_profile *q = &p->profile;
    if (q->object_count > 0 && !q->objects[0].outside && !strstr(q->objects[0].path, ".so")) {
        q->program_object = 0;
    }
}

enum profd_status pprof_places_make(struct pprof *p, struct profd_error *e)
{
    enum profd_status status = PROFD_OK;
    uint32_t addresses = 0, mapped = 0;
    count_inside(p);
    for (uint32_t i = 0; i < p->mapping_count && status == PROFD_OK; i++) {
        status = add_object(p, &p->mappings[i], e);
    }
    for (uint32_t i = 0; i < p->location_count && status == PROFD_OK; i++) {
        addresses += p->locations[i].address != 0;
        mapped += p->locations[i].address != 0 && p->locations[i].mapping != 0;
        status = add_frame(p, &p->locations[i], e);
    }
    if (status == PROFD_OK && mapped == 0) {
        status =
            profd_error_set(e, PROFD_REFUSED,
                            "none of its %" PRIu32
                            " locations has an address%s: samples are stored by build and address, which cannot be "
                            "determined from names alone (generated or already symbolized code)",
                            p->location_count, addresses > 0 ? " in a mapping" : "");
    }
    choose_program(p);
    return status;
}
