/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that locks its memory locks ours as well: all of the memory file would
 * be filled with pages, and count against the program's limit, which may be one that
 * the program alone keeps. What nobody has used of the file yet is unmapped before.
 * No point belongs to this hook.
 */
#include "hook.h"

#include <sys/mman.h>
#include <sys/single_threaded.h>

/* A loader of another C library, which lacks it, must load us all the same (handler.c). */
extern char __libc_single_threaded __attribute__((weak));

static void unmap(void *from, void *to) {
    uintptr_t start = ((uintptr_t)from + DM_PAGE_SIZE - 1) & ~(uintptr_t)(DM_PAGE_SIZE - 1);
    uintptr_t end = (uintptr_t)to & ~(uintptr_t)(DM_PAGE_SIZE - 1);
    if (start < end)
        dm_syscall(SYS_munmap, start, end - start);
}

static uint32_t least(const uint32_t *shared, uint32_t most) {
    uint32_t value = __atomic_load_n(shared, __ATOMIC_RELAXED);
    return value < most ? value : most;
}

/* What is unmapped is out of bounds first, for signal handlers. The place is no longer
 * ours alone: nothing may be moved over it (dm_live_replace). */
static void unmap_unused(struct dm_mapping *mapping) {
    struct attune_table *tables = mapping->tables;
    uint32_t table_count = mapping->table_count;
    char *end_of_rings =
        (char *)(mapping->rings + (uint64_t)mapping->ring_count * mapping->ring_records);
    dm_parent.size = 0;
    mapping->slot_limit = least(&mapping->header->slots_used, mapping->slot_limit);
    mapping->ring_count = least(&mapping->header->ring_next, mapping->ring_count);
    mapping->table_count = 0;
    dm_compiler_barrier();
    unmap(&mapping->slots[mapping->slot_limit], &mapping->slots[mapping->slot_count]);
    unmap(&mapping->rings[(uint64_t)mapping->ring_count * mapping->ring_records], end_of_rings);
    unmap(tables, tables + table_count);
}

/* A forked child that has not registered needs the header alone of its parent's. */
static void unmap_inherited(void) {
    char *end = (char *)dm_parent.header + dm_parent.size;
    dm_parent.size = 0;
    unmap(dm_parent.slots, end);
}

/* Another thread may be about to use what is unused: then all of it stays. Where some was
 * unmapped before, the size is 0 and the place the program's by now. */
DM_EXPORT int mlockall(int flags) {
    if (dm_parent.size != 0 && &__libc_single_threaded != NULL && __libc_single_threaded &&
        dm_thread.generation != DM_BUSY) {
        if (dm_live.generation != 0)
            unmap_unused(&dm_live.mapping);
        else
            unmap_inherited();
    }
    int result = dm_real_mlockall(flags);
    if (result == 0 && (flags & MCL_FUTURE) != 0)
        dm_locks_memory = true;
    return result;
}
