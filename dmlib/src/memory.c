/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses at addresses that the controller names. A library may have been
 * unloaded since it looked: the kernel is asked first whether the access can
 * be made, and answers EFAULT where a plain access would kill the program.
 */
#include "dmlib.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/uio.h>

static bool proper(uint64_t address, uint64_t size) {
    return (size == 1 || size == 2 || size == 4 || size == 8) && address % size == 0;
}

/* The calling thread stands for the process: the first one may have ended, and has no memory
 * then. Asked of the kernel: after a fork past the C library dm_tid is the parent's. */
long dm_memory_read(const struct iovec *to, const struct iovec *from, unsigned parts) {
    return dm_syscall(SYS_process_vm_readv, dm_syscall(SYS_gettid, 0), to, 1, from, parts);
}

static bool readable(uint64_t address, uint64_t size) {
    uint64_t copy;
    struct iovec local = {.iov_base = &copy, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
    return dm_memory_read(&local, &remote, 1) == (long)size;
}

/* The kernel copies as far as pages can be read; two parts, for it does not
 * promise to split one. size is less than a page. */
uint32_t dm_memory_copy(void *to, uint64_t address, uint32_t size) {
    uint32_t in_page = DM_PAGE_SIZE - (uint32_t)(address & (DM_PAGE_SIZE - 1));
    uint32_t first = size < in_page ? size : in_page;
    struct iovec local = {.iov_base = to, .iov_len = size};
    struct iovec remote[] = {
        {.iov_base = (void *)(uintptr_t)address, .iov_len = first},
        {.iov_base = (void *)(uintptr_t)(address + first), .iov_len = size - first},
    };
    long copied = dm_memory_read(&local, remote, 2);
    return copied > 0 ? (uint32_t)copied : 0;
}

/* FUTEX_WAKE_OP adds 0 to the word at the address, atomically, and reports a
 * page that cannot be written. It wakes waiters there only if the old value
 * is below -2048; they must expect that of any futex. */
static bool writable(uint64_t address) {
    uint32_t own = 0;
    uint32_t op = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0x800);
    long result =
        dm_syscall(SYS_futex, &own, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, address & ~3ull, op);
    return result >= 0;
}

static uint64_t load(uint64_t address, uint64_t size) {
    void *place = (void *)(uintptr_t)address;
    switch (size) {
    case 1:
        return __atomic_load_n((uint8_t *)place, __ATOMIC_ACQUIRE);
    case 2:
        return __atomic_load_n((uint16_t *)place, __ATOMIC_ACQUIRE);
    case 4:
        return __atomic_load_n((uint32_t *)place, __ATOMIC_ACQUIRE);
    default:
        return __atomic_load_n((uint64_t *)place, __ATOMIC_ACQUIRE);
    }
}

#define REPLACE(type)                                                                              \
    do {                                                                                           \
        type *place = (type *)(uintptr_t)address, want = (type)*old;                               \
        if (!__atomic_compare_exchange_n(place, &want, (type)value, false, __ATOMIC_SEQ_CST,       \
                                         __ATOMIC_ACQUIRE)) {                                      \
            *old = want;                                                                           \
            return false;                                                                          \
        }                                                                                          \
        return true;                                                                               \
    } while (0)

/* Stores value if *old is there, else reports what is. */
static bool replace(uint64_t address, uint64_t size, uint64_t value, uint64_t *old) {
    switch (size) {
    case 1:
        REPLACE(uint8_t);
    case 2:
        REPLACE(uint16_t);
    case 4:
        REPLACE(uint32_t);
    default:
        REPLACE(uint64_t);
    }
}

static int store(uint64_t address, uint64_t size, uint64_t value, bool compare, uint64_t expected,
                 uint64_t *old) {
    uint64_t mask = size == 8 ? UINT64_MAX : (1ull << size * 8) - 1;
    *old = load(address, size);
    if (compare && *old != (expected & mask))
        return EAGAIN;
    while (!replace(address, size, value, old))
        if (compare)
            return EAGAIN;
    return 0;
}

int dm_memory_load(uint64_t address, uint64_t size, uint64_t *value) {
    if (!proper(address, size))
        return EINVAL;
    if (!readable(address, size))
        return EFAULT;
    *value = load(address, size);
    return 0;
}

int dm_memory_store(uint64_t address, uint64_t size, uint64_t value, bool compare,
                    uint64_t expected, uint64_t *old) {
    if (!proper(address, size))
        return EINVAL;
    if (!readable(address, size) || !writable(address))
        return EFAULT;
    return store(address, size, value, compare, expected, old);
}

int dm_memory_map(uint64_t address, uint64_t size) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (address % DM_PAGE_SIZE != 0 || size % DM_PAGE_SIZE != 0)
        return EINVAL;
    long memory = dm_syscall(SYS_mmap, address, size, PROT_READ | PROT_EXEC, flags, -1, 0);
    return memory < 0 ? (int)-memory : 0;
}

int dm_memory_store_got(uint64_t address, uint64_t value, bool compare, uint64_t expected,
                        bool relro, uint64_t *old) {
    if (!proper(address, 8))
        return EINVAL;
    if (!readable(address, 8))
        return EFAULT;
    if (!relro)
        return dm_memory_store(address, 8, value, compare, expected, old);

    *old = 0;
    uint64_t page = address & ~(uint64_t)(DM_PAGE_SIZE - 1);
    if (__atomic_exchange_n(&dm_live.unprotected, 1, __ATOMIC_ACQUIRE) != 0)
        return EBUSY;
    /* A page that can be written is not finished: the loader would die of our
     * making it read-only. */
    long error = -EBUSY;
    if (!writable(address))
        error = dm_syscall(SYS_mprotect, page, DM_PAGE_SIZE, PROT_READ | PROT_WRITE);
    int result = (int)-error;
    if (error == 0) {
        result = store(address, 8, value, compare, expected, old);
        dm_syscall(SYS_mprotect, page, DM_PAGE_SIZE, PROT_READ);
    }
    __atomic_store_n(&dm_live.unprotected, 0, __ATOMIC_RELEASE);
    return result;
}
