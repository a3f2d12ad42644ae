/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's slot and ring: claimed at its first measurement, closed when it
 * ends. */
#include "record.h"

#include <dlfcn.h>
#include <pthread.h>

__thread struct dm_thread dm_thread = {.generation = DM_NO_GENERATION, .owned = DM_NO_GENERATION};

/* A thread that found no slot looks again after so many lost events. */
#define STARVED_RETRY 1024

/* glibc keeps so many keys in the thread block itself; setting others calls
 * the allocator, which a hook must not. */
#define INLINE_KEYS 32

/* Of the four rounds of key destructors ours ends the slot in the third, so
 * that the program's own destructors are still measured. */
#define ENDING_ROUNDS 2

static pthread_key_t key;
static bool have_key;

/* The C library's own, once it is looked up. Before this name a sanitizer may stand, whose
 * functions end the program in a thread that they do not know. */
static int (*set_specific)(pthread_key_t of, const void *value) = pthread_setspecific;

/* From a thread's own block, where its thread pointer leads, to its id there; 0: not known. */
static uint32_t id_offset;

/* What the C library tells a debugger of a field. */
struct field {
    uint32_t bits;
    uint32_t count;
    uint32_t offset;
};

/* No library's block is longer. */
#define MOST_OFFSET 4096

void dm_thread_look_up(void) {
    static const char *const libraries[] = {"libc.so.6", "libpthread.so.0"}; /* before 2.34 */
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]) && id_offset == 0; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library == NULL)
            continue;
        const struct field *id = dlsym(library, "_thread_db_pthread_tid");
        void *found = dlsym(library, "pthread_setspecific");
        dlclose(library);
        if (id != NULL && id->bits == 8 * sizeof(int32_t) && id->offset < MOST_OFFSET)
            id_offset = id->offset;
        if (found != NULL)
            __builtin_memcpy(&set_specific, &found, sizeof(set_specific));
    }
}

static void thread_ends(void *unused) {
    (void)unused;
    struct dm_thread *thread = &dm_thread;
    if (thread->ending++ < ENDING_ROUNDS) {
        set_specific(key, thread);
        return;
    }
    bool owner = thread->owned == dm_generation();
    thread->ended = 1;
    thread->owned = DM_NO_GENERATION;
    thread->generation = DM_NO_GENERATION;
    dm_compiler_barrier();
    if (owner)
        __atomic_store_n(&thread->slot->state, ATTUNE_SLOT_CLOSED, __ATOMIC_RELEASE);
}

void dm_thread_prepare(void) {
    if (have_key || pthread_key_create(&key, thread_ends) != 0)
        return;
    /* Without a key slots stay open until the controller misses the thread. */
    have_key = key < INLINE_KEYS;
    if (!have_key)
        pthread_key_delete(key);
}

/* Not by a call: a function of the C library may have a point, whose hit asks for the id. */
int32_t dm_tid(void) {
    const char *block = __builtin_thread_pointer();
    return id_offset == 0 ? 0
                          : __atomic_load_n((const int32_t *)(block + id_offset), __ATOMIC_RELAXED);
}

