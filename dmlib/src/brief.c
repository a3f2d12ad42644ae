/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are started without DMLib: those that have always been brief
 * (attune_brief). Called by whoever is about to execute one: a child of fork or of
 * vfork, perhaps in a signal handler. Only loads and system calls; a filter that
 * lets a program be executed lets its loader ask for files, too.
 */
#include "dmlib.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct attune_header *table(uint32_t *count) {
    const struct attune_header *header = dm_live_header();
    if (header == NULL)
        return NULL;
    *count = __atomic_load_n(&header->brief_count, __ATOMIC_ACQUIRE);
    if (*count > ATTUNE_BRIEF_COUNT)
        *count = 0; /* nothing that the controller writes */
    return *count == 0 ? NULL : header;
}

static bool listed(const struct stat *file) {
    uint32_t count;
    const struct attune_header *header = table(&count);
    int64_t changed = (int64_t)file->st_ctim.tv_sec * 1000000000 + file->st_ctim.tv_nsec;
    for (uint32_t i = 0; header != NULL && i < count; i++) {
        const struct attune_brief *brief = &header->brief[i];
        if (__atomic_load_n(&brief->inode, __ATOMIC_RELAXED) == file->st_ino &&
            __atomic_load_n(&brief->device, __ATOMIC_RELAXED) == file->st_dev &&
            __atomic_load_n(&brief->changed, __ATOMIC_RELAXED) == changed)
            return true;
    }
    return false;
}

static bool any(void) {
    uint32_t count;
    return table(&count) != NULL;
}

static bool look(const char *path, struct stat *file) {
    return dm_syscall(SYS_newfstatat, AT_FDCWD, path, file, AT_NO_AUTOMOUNT) == 0;
}

bool dm_brief(const char *path) {
    struct stat file;
    return any() && look(path, &file) && listed(&file);
}

/* Longer paths are not looked at. */
#define PATH_ROOM 512

/* DIRECTORY/NAME; an empty directory is the present one. */
static bool join(char path[PATH_ROOM], const char *directory, size_t length, const char *name) {
    size_t rest = strlen(name) + 1;
    if (length + 1 + rest > PATH_ROOM)
        return false;
    memcpy(path, directory, length);
    if (length > 0)
        path[length++] = '/';
    memcpy(path + length, name, rest);
    return true;
}

static bool may_execute(const struct stat *file) {
    return S_ISREG(file->st_mode) && (file->st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
}

bool dm_brief_in_path(const char *name) {
    if (!any())
        return false;
    if (strchr(name, '/') != NULL)
        return dm_brief(name);
    const char *list = getenv("PATH");
    while (list != NULL && *name != '\0') {
        const char *end = strchrnul(list, ':');
        char path[PATH_ROOM];
        struct stat file;
        if (!join(path, list, (size_t)(end - list), name))
            return false;
        if (look(path, &file) && may_execute(&file))
            return listed(&file);
        list = *end == '\0' ? NULL : end + 1;
    }
    return false;
}
