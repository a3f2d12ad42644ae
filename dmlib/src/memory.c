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

/* The calling thread stands for the process: the first one may have ended, and has no memory
 * then. Asked of the kernel: after a fork past the C library dm_tid is the parent's. */
long dm_memory_read(const struct iovec *to, const struct iovec *from, unsigned parts) {
    return dm_syscall(SYS_process_vm_readv, dm_syscall(SYS_gettid, 0), to, 1, from, parts);
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

/* Why the word cannot be read; 0: it can be. */
static int check_readable(uint64_t address) {
    uint64_t copy;
    if (address % sizeof(copy) != 0)
        return EINVAL;
    return dm_memory_copy(&copy, address, sizeof(copy)) == sizeof(copy) ? 0 : EFAULT;
}

int dm_memory_load(uint64_t address, uint64_t *value) {
    int error = check_readable(address);
    if (error == 0)
        *value = __atomic_load_n((uint64_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
    return error;
}

static int store(uint64_t address, uint64_t value, uint64_t expected, uint64_t *old) {
    uint64_t *place = (uint64_t *)(uintptr_t)address, found = expected;
    bool stored = __atomic_compare_exchange_n(place, &found, value, false, __ATOMIC_SEQ_CST,
                                              __ATOMIC_ACQUIRE);
    *old = found;
    return stored ? 0 : EAGAIN;
}

int dm_memory_map(uint64_t address, uint64_t size) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (address % DM_PAGE_SIZE != 0 || size % DM_PAGE_SIZE != 0)
        return EINVAL;
    long memory = dm_syscall(SYS_mmap, address, size, PROT_READ | PROT_EXEC, flags, -1, 0);
    return memory < 0 ? (int)-memory : 0;
}

int dm_memory_store_got(uint64_t address, uint64_t value, uint64_t expected, bool relro,
                        uint64_t *old) {
    int result = check_readable(address);
    if (result != 0)
        return result;
    if (!relro)
        return writable(address) ? store(address, value, expected, old) : EFAULT;

    *old = 0;
    uint64_t page = address & ~(uint64_t)(DM_PAGE_SIZE - 1);
    if (__atomic_exchange_n(&dm_live.unprotected, 1, __ATOMIC_ACQUIRE) != 0)
        return EBUSY;
    /* A page that can be written is not finished: the loader would die of our
     * making it read-only. */
    long error = -EBUSY;
    if (!writable(address))
        error = dm_syscall(SYS_mprotect, page, DM_PAGE_SIZE, PROT_READ | PROT_WRITE);
    result = (int)-error;
    if (error == 0) {
        result = store(address, value, expected, old);
        dm_syscall(SYS_mprotect, page, DM_PAGE_SIZE, PROT_READ);
    }
    __atomic_store_n(&dm_live.unprotected, 0, __ATOMIC_RELEASE);
    return result;
}
