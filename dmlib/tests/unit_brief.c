/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs are started without DMLib, and with what environment. */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "/somewhere/libattune-dm-1.so"

static void list(struct attune_header *memory, const char *path) {
    struct stat file;
    EXPECT(stat(path, &file) == 0);
    memory->brief[memory->brief_count++] = (struct attune_brief){
        .device = file.st_dev,
        .inode = file.st_ino,
        .changed = (int64_t)file.st_ctim.tv_sec * 1000000000 + file.st_ctim.tv_nsec,
    };
}

static void which_are_brief(void) {
    struct attune_header *memory = make_memory(1, 1, 64);
    use_memory(memory);
    EXPECT(!dm_brief("/bin/sh") && !dm_brief_in_path("sh"));
    list(memory, "/dev/null");
    list(memory, "/bin/sh");
    setenv("PATH", "/nonexistent::/bin", 1);
    EXPECT(dm_brief("/bin/sh") && dm_brief_in_path("sh") && dm_brief_in_path("/bin/sh"));
    EXPECT(!dm_brief("/bin/cat") && !dm_brief_in_path("cat") && !dm_brief_in_path(""));
    EXPECT(!dm_brief("/nonexistent") && !dm_brief(NULL));
    setenv("PATH", "/dev:/nonexistent", 1);
    EXPECT(!dm_brief_in_path("sh") && !dm_brief_in_path("null")); /* no program */
    unsetenv("PATH");
    EXPECT(!dm_brief_in_path("sh"));

    struct attune_brief *sh = &memory->brief[1];
    sh->changed++;
    EXPECT(!dm_brief("/bin/sh"));
    sh->changed--, sh->device++;
    EXPECT(!dm_brief("/bin/sh"));
    sh->device--;
    memory->brief_count = ATTUNE_BRIEF_COUNT + 1; /* not the controller's */
    EXPECT(!dm_brief("/bin/sh"));
    memory->brief_count = 2;
    EXPECT(dm_brief("/bin/sh"));
    memory->detached = 1;
    EXPECT(!dm_brief("/bin/sh"));
    memory->detached = 0;
    dm_go_inert();
}

static void long_path(void) {
    char name[2000];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    setenv("PATH", "/bin", 1);
    EXPECT(!dm_brief_in_path(name));
}

static void copied_environment(void) {
    static const struct {
        const char *before[5], *after[5];
        size_t room;
    } rows[] = {
        {{"A=1", "LD_PRELOAD=" LIBRARY, "ATTUNE_SOCKET=/x", "B=2"}, {"A=1", "B=2"}, 5},
        {{"LD_PRELOAD=" LIBRARY}, {NULL}, 2},
        {{"A=1", "LD_PRELOAD=" LIBRARY, "B=2"}, {"A=1", "B=2"}, 3},
        {{"A=1", "LD_PRELOAD=" LIBRARY, "B=2"}, {"none"}, 2},
        {{"A=1", "LD_PRELOAD=" LIBRARY ":other.so"}, {"none"}, 3},
        {{"A=1", "LD_PRELOAD=other.so"}, {"none"}, 3},
        {{"A=1", "ATTUNE_SOCKET=/x"}, {"none"}, 3},
        {{NULL}, {"none"}, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const *want = rows[i].after;
        char *const *before = (char *const *)(uintptr_t)rows[i].before;
        char *copy[5];
        bool copied = dm_environment_copy(before, copy, rows[i].room);
        EXPECT_EQUAL(copied, want[0] == NULL || strcmp(want[0], "none") != 0);
        for (size_t k = 0; copied; k++) {
            EXPECT((copy[k] == NULL) == (want[k] == NULL));
            if (copy[k] == NULL)
                break;
            EXPECT(strcmp(copy[k], want[k]) == 0);
        }
    }
    char *copy[1], *three[] = {"A=1", "B=2", "C=3", NULL};
    EXPECT_EQUAL(dm_environment_count(three), 3);
    EXPECT(dm_environment_count(NULL) == 0 && !dm_environment_copy(NULL, copy, 1));
}

void test_brief(void) {
    char *path = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
    which_are_brief();
    long_path();
    if (path != NULL)
        setenv("PATH", path, 1);
    free(path);
    dm_environment_prepare(LIBRARY);
    copied_environment();
}
