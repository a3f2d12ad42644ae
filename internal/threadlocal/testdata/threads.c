/* SPDX-License-Identifier: Apache-2.0 */
/* threads LIBRARY [BEFORE]: two threads and, in a library that is loaded late, a variable
 * that only one of them has used. Both have used that of the library before, which is loaded
 * no more: its number is the late one's. Says "ready", then for each line where all of them
 * lie. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread char padding[100];
static __thread int own = 1;
static int *second_own;
static int second;

static int *(*find(void *library))(void) {
    return library != NULL ? (int *(*)(void))(intptr_t)dlsym(library, "where") : NULL;
}

static int *(*before)(void);

static void *wait_for_ever(void *unused) {
    padding[0] = 1;
    second_own = &own;
    if (before != NULL)
        before();
    __atomic_store_n(&second, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv) {
    char line[16];
    pthread_t thread;
    void *unloaded = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
    before = find(unloaded);
    if (before != NULL)
        before();
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    while (__atomic_load_n(&second, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    if (unloaded != NULL)
        dlclose(unloaded);
    int *(*where)(void) = find(argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        printf("%d %lx %d %lx %lx\n", (int)getpid(), (unsigned long)&own, second,
               (unsigned long)second_own, where != NULL ? (unsigned long)where() : 0);
        fflush(stdout);
    }
    return 0;
}
