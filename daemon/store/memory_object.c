#include <stdlib.h>
#include <string.h>

#include "store/memory.h"

static bool contains(const struct store_senders *of, uint32_t uid)
{
    for (size_t i = 0; i < of->uid_count; i++) {
        if (of->uids[i] == uid) {
            return true;
        }
    }
    return false;
}

/* Is it a tenant of which an operator has sent an object of the build with names? */
static bool is_ruled(const struct memory_store *s, const char *build_id, uint32_t uid)
{
    bool ruled = false;
    for (size_t i = 0; i < s->object_sender_count && !ruled; i++) {
        const struct memory_object_sender *x = &s->object_senders[i];
        const struct memory_object *o = &s->objects[x->object];
        ruled = x->by_operator && x->uid == uid && o->has_names && strcmp(o->id.text, build_id) == 0;
    }
    return ruled;
}

/* Evaluates the senders of one object for these uids. */
struct verdict {
    bool trusted, ruled; /* ruled: operators of all uids sent it */
    size_t matched;
    uint64_t delivered;
    const char *note;
    struct store_naming naming;
};

static struct verdict judge_object(const struct memory_store *s, size_t object, const struct store_senders *of)
{
    struct verdict v = {.note = "", .naming = {.by = STORE_NAMED_BY_USERS}};
    size_t operators = 0, users = 0;
    for (size_t i = 0; i < s->object_sender_count; i++) {
        const struct memory_object_sender *sender = &s->object_senders[i];
        if (sender->object != object) {
            continue;
        }
        const bool member = contains(of, sender->uid);
        operators += member && sender->by_operator && s->objects[object].has_names;
        users += member && !store_is_tenant(sender->uid);
        v.trusted |= sender->trusted;
        if ((sender->trusted || member || sender->uid == STORE_TENANT) && sender->delivered > v.delivered) {
            v.delivered = sender->delivered;
            v.note = sender->note;
        }
    }
    v.matched = users + operators;
    v.ruled = of->uid_count > 0 && operators == of->uid_count;
    for (size_t i = 0; i < of->uid_count; i++) {
        v.matched += store_is_tenant(of->uids[i]) && !is_ruled(s, s->objects[object].id.text, of->uids[i]) &&
                     memory_judge_hosts(s, &s->objects[object], of, &v.naming);
    }
    if (v.ruled) {
        v.naming.by = STORE_NAMED_BY_OPERATORS;
    }
    return v;
}

struct memory_choice memory_choose_object(const struct memory_store *s, const char *build_id,
                                          const struct store_senders *of)
{
    const struct store_naming by_users = {.by = STORE_NAMED_BY_USERS};
    struct memory_choice best = {.object = -1, .note = "", .naming = by_users};
    uint64_t best_rank = 0, failure = 0;
    for (size_t i = 0; i < s->object_count; i++) {
        const struct memory_object *o = &s->objects[i];
        if (strcmp(o->id.text, build_id) != 0) {
            continue;
        }
        struct verdict v = judge_object(s, i, of);
        bool eligible = v.trusted || (of->uid_count > 0 && v.matched == of->uid_count);
        uint64_t rank =
            (uint64_t)o->has_names << 63 | (uint64_t)v.ruled << 62 | (uint64_t)v.trusted << 61 | v.delivered;
        if (o->variant[0] != 0 && eligible && (best.object < 0 || rank > best_rank)) {
            best = (struct memory_choice){.object = (ptrdiff_t)i, .note = v.note};
            best.naming = v.trusted && !v.ruled ? by_users : v.naming;
            best_rank = rank;
        } else if (o->variant[0] == 0 && best.object < 0 && v.delivered > failure) {
            best.note = v.note;
            failure = v.delivered;
        }
    }
    return best;
}

static bool same_content(const struct memory_object *o, const struct store_object *n)
{
    return strcmp(o->id.text, n->id.text) == 0 && strcmp(o->variant, n->variant) == 0 &&
           o->encoded_size == n->encoded_size &&
           (n->encoded_size == 0 || memcmp(o->encoded, n->encoded, n->encoded_size) == 0);
}

static bool upload_has(const struct memory_upload *u, const char *build_id)
{
    for (size_t i = 0; i < u->build_count; i++) {
        if (strcmp(u->builds[i].id.text, build_id) == 0) {
            return true;
        }
    }
    return false;
}

void memory_touch_object(struct memory_store *s, const char *build_id, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < s->upload_count; i++) {
        const struct memory_upload *u = &s->uploads[i];
        if (u->uid < from || u->uid > to || !upload_has(u, build_id)) {
            continue;
        }
        for (size_t k = 0; k < s->build_count; k++) {
            if (s->builds[k].uid == u->uid && upload_has(u, s->builds[k].id.text)) {
                s->builds[k].epoch = s->number;
            }
        }
        memory_find_user(s, u->uid)->epoch = s->list_epoch = s->number;
    }
}

