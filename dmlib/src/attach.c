/* SPDX-License-Identifier: Apache-2.0 */
/* Registers a program that has been running for a while: the controller has
 * one of its threads call this, at a place where it could have called dlopen. */
#include "dmlib.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

extern const char __ehdr_start[] DM_HIDDEN;

DM_EXPORT int attune_dm_attach(struct attune_attach *request);

static bool acceptable(const struct attune_attach *request) {
    return request->magic == ATTUNE_ABI_MAGIC && request->version == ATTUNE_ATTACH_VERSION &&
           memchr(request->socket, 0, sizeof(request->socket)) != NULL;
}

static struct attune_attach_slot *slots_of(struct attune_attach *request) {
    return (struct attune_attach_slot *)(request + 1);
}

static const struct attune_attach_real *reals_of(struct attune_attach *request) {
    return (const struct attune_attach_real *)(slots_of(request) + request->slot_count);
}

/* Under a controller that has not let go, and lives as far as is known. */
static bool taken(const struct attune_attach *request) {
    return dm_live.delta != 0 && dm_live.mapping.header->detached == 0 &&
           (request->flags & ATTUNE_ATTACH_TAKE_OVER) == 0;
}

/* Calls of another function of that name stay as they are: memory of one allocator would
 * be given back to another. What the loader has not relocated is none of these: it would
 * add to what is there. */
static bool goes_there(const struct attune_attach_slot *slot, uint64_t hook, uint64_t behind) {
    uint64_t held = slot->old;
    return held != 0 && (held == hook || held == behind || held == slot->unbound);
}

static int lead(struct attune_attach_slot *slot) {
    uint64_t hook = (uint64_t)(uintptr_t)__ehdr_start + slot->hook;
    if (!dm_origin_holds(&slot->origin))
        return ESTALE;
    uint64_t behind = dm_real_behind(slot->name);
    int error = dm_memory_load(slot->address, &slot->old);
    while (error == 0 || error == EAGAIN) {
        if (!goes_there(slot, hook, behind))
            return EBUSY;
        error = dm_memory_store_got(slot->address, hook, slot->old, slot->relro != 0, &slot->old);
        if (error == 0)
            return 0;
    }
    return error;
}

static int lead_all(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size;
    struct attune_attach *request = data;
    struct attune_attach_slot *slots = slots_of(request);
    for (uint32_t i = 0; i < request->slot_count; i++)
        slots[i].error = lead(&slots[i]);
    return 1;
}

/* Calls that are bound already go round us until their slots are rewritten:
 * whole words, while other threads jump through them. No library is unloaded
 * while dl_iterate_phdr(3) has the loader's list. */
static void lead_to_hooks(struct attune_attach *request) { dl_iterate_phdr(lead_all, request); }

static int attach(struct attune_attach *request) {
    struct dm_mapping mapping;
    if (!acceptable(request))
        return EINVAL;
    if (getauxval(AT_SECURE) != 0)
        return EPERM;
    if (taken(request))
        return EBUSY;
    if (!dm_real_resolve_attached(reals_of(request), request->real_count))
        return ENOSYS;
    dm_real_note_behind();
    dm_go_inert();
    dm_gate_address(request->socket); /* without it children stay inert */
    if (!dm_live_prepare())
        return ENOTSUP;
    dm_stub_prepare();
    dm_lock_prepare();
    int error = dm_gate_adopt(request->memory, request->memory_size, &mapping);
    if (error != 0)
        return error;
    dm_thread_prepare();
    if (!dm_live_replace(&mapping))
        return ENOMEM;
    lead_to_hooks(request);
    return 0;
}

int attune_dm_attach(struct attune_attach *request) {
    if (!dm_live_wipe_in_children()) /* a child that is forked meanwhile has claimed nothing */
        return ENOTSUP;
    int saved = errno;
    uint32_t before;
    int result = EBUSY; /* another thread attaches, or registers a forked child */
    if (dm_child_claim(&before)) {
        result = attach(request);
        if (result == 0)
            dm_child_settle();
        else
            dm_child_disclaim(before);
    }
    errno = saved;
    return result;
}
