/* SPDX-License-Identifier: Apache-2.0 */
/* A lock is recorded when it is held, an unlock while it still is: the time
 * between the two records is time in the critical section. */
#include "hook.h"

static uint64_t address_of(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

#define BEGIN(point)                                                                               \
    uint64_t start = 0;                                                                            \
    uint32_t word = dm_begin(DM_POINT_##point, ATTUNE_AT_LOCK, &start)
#define END(point, value, extra) dm_end(DM_POINT_##point, word, start, value, extra)

DM_HOOK(int, pthread_mutex_lock, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex)) {
    BEGIN(pthread_mutex_lock);
    int result = dm_real_pthread_mutex_lock(mutex);
    END(pthread_mutex_lock, address_of(mutex), 0);
    return result;
}

DM_HOOK(int, pthread_mutex_trylock, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex)) {
    BEGIN(pthread_mutex_trylock);
    int result = dm_real_pthread_mutex_trylock(mutex);
    END(pthread_mutex_trylock, address_of(mutex), (uint64_t)result);
    return result;
}

DM_HOOK(int, pthread_mutex_timedlock, pthread_mutex_timedlock,
        (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until)) {
    BEGIN(pthread_mutex_timedlock);
    int result = dm_real_pthread_mutex_timedlock(mutex, until);
    END(pthread_mutex_timedlock, address_of(mutex), (uint64_t)result);
    return result;
}

DM_HOOK(int, pthread_mutex_unlock, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex)) {
    BEGIN(pthread_mutex_unlock);
    /* The duration is known only afterwards, where the mutex may be gone; its
     * address is just a number by then. */
    if (word & ATTUNE_CTL_DURATION) {
        int result = dm_real_pthread_mutex_unlock(mutex);
        END(pthread_mutex_unlock, address_of(mutex), 0);
        return result;
    }
    END(pthread_mutex_unlock, address_of(mutex), 0);
    return dm_real_pthread_mutex_unlock(mutex);
}
