/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: functions of one name in several objects. A library, argv[1], calls write(2),
 * which the program has an own one of; with "bound" for the first time before the program
 * is ready. Another library, argv[2], is opened so that it finds the C library's allocator
 * (RTLD_DEEPBIND), whatever stands before that, and gives back what it took before. */
#include "target.h"
#include <sys/syscall.h>

static unsigned long written;
static void (*say)(void), (*swap)(void);

ssize_t write(int fd, const void *buffer, size_t size) {
    written++;
    return syscall(SYS_write, fd, buffer, size);
}

static void *function_of(const char *path, int flags, const char *name) {
    void *library = dlopen(path, flags);
    return library == NULL ? NULL : dlsym(library, name);
}

static void look(void) {
    unsigned long before = written;
    say();
    if (written == before)
        is_wrong();
    swap();
}

static void allocate(void) {
    void *volatile block = malloc(100); /* comes by a hook */
    free(block);
    nap();
}

static void *allocating(void *unused) {
    (void)unused;
    return forever(allocate);
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 1;
    say = (void (*)(void))function_of(argv[1], RTLD_LAZY, "say");
    swap = (void (*)(void))function_of(argv[2], RTLD_LAZY | RTLD_DEEPBIND, "swap");
    if (say == NULL || swap == NULL)
        return 1;
    swap();
    if (strcmp(argv[3], "bound") == 0)
        say();
    target_look = look;
    begin(allocating, 0);
    return target_serve(argv);
}
