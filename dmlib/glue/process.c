/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of a process, and by one that ends. */
#include "glue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attune/filters.h"

void die(const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    dprintf(2, "%s: %s\n", program_invocation_name, message);
    _exit(GLUE_CANNOT_EXECUTE);
}

/* A field of /proc/PID/stat; the name before may hold anything. */
static uint64_t stat_field(pid_t pid, int number) {
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t size = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (size <= 0)
        return 0;
    text[size] = '\0';
    char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < number; field++)
        at = strchr(at + 1, ' ');
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

uint64_t start_ticks(pid_t pid) { return stat_field(pid, 22); }
pid_t parent_of(pid_t pid) { return (pid_t)stat_field(pid, 4); }

uint32_t own_filters(void) {
    struct attune_filters filters = {0};
    char text[1024];
    ssize_t size;
    int fd = open(ATTUNE_STATUS, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    while ((size = read(fd, text, sizeof(text))) > 0)
        for (ssize_t i = 0; i < size; i++)
            attune_count_filters(&filters, text[i]);
    close(fd);
    return filters.count;
}
