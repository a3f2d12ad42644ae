/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process is registered, and how that passes through fork. */
#include "dmlib.h"

#include <sys/mman.h>
#include <sys/prctl.h>

union dm_live_page dm_live_page __attribute__((aligned(DM_PAGE_SIZE)));
struct attune_point_control dm_static_control[ATTUNE_POINT_COUNT]
    __attribute__((aligned(ATTUNE_CACHE_LINE)));

struct attune_hook_entry dm_hook_entry[ATTUNE_HOOK_COUNT];

/* Inherited by children: the mapping that their parent used. */
struct dm_mapping dm_parent;
bool dm_locks_memory;
static uint64_t generations;
static long seccomp_mode;

bool dm_live_wipe_in_children(void) {
    return dm_syscall(SYS_madvise, &dm_live_page, sizeof(dm_live_page), MADV_WIPEONFORK) == 0;
}

bool dm_live_prepare(void) {
    seccomp_mode = dm_syscall(SYS_prctl, PR_GET_SECCOMP);
    dm_child_prepare();
    dm_thread_look_up();
    return dm_tid() == dm_syscall(SYS_gettid, 0);
}

static void set_static_words(uint32_t word) {
    for (unsigned i = 0; i < ATTUNE_POINT_COUNT; i++)
        __atomic_store_n(&dm_static_control[i].word, word, __ATOMIC_RELAXED);
}

void dm_live_publish(const struct dm_mapping *mapping) {
    intptr_t delta = (char *)mapping->controls - (char *)dm_static_control;
    dm_parent = *mapping;
    dm_live.mapping = *mapping;
    __atomic_store_n(&dm_live.generation, ++generations, __ATOMIC_RELEASE);
    __atomic_store_n(&dm_live.delta, delta, __ATOMIC_RELEASE);
    set_static_words(ATTUNE_CTL_REGISTER);
}

void dm_go_inert(void) {
    set_static_words(0);
    __atomic_store_n(&dm_live.delta, 0, __ATOMIC_RELEASE);
}

/* Where a mapping of ours has been unmapped in part, or would be locked, only what is
 * read before a thread does anything. */
static uint64_t size_to_leave(void) {
    uint64_t controls = (uint64_t)((char *)dm_parent.slots - (char *)dm_parent.header);
    if (dm_parent.size != 0 && !dm_locks_memory)
        return dm_parent.size;
    return controls & ~(uint64_t)(DM_PAGE_SIZE - 1);
}

/* A child can have fewer rights than its parent, which executes the commands that stand in
 * that memory. There is memory afterwards all the same, as below. Private memory that
 * can be written counts against more limits. */
void dm_leave_parent(void) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    void *here = dm_parent.header;
    uint64_t size = here == NULL ? 0 : size_to_leave();
    if (size == 0 || dm_syscall(SYS_mmap, here, size, PROT_READ | PROT_WRITE, flags, -1, 0) ==
                         (long)(uintptr_t)here)
        return;
    dm_syscall(SYS_mmap, here, size, PROT_READ, flags, -1, 0);
}

/* The child maps its own memory file where its parent's is: address space
 * does not grow with each generation, and a frame that a fork in a signal
 * handler interrupted between two loads still finds memory behind its
 * pointers. Where the sizes differ private memory takes the old one's place.
 *
 * A process that another controller takes over has other threads, of which some may be
 * in a measurement, some 20 ns unless they are preempted there: such a thread finishes its
 * one hit or record in the slot of that number in the new file, where a file of the same
 * size has a slot as well, and then claims a slot of its own, for its generation is the
 * old one. If nobody has that slot the controller finds records in a slot without a
 * ring, gives the slot up and reports that; else a sum has one hit more. To keep the old
 * mapping would leave its pages to the program with each attach. */
static bool move_over_parent(struct dm_mapping *mapping) {
    void *here = dm_parent.header;
    if (mapping->size == dm_parent.size &&
        dm_syscall(SYS_mremap, mapping->header, mapping->size, mapping->size,
                   MREMAP_MAYMOVE | MREMAP_FIXED, here) == (long)(uintptr_t)here)
        return dm_layout_check(here, dm_parent.size, mapping);
    dm_leave_parent();
    return true;
}

bool dm_live_replace(struct dm_mapping *mapping) {
    if (dm_parent.header != NULL && !move_over_parent(mapping))
        return false;
    dm_live_publish(mapping);
    return true;
}

bool dm_live_unfiltered(void) { return seccomp_mode == 0; }

/* A filter that is newer than DMLib may kill for a system call of ours. */
bool dm_confined(void) { return dm_syscall(SYS_prctl, PR_GET_SECCOMP) != seccomp_mode; }
