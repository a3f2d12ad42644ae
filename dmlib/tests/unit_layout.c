/* SPDX-License-Identifier: Apache-2.0 */
/* The header's check, against wrong numbers; the environment's cleaning; filters counted. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attune/filters.h"
#include "gate.h"
#include "unit.h"

static bool accepts(const struct attune_header *memory) {
    struct dm_mapping mapping;
    return dm_layout_check((void *)memory, memory->total_size, &mapping);
}

static void check_one_change(size_t offset, size_t size, uint64_t value, bool want) {
    struct attune_header *memory = make_memory(2, 2, 16);
    uint64_t total = memory->total_size;
    struct dm_mapping mapping;
    memcpy((char *)memory + offset, &value, size);
    if (dm_layout_check(memory, total, &mapping) != want) {
        fprintf(stderr, "FAIL: header offset %zu, value %#lx\n", offset, value);
        exit(1);
    }
    free(memory);
}

#define CHANGE(field, value, want)                                                                 \
    check_one_change(offsetof(struct attune_header, field),                                        \
                     sizeof(((struct attune_header *)0)->field), value, want)

static void check_changes(void) {
    CHANGE(magic, 1, false);
    CHANGE(version, 1, false);
    CHANGE(header_size, 128, false);
    CHANGE(total_size, 4096, false);
    CHANGE(point_count, 64, false);
    CHANGE(control_offset, 0, false);               /* the header itself */
    CHANGE(control_offset, 257, false);             /* not aligned */
    CHANGE(control_offset, UINT64_MAX - 63, false); /* end overflows */
    CHANGE(mailbox_offset, 256, false);             /* on the controls */
    CHANGE(slot_offset, 1ull << 40, false);
    CHANGE(slot_count, 3, false); /* into the rings */
    CHANGE(slot_count, 1, true);
    CHANGE(slot_count, UINT32_MAX, false);
    CHANGE(ring_count, 3, false);
    CHANGE(ring_count, 0, true);
    CHANGE(ring_records, 0, false);
    CHANGE(ring_records, 12, false);
    CHANGE(ring_records, 8, true);
    CHANGE(ring_records, 1u << 31, false);
    CHANGE(ring_count, 1u << 31, false);
    CHANGE(program_offset, 256, false); /* on the controls */
    CHANGE(program_count, 0, true);
    CHANGE(program_count, 3, false); /* into the tables */
    CHANGE(table_count, 2, false);
    CHANGE(table_count, UINT32_MAX, false);
    CHANGE(table_offset, 0, false); /* there is one: not in the header */
}

static void expect_inside(const void *part, uint64_t size, const struct dm_mapping *m) {
    const char *start = part, *base = (const char *)m->header;
    if (size == 0)
        return;
    EXPECT(start >= base + sizeof(*m->header));
    EXPECT(start + size <= base + m->size);
}

/* Whatever is accepted lies inside. */
static void check_random_headers(void) {
    struct attune_header *memory = make_memory(2, 2, 16), good = *memory;
    unsigned accepted = 0;
    srand(1);
    for (int i = 0; i < 200000; i++) {
        struct dm_mapping m;
        uint32_t *words = (uint32_t *)memory;
        *memory = good;
        for (int change = rand() % 3 + 1; change > 0; change--)
            words[6 + rand() % 20] = (uint32_t)rand() >> rand() % 32 << rand() % 8;
        if (!dm_layout_check(memory, good.total_size, &m))
            continue;
        accepted++;
        expect_inside(m.controls, ATTUNE_POINT_COUNT * sizeof(*m.controls), &m);
        expect_inside(m.mailbox, ATTUNE_MAILBOX_COUNT * sizeof(*m.mailbox), &m);
        expect_inside(m.slots, (m.slot_count + 1) * sizeof(*m.slots), &m);
        expect_inside(m.rings, (uint64_t)m.ring_count * m.ring_records * sizeof(*m.rings), &m);
        expect_inside(m.programs, (uint64_t)m.program_count * sizeof(*m.programs), &m);
        expect_inside(m.tables, (uint64_t)m.table_count * sizeof(*m.tables), &m);
    }
    EXPECT(accepted > 100);
    free(memory);
}

static void check_room(void) {
    const uint64_t all = UINT64_MAX, mega = 1 << 20;
    EXPECT(dm_layout_leaves_room(100 * mega, all, all));
    EXPECT(dm_layout_leaves_room(4 * mega, 64 * mega, all));
    EXPECT(!dm_layout_leaves_room(4 * mega + 1, 64 * mega, all));
    EXPECT(dm_layout_leaves_room(100 * mega, all, 8 * mega)); /* nobody locks all of that */
    EXPECT(dm_layout_leaves_room(4 * mega, all, 64 * mega));
    EXPECT(!dm_layout_leaves_room(4 * mega + 1, all, 64 * mega));
}

static long long blocks_of(const struct attune_header *header, bool commits) {
    struct stat info;
    int fd = dm_early_file(header, commits);
    if (fd < 0)
        return -1;
    EXPECT(fstat(fd, &info) == 0);
    close(fd);
    EXPECT_EQUAL(info.st_size, header->total_size);
    return info.st_blocks * 512ll;
}

