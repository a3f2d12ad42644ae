/* SPDX-License-Identifier: Apache-2.0 */
/* A lock is recorded when it is held, or refused with an error, an unlock while it still
 * is held: the time between the two records is time in the critical section, unless the
 * thread waited on a condition in between: pthread_cond_wait and its like release the mutex
 * and take it again inside the C library, which are no calls. To stand before these would
 * make calls out of them in counts, and has to tell two versions of each apart. */
#include "hook.h"

static uint64_t address_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

#define BEGIN(point)                                                                               \
    uint64_t start = 0;                                                                            \
    uint32_t word = dm_begin(DM_POINT_##point, ATTUNE_AT_LOCK, &start)
#define END(point, value, extra, ...)                                                              \
    DM_END(DM_POINT_##point, word, start, value, extra, true, __VA_ARGS__)

static DM_NOINLINE int full_lock(pthread_mutex_t *mutex) {
    BEGIN(pthread_mutex_lock);
    int result = dm_real_pthread_mutex_lock(mutex);
    END(pthread_mutex_lock, address_of(mutex), (uint64_t)result, result, mutex);
    return result;
}

static DM_NOINLINE int hot_lock(pthread_mutex_t *mutex, uint64_t asked) {
    const unsigned point = DM_POINT_pthread_mutex_lock;
    if (dm_asks_before(asked))
        return full_lock(mutex);
    uint64_t result = (uint64_t)dm_real_pthread_mutex_lock(mutex), address = address_of(mutex);
    const struct attune_point_control *control = dm_control(point);
    asked = dm_asked(control); /* another point may be there by now */
    if (dm_likely(dm_hot(point, control, asked, address, result, NULL)) ||
        dm_warm(point, control, asked, address))
        return (int)result;
    return (int)dm_late(point, address, result, result);
}

static int hook_pthread_mutex_lock(pthread_mutex_t *mutex) {
    uint64_t asked = dm_asked(dm_control(DM_POINT_pthread_mutex_lock));
    return dm_idle(asked) ? dm_real_pthread_mutex_lock(mutex) : hot_lock(mutex, asked);
}

DM_LED_HOOK(int, pthread_mutex_trylock, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex)) {
    BEGIN(pthread_mutex_trylock);
    int result = dm_real_pthread_mutex_trylock(mutex);
    END(pthread_mutex_trylock, address_of(mutex), (uint64_t)result, result, mutex);
    return result;
}

DM_LED_HOOK(int, pthread_mutex_timedlock, pthread_mutex_timedlock,
            (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until)) {
    BEGIN(pthread_mutex_timedlock);
    int result = dm_real_pthread_mutex_timedlock(mutex, until);
    END(pthread_mutex_timedlock, address_of(mutex), (uint64_t)result, result, mutex, until);
    return result;
}

/* glibc from 2.30 on: by this C++ waits for a timed mutex. */
DM_LED_HOOK(int, pthread_mutex_clocklock, pthread_mutex_clocklock,
            (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until),
            (mutex, clock, until)) {
    BEGIN(pthread_mutex_clocklock);
    int result = dm_real_pthread_mutex_clocklock(mutex, clock, until);
    END(pthread_mutex_clocklock, address_of(mutex), (uint64_t)result, result, mutex, clock, until);
    return result;
}

static DM_NOINLINE int full_unlock(pthread_mutex_t *mutex) {
    BEGIN(pthread_mutex_unlock);
    /* The duration is known only afterwards, where the mutex may be gone; its
     * address is just a number by then. */
    if (word & DM_CTL_TIMES) {
        int result = dm_real_pthread_mutex_unlock(mutex);
        END(pthread_mutex_unlock, address_of(mutex), 0, result, mutex);
        return result;
    }
    DM_END(DM_POINT_pthread_mutex_unlock, word, start, address_of(mutex), 0, false, 0, mutex);
    return dm_real_pthread_mutex_unlock(mutex);
}

static DM_NOINLINE int warm_unlock(pthread_mutex_t *mutex,
                                   const struct attune_point_control *control) {
    if (dm_warm(DM_POINT_pthread_mutex_unlock, control, dm_asked(control), address_of(mutex)))
        return dm_real_pthread_mutex_unlock(mutex);
    return full_unlock(mutex);
}

static int hook_pthread_mutex_unlock(pthread_mutex_t *mutex) {
    const unsigned point = DM_POINT_pthread_mutex_unlock;
    const struct attune_point_control *control = dm_control(point);
    uint64_t asked = dm_asked(control);
    if (dm_idle(asked) || dm_likely(dm_hot(point, control, asked, address_of(mutex), 0, NULL)))
        return dm_real_pthread_mutex_unlock(mutex);
    return warm_unlock(mutex, control);
}

#define ENTER(name)                                                                                \
    if (dm_real_##name != NULL)                                                                    \
        dm_hook_entry[DM_POINT_##name] = (struct attune_hook_entry) {                              \
            .hook = (uint64_t)(uintptr_t)hook_##name,                                              \
            .behind = (uint64_t)(uintptr_t)dm_real_##name                                          \
        }

void dm_lock_prepare(void) {
    ENTER(pthread_mutex_lock);
    ENTER(pthread_mutex_trylock);
    ENTER(pthread_mutex_timedlock);
    ENTER(pthread_mutex_clocklock);
    ENTER(pthread_mutex_unlock);
}
