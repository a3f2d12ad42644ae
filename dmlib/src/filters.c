/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the program was executed in a sandbox (attune/filters.h). */
#include "attune/filters.h"

#include <fcntl.h>

#include "dmlib.h"

/* Most files are shorter. */
#define PIECE 2048

/* False: it cannot be read. */
static bool count_filters(uint32_t *count) {
    struct attune_filters filters = {0};
    char piece[PIECE];
    long size;
    int fd = (int)dm_syscall(SYS_openat, AT_FDCWD, ATTUNE_STATUS, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    while ((size = dm_syscall(SYS_read, fd, piece, sizeof(piece))) > 0)
        for (long i = 0; i < size; i++)
            attune_count_filters(&filters, piece[i]);
    dm_syscall(SYS_close, fd);
    *count = filters.count;
    return size == 0;
}

bool dm_sandboxed(const char *known) {
    uint32_t starters = 0, own;
    for (; known != NULL && *known != '\0'; known++)
        starters = attune_append(starters, *known);
    return !count_filters(&own) || own > starters;
}