/* Where memory is had only if it is there, a file has all of it before it is used. */
static void check_committed_file(void) {
    char path[] = "/tmp/attune-overcommit-XXXXXX";
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && !dm_early_commits(path) && write(fd, "1\n", 2) == 2);
    EXPECT(!dm_early_commits(path) && pwrite(fd, "2\n", 2, 0) == 2);
    EXPECT(dm_early_commits(path));
    close(fd);
    unlink(path);
    EXPECT(!dm_early_commits(path));
    struct attune_header small = {.total_size = 800 << 10}, large = {.total_size = 32 << 20};
    EXPECT(blocks_of(&small, true) >= (long long)small.total_size);
    EXPECT(blocks_of(&small, false) < (long long)small.total_size);
    EXPECT_EQUAL(blocks_of(&large, true), -1);
    EXPECT(blocks_of(&large, false) > 0);
}

static uint32_t filters_in(const char *status) {
    struct attune_filters filters = {0};
    for (; *status != '\0'; status++)
        attune_count_filters(&filters, *status);
    return filters.count;
}

static void check_filters(void) {
    EXPECT_EQUAL(filters_in("Name:\tSeccomp: 7\nSeccomp:\t2\nSeccomp_filters:\t13\nSecc: 5\n"), 13);
    EXPECT_EQUAL(filters_in("Seccomp:\t1\nSpeculation_Store_Bypass:\t1\n"), 0);
    EXPECT_EQUAL(filters_in("Seccomp:\t2\nSeccomp_filters:\t0\n"), 0);
    EXPECT_EQUAL(filters_in("Groups:\t1000 1001\n"), 0);
    EXPECT(!dm_sandboxed("1000"));
}

void test_layout(void) {
    check_filters();
    check_committed_file();
    check_room();
    struct attune_header *memory = make_memory(2, 2, 16);
    struct dm_mapping mapping;
    EXPECT(accepts(memory));
    EXPECT(!dm_layout_check(memory, sizeof(*memory) - 1, &mapping));
    free(memory);
    check_changes();
    check_random_headers();
}

/* ---- environment.c --------------------------------------------------------- */

#define LIBRARY "/run/x/libattune-dm-12.so"

static const struct {
    const char *before, *after; /* after NULL: the variable goes */
} environments[] = {
    {"LD_PRELOAD=" LIBRARY, NULL},
    {"LD_PRELOAD=libattune-dm-12.so", NULL},
    {"LD_PRELOAD=/elsewhere/libattune-dm-12.so:" LIBRARY, NULL},
    {"LD_PRELOAD= " LIBRARY " : ", NULL},
    {"LD_PRELOAD=", "LD_PRELOAD="},
    {"LD_PRELOAD= : ", "LD_PRELOAD= : "},
    {"LD_PRELOAD=a.so  b.so:", "LD_PRELOAD=a.so  b.so:"},
    {"LD_PRELOAD=" LIBRARY ":libm.so", "LD_PRELOAD=libm.so"},
    {"LD_PRELOAD=libm.so:" LIBRARY, "LD_PRELOAD=libm.so"},
    {"LD_PRELOAD=a " LIBRARY "  b", "LD_PRELOAD=a:b"},
    {"LD_PRELOAD=/a/notlibattune-dm-12.so", "LD_PRELOAD=/a/notlibattune-dm-12.so"},
    {"LD_PRELOAD=/libattune-dm-12.so/x:libattune-dm-12.sox",
     "LD_PRELOAD=/libattune-dm-12.so/x:libattune-dm-12.sox"},
    {"ATTUNE_SOCKET=/x", NULL},
    {"ATTUNE_ONCE=1", NULL},
    {"ATTUNE_FILTERS=0", NULL},
    {"ATTUNE_SOCKETS=/x", "ATTUNE_SOCKETS=/x"},
    {"LD_PRELOADED=" LIBRARY, "LD_PRELOADED=" LIBRARY},
    {"ATTUNE_JOB=7", "ATTUNE_JOB=7"},
};

/* What stays is given as it is in a program that says putenv("LD_PRELOAD="): constant. */
void test_environment(void) {
    for (size_t i = 0; i < sizeof(environments) / sizeof(environments[0]); i++) {
        const char *before = environments[i].before, *after = environments[i].after;
        bool stays = after != NULL && strcmp(before, after) == 0;
        char first[] = "A=1", last[] = "Z=26", *text = strdup(before);
        char *all[] = {first, stays ? (char *)(uintptr_t)before : text, last, NULL};
        dm_environment_clean(all, LIBRARY);
        EXPECT(all[0] == first && all[after ? 2 : 1] == last && all[after ? 3 : 2] == NULL);
        if (after != NULL && strcmp(all[1], after) != 0) {
            fprintf(stderr, "FAIL: %s became %s, want %s\n", before, all[1], after);
            exit(1);
        }
        free(text);
    }
    dm_environment_clean(NULL, LIBRARY);
}
