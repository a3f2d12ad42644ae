/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation and exceptions may leave through the real calls: nothing is
 * held across them. */
#include "hook.h"

static uint64_t moved(ssize_t result) { return result > 0 ? (uint64_t)result : 0; }

#define DM_STRIP(...) __VA_ARGS__

#define DEFINE(name, point, parameters, arguments)                                                 \
    DM_HOOK(ssize_t, name, point, parameters, arguments) {                                         \
        uint64_t start = 0;                                                                        \
        uint32_t word = dm_begin(DM_POINT_##point, ATTUNE_AT_IO, &start);                          \
        ssize_t result = dm_real_##name arguments;                                                 \
        DM_END(DM_POINT_##point, word, start, moved(result), (uint64_t)fd, true, result,           \
               DM_STRIP arguments);                                                                \
        return result;                                                                             \
    }

DEFINE(read, read, (int fd, void *buffer, size_t size), (fd, buffer, size))
DEFINE(write, write, (int fd, const void *buffer, size_t size), (fd, buffer, size))
DEFINE(pread, pread, (int fd, void *buffer, size_t size, off_t offset), (fd, buffer, size, offset))
DEFINE(pwrite, pwrite, (int fd, const void *buffer, size_t size, off_t offset),
       (fd, buffer, size, offset))
DEFINE(readv, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
DEFINE(writev, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))

/* Other names of the same functions: programs built for 64-bit offsets, and
 * with fortified buffers. */
DEFINE(pread64, pread, (int fd, void *buffer, size_t size, off_t offset),
       (fd, buffer, size, offset))
DEFINE(pwrite64, pwrite, (int fd, const void *buffer, size_t size, off_t offset),
       (fd, buffer, size, offset))
DEFINE(__read_chk, read, (int fd, void *buffer, size_t size, size_t capacity),
       (fd, buffer, size, capacity))
DEFINE(__pread_chk, pread, (int fd, void *buffer, size_t size, off_t offset, size_t capacity),
       (fd, buffer, size, offset, capacity))
DEFINE(__pread64_chk, pread, (int fd, void *buffer, size_t size, off_t offset, size_t capacity),
       (fd, buffer, size, offset, capacity))
