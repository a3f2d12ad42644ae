/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a word is still the GOT slot that the controller took it for. Between
 * its look and our store the library may have been unloaded, and another one may
 * lie at the same place, with other functions behind its slots.
 */
#include "dmlib.h"

#include <elf.h>
#include <stddef.h>
#include <sys/uio.h>

struct origin {
    Elf64_Rela relocation;
    Elf64_Sym symbol;
    char name[ATTUNE_ORIGIN_NAME];
};

_Static_assert(sizeof(struct origin) == sizeof(Elf64_Rela) + sizeof(Elf64_Sym) + ATTUNE_ORIGIN_NAME,
               "read in one go");

/* FNV-1a, 64 bits. */
static uint64_t print_of(const void *data, size_t size) {
    const unsigned char *bytes = data;
    uint64_t print = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++)
        print = (print ^ bytes[i]) * 0x100000001b3;
    return print;
}

/* By the kernel, which says where there is nothing to read any more. */
static bool read_origin(const struct attune_origin *from, struct origin *to) {
    uint64_t symbol = from->relocation + (uint64_t)(int64_t)from->symbol;
    uint64_t name = from->relocation + (uint64_t)(int64_t)from->name;
    struct iovec local = {.iov_base = to, .iov_len = sizeof(*to)};
    struct iovec remote[] = {
        {.iov_base = (void *)(uintptr_t)from->relocation, .iov_len = sizeof(to->relocation)},
        {.iov_base = (void *)(uintptr_t)symbol, .iov_len = sizeof(to->symbol)},
        {.iov_base = (void *)(uintptr_t)name, .iov_len = sizeof(to->name)},
    };
    return dm_memory_read(&local, remote, 3) == (long)sizeof(*to);
}

bool dm_origin_holds(const struct attune_origin *origin) {
    struct origin found;
    if (origin->relocation == 0)
        return true;
    if (!read_origin(origin, &found))
        return false;
    size_t length = 0;
    while (length < sizeof(found.name) && found.name[length] != '\0')
        length++;
    return print_of(&found, offsetof(struct origin, name) + length) == origin->print;
}