static uint64_t latest_delivery(const struct memory_store *s, const char *build_id)
{
    uint64_t latest = 0;
    for (size_t i = 0; i < s->object_sender_count; i++) {
        if (strcmp(s->objects[s->object_senders[i].object].id.text, build_id) == 0 &&
            s->object_senders[i].delivered > latest) {
            latest = s->object_senders[i].delivered;
        }
    }
    return latest;
}

/* Records the sender; takes over the note. True if answers to any user may change. */
static bool put_sender(struct memory_store *s, size_t object, const struct store_object *o, char *note, bool *trusted)
{
    struct memory_object_sender *sender = NULL;
    for (size_t i = 0; i < s->object_sender_count; i++) {
        if (s->object_senders[i].object == object && s->object_senders[i].uid == o->uid) {
            sender = &s->object_senders[i];
        }
    }
    *trusted = o->trusted || (sender && sender->trusted);
    if (sender) {
        sender->received = o->received;
    }
    if (sender && sender->trusted == *trusted && (sender->by_operator || !o->by_operator) &&
        strcmp(sender->note, note) == 0 && sender->delivered == latest_delivery(s, o->id.text)) {
        free(note);
        return false;
    }
    if (!sender) {
        sender = &s->object_senders[s->object_sender_count++];
        *sender = (struct memory_object_sender){.object = object, .uid = o->uid, .received = o->received};
    }
    free(sender->note);
    sender->note = note;
    sender->trusted = *trusted;
    sender->by_operator |= o->by_operator;
    sender->delivered = ++s->number;
    return true;
}

static size_t find_or_add(struct memory_store *s, const struct store_object *o, struct memory_object *fresh)
{
    for (size_t i = 0; i < s->object_count; i++) {
        if (same_content(&s->objects[i], o)) {
            return i;
        }
    }
    fresh->id = o->id;
    memcpy(fresh->variant, o->variant, sizeof fresh->variant);
    fresh->has_names = o->has_names;
    fresh->outdated = o->outdated;
    fresh->encoded_size = o->encoded_size;
    fresh->bounds_size = o->bounds_size;
    if (o->encoded_size > 0) {
        memcpy(fresh->encoded, o->encoded, o->encoded_size);
    }
    if (o->bounds_size > 0) {
        memcpy(fresh->bounds, o->bounds, o->bounds_size);
    }
    s->objects[s->object_count] = *fresh;
    *fresh = (struct memory_object){.encoded = NULL};
    return s->object_count++;
}

void memory_remove_object(struct memory_store *s, size_t at)
{
    size_t kept = 0;
    free(s->objects[at].encoded);
    free(s->objects[at].bounds);
    for (size_t i = 0; i < s->object_sender_count; i++) {
        struct memory_object_sender *sender = &s->object_senders[i];
        if (sender->object == at) {
            free(sender->note);
            continue;
        }
        sender->object -= sender->object > at;
        s->object_senders[kept++] = *sender;
    }
    s->object_sender_count = kept;
    memmove(&s->objects[at], &s->objects[at + 1], (--s->object_count - at) * sizeof *s->objects);
}

/* True if the object at now may name functions for all users that the one at old serves. */
static bool replaces(const struct memory_store *s, size_t now, size_t old)
{
    bool all = true;
    for (size_t i = 0; i < s->object_sender_count && all; i++) {
        const struct memory_object_sender *x = &s->object_senders[i];
        bool covered = x->object != old;
        for (size_t k = 0; k < s->object_sender_count && !covered; k++) {
            const struct memory_object_sender *y = &s->object_senders[k];
            covered = y->object == now &&
                      (y->trusted || (!x->trusted && y->uid == x->uid && y->by_operator >= x->by_operator));
        }
        all = covered;
    }
    return all;
}

static void remove_replaced(struct memory_store *s, size_t now)
{
    for (size_t i = s->object_count; i-- > 0;) {
        const struct memory_object *o = &s->objects[i];
        if (o->outdated && strcmp(o->id.text, s->objects[now].id.text) == 0 &&
            strcmp(o->variant, s->objects[now].variant) == 0 && replaces(s, now, i)) {
            memory_remove_object(s, i);
            now -= now > i;
        }
    }
}

