/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and unloads the library that its environment names. "call" answers what
 * its functions return, "decoy" puts other code where it was. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define DECOY_BYTES 0x3000

static void *library, *volatile allocated;
static unsigned char *was;
static long (*counted)(long), (*removed)(long);

static const char *load(void) {
    Dl_info info;
    library = dlopen(getenv("RELOADED"), RTLD_NOW);
    if (library == NULL)
        return dlerror();
    counted = (long (*)(long))dlsym(library, "r_counted");
    removed = (long (*)(long))dlsym(library, "r_removed");
    const char *where = was == NULL ? "loaded" : "moved";
    if (dladdr((void *)counted, &info) && was == info.dli_fbase)
        where = "again";
    was = info.dli_fbase;
    return where;
}

/* The bytes of the library's functions, so that only the mapping tells them
 * apart. */
static const char *decoy(const unsigned char *copy) {
    void *at = mmap(was, DECOY_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != was)
        return "no decoy";
    memcpy(at, copy, 0x2000);
    mprotect(at, DECOY_BYTES, PROT_READ | PROT_EXEC);
    return "decoy";
}

int main(void) {
    char line[64];
    static unsigned char copy[0x2000];
    unsigned char *decoyed = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        allocated = malloc(1); /* a safe point */
        free(allocated);
        if (strcmp(line, "load\n") == 0) {
            puts(load());
        } else if (strcmp(line, "call\n") == 0) {
            printf("%ld %ld\n", counted(1), removed(1));
        } else if (strcmp(line, "copy\n") == 0) {
            memcpy(copy, was, sizeof(copy));
            puts("copied");
        } else if (strcmp(line, "unload\n") == 0) {
            dlclose(library);
            puts("unloaded");
        } else if (strcmp(line, "decoy\n") == 0) {
            decoyed = was;
            puts(decoy(copy));
        } else if (strcmp(line, "compare\n") == 0) {
            puts(memcmp(decoyed, copy, sizeof(copy)) == 0 ? "same" : "touched");
        } else {
            puts("idle");
        }
    }
    return 0;
}
