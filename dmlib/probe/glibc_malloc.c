/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds glibc's malloc parameters (struct malloc_par mp_, which has no symbol
 * in a stripped library) by differential probing: set each parameter to two
 * markers in turn and see which word of libc's writable segment follows.
 *
 * Runs as a process of its own with the libc of the node, never inside the
 * application. Prints one line of JSON: offsets from libc's load bias, and the
 * inode of the libc they hold for. Exits with 1 and a message when the answer
 * is not unique.
 */
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MARK_A 0x1234560u
#define MARK_B 0x0fedcb0u
#define WORDS_MAX (1u << 18)

struct segment {
    uintptr_t bias;
    uintptr_t start;
    size_t size;
    const char *path;
};

static uint32_t snapshot[WORDS_MAX]; /* the segment before the first mallopt */

static int find_libc(struct dl_phdr_info *info, size_t size, void *data) {
    struct segment *seg = data;
    uintptr_t wanted = (uintptr_t)mallopt;
    int inside = 0;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD)
            continue;
        if (wanted >= start && wanted < start + p->p_memsz)
            inside = 1;
        if (p->p_flags & PF_W) {
            seg->start = (start + 7) & ~(uintptr_t)7;
            seg->size = p->p_memsz - (seg->start - start);
        }
    }
    if (!inside)
        return 0;
    seg->bias = info->dlpi_addr;
    seg->path = info->dlpi_name;
    return 1;
}

/* Offset of the only 8-byte word that follows the parameter, 0 if not unique. */
static uintptr_t follow(const struct segment *seg, int parameter) {
    const volatile uint64_t *words = (const volatile uint64_t *)seg->start;
    size_t n = seg->size / 8;
    uintptr_t found = 0;
    static uint8_t candidate[WORDS_MAX / 2];

    if (!mallopt(parameter, MARK_A))
        return 0;
    for (size_t i = 0; i < n; i++)
        candidate[i] = words[i] == MARK_A;
    if (!mallopt(parameter, MARK_B))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (!candidate[i] || words[i] != MARK_B)
            continue;
        if (found)
            return 0;
        found = (uintptr_t)&words[i] - seg->bias;
    }
    return found;
}

/* no_dyn_threshold: the int close behind the thresholds that the first
 * mallopt turned from 0 to 1. */
static uintptr_t find_no_dyn(const struct segment *seg, uintptr_t near) {
    const volatile uint32_t *words = (const volatile uint32_t *)seg->start;
    size_t first = (seg->bias + near - seg->start) / 4;
    uintptr_t found = 0;

    for (size_t i = first; i < first + 40 && i < seg->size / 4; i++) {
        if (snapshot[i] != 0 || words[i] != 1)
            continue;
        if (found)
            return 0;
        found = (uintptr_t)&words[i] - seg->bias;
    }
    return found;
}

int main(void) {
    struct segment seg = {0};
    struct stat st;

    if (!dl_iterate_phdr(find_libc, &seg) || seg.size / 4 > WORDS_MAX || stat(seg.path, &st)) {
        fprintf(stderr, "libc's writable segment not found\n");
        return 1;
    }
    memcpy(snapshot, (const void *)seg.start, seg.size);
    uintptr_t trim = follow(&seg, M_TRIM_THRESHOLD);
    uintptr_t pad = follow(&seg, M_TOP_PAD);
    uintptr_t mmap = follow(&seg, M_MMAP_THRESHOLD);
    uintptr_t no_dyn = trim ? find_no_dyn(&seg, trim) : 0;
    if (!trim || !pad || !mmap || !no_dyn) {
        fprintf(stderr, "malloc parameters not unique: trim %#lx pad %#lx mmap %#lx no_dyn %#lx\n",
                (unsigned long)trim, (unsigned long)pad, (unsigned long)mmap,
                (unsigned long)no_dyn);
        return 1;
    }
    printf("{\"trim_threshold\":%lu,\"top_pad\":%lu,\"mmap_threshold\":%lu,"
           "\"no_dyn_threshold\":%lu,\"inode\":%lu}\n",
           (unsigned long)trim, (unsigned long)pad, (unsigned long)mmap, (unsigned long)no_dyn,
           (unsigned long)st.st_ino);
    return 0;
}