enum profd_status memory_put_object(struct store *base, const struct store_object *o, struct profd_error *e)
{
    struct memory_store *s = memory_self(base);
    struct memory_object fresh = {.encoded = malloc(o->encoded_size + 1), .bounds = malloc(o->bounds_size + 1)};
    char *note = strdup(o->note);
    bool trusted;
    enum profd_status status = fresh.encoded && fresh.bounds && note ? PROFD_OK : profd_no_memory(e);
    if (status == PROFD_OK) {
        status = memory_reserve(&s->objects, s->object_count, &s->object_capacity, 1, sizeof *s->objects, e);
    }
    if (status == PROFD_OK) {
        status = memory_reserve(&s->object_senders, s->object_sender_count, &s->object_sender_capacity, 1,
                                sizeof *s->object_senders, e);
    }
    if (status == PROFD_OK) {
        size_t object = find_or_add(s, o, &fresh);
        if (o->hash) {
            s->objects[object].hashed = true;
            memcpy(s->objects[object].hash, o->hash, STORE_HASH_SIZE);
        }
        if (put_sender(s, object, o, note, &trusted)) {
            const bool by_host = !trusted && o->hash;
            memory_touch_object(s, o->id.text,
                                trusted   ? 0
                                : by_host ? STORE_TENANT_LAST
                                          : o->uid,
                                trusted   ? UINT32_MAX
                                : by_host ? STORE_TENANT
                                          : o->uid);
        }
        if (o->variant[0] != '\0' && !o->outdated) {
            remove_replaced(s, object);
        }
    } else {
        free(note);
    }
    free(fresh.encoded);
    free(fresh.bounds);
    return status;
}

enum profd_status memory_has_object(struct store *base, uint32_t uid, const char *build_id, bool *known,
                                    struct profd_error *e)
{
    (void)e;
    const struct memory_store *s = memory_self(base);
    bool found = false;
    for (size_t i = 0; i < s->object_sender_count && !found; i++) {
        const struct memory_object_sender *sender = &s->object_senders[i];
        const struct memory_object *o = &s->objects[sender->object];
        found = strcmp(o->id.text, build_id) == 0 && (o->variant[0] == 0 ? sender->uid == uid : !o->outdated) &&
                (sender->uid == uid || sender->trusted);
    }
    *known = found;
    return PROFD_OK;
}

/* Is it trusted, or has a user of the scope sent it, or does a host of the scope attest it? */
static bool is_seen(const struct memory_store *s, size_t object, const struct store_scope *scope)
{
    bool seen = memory_attests_for(s, &s->objects[object], scope);
    for (size_t i = 0; i < s->object_sender_count && !seen; i++) {
        const struct memory_object_sender *x = &s->object_senders[i];
        seen = x->object == object &&
               (x->trusted || (store_scope_has(scope, x->uid) && (x->by_operator || !store_is_tenant(x->uid))));
    }
    return seen;
}

enum profd_status memory_get_object(struct store *base, const struct store_senders *of, const char *build_id,
                                    uint8_t **bytes, size_t *size, struct store_naming *naming, struct profd_error *e)
{
    const struct memory_store *s = memory_self(base);
    struct memory_choice choice = memory_choose_object(s, build_id, of);
    *naming = choice.naming;
    for (size_t i = 0; i < of->uid_count; i++) {
        naming->operators += store_is_tenant(of->uids[i]) && is_ruled(s, build_id, of->uids[i]);
    }
    naming->attesting = memory_count_attesting(s, build_id, NULL);
    if (choice.object < 0) {
        return profd_error_set(e, PROFD_NOT_FOUND, "no trusted user has sent the executable of build %s", build_id);
    }
    const struct memory_object *o = &s->objects[choice.object];
    uint8_t *block = malloc(o->encoded_size + 1);
    if (!block) {
        return profd_no_memory(e);
    }
    memcpy(block, o->encoded, o->encoded_size);
    naming->variants = 0;
    for (size_t i = 0; i < s->object_count; i++) {
        naming->variants += s->objects[i].variant[0] != 0 && strcmp(s->objects[i].id.text, build_id) == 0 &&
                            (!of->seen || is_seen(s, i, of->seen));
    }
    *bytes = block;
    *size = o->encoded_size;
    return PROFD_OK;
}

enum profd_status memory_get_bounds(struct store *base, uint32_t uid, const char *build_id, const uint8_t **bytes,
                                    size_t *size, struct profd_error *e)
{
    (void)e;
    const struct memory_store *s = memory_self(base);
    struct memory_choice choice =
        memory_choose_object(s, build_id, &(struct store_senders){.uids = &uid, .uid_count = 1});
    *size = choice.object < 0 ? 0 : s->objects[choice.object].bounds_size;
    *bytes = choice.object < 0 ? NULL : s->objects[choice.object].bounds;
    return PROFD_OK;
}

enum profd_status memory_get_shared_object(struct store *base, const char *build_id, uint8_t **bytes, size_t *size,
                                           struct profd_error *e)
{
    const struct memory_store *s = memory_self(base);
    struct store_naming naming;
    struct store_senders of = {.uid_count = 0};
    uint32_t *uids = malloc((s->build_count + 1) * sizeof *uids);
    if (!uids) {
        return profd_error_set(e, PROFD_NO_MEMORY, "no memory for the users of a build");
    }
    for (size_t i = 0; i < s->build_count; i++) {
        if (strcmp(s->builds[i].id.text, build_id) == 0) {
            uids[of.uid_count++] = s->builds[i].uid;
        }
    }
    of.uids = uids;
    enum profd_status status = memory_get_object(base, &of, build_id, bytes, size, &naming, e);
    free(uids);
    return status;
}