static bool claim(struct attune_slot *slot, int32_t tid) {
    uint32_t state = ATTUNE_SLOT_FREE;
    if (__atomic_load_n(&slot->state, __ATOMIC_RELAXED) != ATTUNE_SLOT_FREE ||
        !__atomic_compare_exchange_n(&slot->state, &state, ATTUNE_SLOT_USED, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&slot->tid, tid, __ATOMIC_RELEASE);
    return true;
}

static void raise_to(uint32_t *mark, uint32_t value) {
    uint32_t now = __atomic_load_n(mark, __ATOMIC_RELAXED);
    while (now < value && !__atomic_compare_exchange_n(mark, &now, value, true, __ATOMIC_RELEASE,
                                                       __ATOMIC_RELAXED))
        ;
}

/* The lowest free slot: the controller looks at those below slots_used only. */
static struct attune_slot *find_slot(void) {
    int32_t tid = dm_tid();
    for (uint32_t i = 0; i < dm_live.mapping.slot_limit; i++) {
        raise_to(&dm_parent.header->slots_used, i + 1);
        if (claim(&dm_parent.slots[i], tid))
            return &dm_parent.slots[i];
    }
    return NULL;
}

static void use_ring(struct dm_thread *thread, uint32_t number) {
    thread->ring = &dm_parent.rings[(uint64_t)number * dm_parent.ring_records];
}

static void take_slot(struct dm_thread *thread, struct attune_slot *slot) {
    thread->slot = slot;
    slot->open = 0;
    thread->ring = NULL;
    if (slot->ring != 0 && slot->ring <= dm_live.mapping.ring_count)
        use_ring(thread, slot->ring - 1);
    thread->limit = thread->next;
    thread->owned = dm_generation();
    if (have_key)
        set_specific(key, thread);
}

/* True if the thread has a slot now. While it is busy no signal handler claims another one;
 * a handler may have claimed one just before. */
static bool look_for_slot(struct dm_thread *thread, uint64_t generation) {
    dm_enter(thread);
    if (thread->owned != generation) {
        struct attune_slot *slot = find_slot();
        if (slot != NULL)
            take_slot(thread, slot);
        else
            thread->starved = generation;
    }
    bool has = thread->owned == generation;
    dm_leave(thread, has ? generation : DM_NO_GENERATION);
    return has;
}

DM_COLD bool dm_thread_acquire(struct dm_thread *thread) {
    struct attune_header *header = dm_live.mapping.header;
    uint64_t generation = __atomic_load_n(&dm_live.generation, __ATOMIC_ACQUIRE);
    if (generation == 0)
        return false;
    if (__atomic_load_n(&header->detached, __ATOMIC_RELAXED) != 0) {
        dm_go_inert();
        return false;
    }
    bool wait = thread->starved == generation && ++thread->starved_hits % STARVED_RETRY != 0;
    return !thread->ended && !wait && look_for_slot(thread, generation);
}

DM_COLD void dm_lose_no_slot(void) {
    if (dm_generation() != 0 && __atomic_load_n(&dm_parent.header->detached, __ATOMIC_RELAXED) == 0)
        __atomic_add_fetch(&dm_parent.header->lost_no_slot, 1, __ATOMIC_RELAXED);
}

/* A handler that interrupts a measurement loses its own events: two writers
 * would tear the ring. But a handler that leaves by longjmp leaves the thread
 * busy for ever, and nobody can tell whether hooks are nested: after so many the
 * measurement is taken for dead.
 *
 * A handler that has more hooks than that and returns after all does limited harm, if it
 * interrupted dm_write between next and head: that goes on with the place that it
 * had, which the handler has filled, and counts head once more. So one record of the
 * lap before is delivered, and each record one late, up to limit, from where find_room
 * begins at head again. next stays below limit, so nothing is written outside the ring;
 * where the ring fills up before the controller looks, head is one too far and the
 * controller gives the slot up, which it reports. */
#define NESTED_MAX 1024

DM_COLD bool dm_thread_recover(struct dm_thread *thread) {
    if (thread->in_command)
        return false; /* our own doing, not an event of the program */
    uint64_t generation = dm_generation();
    bool owner = thread->owned == generation;
    uint64_t head = owner ? thread->slot->head : 0;
    if (thread->nested_head != head)
        thread->nested_hits = 0;
    thread->nested_head = head;
    if (++thread->nested_hits > NESTED_MAX) {
        thread->nested_hits = 0;
        thread->limit = thread->next; /* next may be half moved: before another handler can jump */
        dm_leave(thread, thread->owned);
        return true;
    }
    return false;
}

/* In a command they are our own doing. */
static void lose_nested(struct dm_thread *thread) {
    if (thread->in_command)
        return;
    if (thread->owned == dm_generation())
        dm_count_own(&thread->slot->lost);
    else
        dm_lose_no_slot();
}

/* Of calls of which one in some is looked at, one in some is lost. */
DM_COLD void dm_lose(struct dm_thread *thread, uint32_t word, uint32_t mask) {
    if (dm_passes_by(word) && !dm_step(&thread->lost_calls, mask))
        return;
    if (thread->generation == DM_BUSY)
        lose_nested(thread);
    else
        dm_lose_no_slot();
}

/* Rings are handed out in order and stay with their slot. */
static bool first_ring(struct dm_thread *thread) {
    uint32_t *next = &dm_parent.header->ring_next;
    if (__atomic_load_n(next, __ATOMIC_RELAXED) >= dm_live.mapping.ring_count)
        return false;
    uint32_t number = __atomic_fetch_add(next, 1, __ATOMIC_ACQ_REL);
    if (number >= dm_live.mapping.ring_count)
        return false;
    __atomic_store_n(&thread->slot->ring, number + 1, __ATOMIC_RELEASE);
    use_ring(thread, number);
    return true;
}

/* Room for records in the whole ring. A tail that cannot be leaves none. */
static uint64_t room_in_ring(const struct dm_thread *thread) {
    uint64_t records = dm_live.mapping.ring_records;
    uint64_t unread = thread->slot->head - __atomic_load_n(&thread->slot->tail, __ATOMIC_ACQUIRE);
    return unread < records ? records - unread : 0;
}

/* The room up to the end of the ring or to the oldest record not read. */
static void find_room(struct dm_thread *thread) {
    uint64_t records = dm_parent.ring_records;
    uint64_t index = thread->slot->head & (records - 1);
    uint64_t room = room_in_ring(thread);
    thread->next = &thread->ring[index];
    thread->limit = thread->next + (room < records - index ? room : records - index);
}

static bool lose_record(struct dm_thread *thread) {
    if (__atomic_load_n(&dm_parent.header->detached, __ATOMIC_RELAXED) != 0)
        dm_go_inert();
    dm_count_own(&thread->slot->lost);
    return false;
}

bool dm_ring_room(struct dm_thread *thread) {
    if (thread->ring != NULL || first_ring(thread)) {
        find_room(thread);
        if (thread->next != thread->limit)
            return true;
    }
    return lose_record(thread);
}

bool dm_ring_holds(struct dm_thread *thread, uint64_t records) {
    if ((thread->ring != NULL || first_ring(thread)) && room_in_ring(thread) >= records)
        return true;
    return lose_record(thread);
}
