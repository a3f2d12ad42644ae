/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the functions behind the hooks. Hooks may run before our constructor
 * (other libraries' constructors, ld.so itself), so each pointer starts at a
 * function that looks all of them up and goes on with the real one. dlsym may
 * allocate: memory asked for meanwhile comes from a static arena, which later
 * calls of free and realloc must recognise for the rest of the program.
 */
#include "hook.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

static void resolve(void);

/* What a hook answers inside dlsym, or where the C library has no such
 * function. */
#define BOOT(result, name, parameters, arguments, otherwise)                                       \
    static result boot_##name parameters {                                                         \
        if (!dm_thread.resolving)                                                                  \
            resolve();                                                                             \
        if (dm_real_##name != boot_##name)                                                         \
            return dm_real_##name arguments;                                                       \
        otherwise;                                                                                 \
    }                                                                                              \
    result(*dm_real_##name) parameters = boot_##name;

/* ---- the arena -------------------------------------------------------- */

#define ARENA_SIZE 16384
#define ARENA_ALIGN 16

static char arena[ARENA_SIZE] __attribute__((aligned(ARENA_ALIGN)));
static size_t arena_used;

/* The size stands before the block, for realloc. Blocks are never reused, so
 * they are zero. */
static void *arena_take(size_t size) {
    if (size > ARENA_SIZE)
        return NULL;
    size_t whole = ARENA_ALIGN + (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    size_t offset = __atomic_fetch_add(&arena_used, whole, __ATOMIC_RELAXED);
    if (offset + whole > ARENA_SIZE)
        return NULL;
    memcpy(arena + offset, &size, sizeof(size));
    return arena + offset + ARENA_ALIGN;
}

static bool in_arena(const void *address) {
    return (uintptr_t)address - (uintptr_t)arena < ARENA_SIZE;
}

static void *arena_calloc(size_t count, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : arena_take(bytes);
}

static void *arena_aligned(size_t alignment, size_t size) {
    if (alignment > ARENA_SIZE || size > ARENA_SIZE)
        return NULL; /* nor may the sum overflow */
    char *block = arena_take(size + alignment);
    uintptr_t skew = alignment ? (uintptr_t)block % alignment : 0;
    if (block == NULL || skew == 0)
        return block;
    block += alignment - skew;
    memcpy(block - ARENA_ALIGN, &size, sizeof(size));
    return block;
}

void (*dm_libc_free)(void *);
void *(*dm_libc_realloc)(void *, size_t);

/* Stand before the real ones only if the arena was ever used. */
static void free_unless_arena(void *address) {
    if (!in_arena(address))
        dm_libc_free(address);
}

static void *realloc_out_of_arena(void *address, size_t size) {
    size_t old;
    if (!in_arena(address))
        return dm_libc_realloc(address, size);
    memcpy(&old, (char *)address - ARENA_ALIGN, sizeof(old));
    void *moved = dm_real_malloc(size);
    if (moved != NULL)
        memcpy(moved, address, old < size ? old : size);
    return moved;
}

static void *arena_realloc(void *address, size_t size) {
    size_t old = 0;
    if (in_arena(address))
        memcpy(&old, (char *)address - ARENA_ALIGN, sizeof(old));
    void *moved = arena_take(size);
    if (moved != NULL && old != 0)
        memcpy(moved, address, old < size ? old : size);
    return moved;
}

static int arena_posix_memalign(void **place, size_t alignment, size_t size) {
    *place = arena_aligned(alignment, size);
    return *place == NULL ? ENOMEM : 0;
}

/* ---- first calls ------------------------------------------------------- */

BOOT(void *, malloc, (size_t size), (size), return arena_take(size))
BOOT(void, free, (void *address), (address), return )
BOOT(void *, calloc, (size_t count, size_t size), (count, size), return arena_calloc(count, size))
BOOT(void *, realloc, (void *address, size_t size), (address, size),
     return arena_realloc(address, size))
BOOT(void *, memalign, (size_t alignment, size_t size), (alignment, size),
     return arena_aligned(alignment, size))
BOOT(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size),
     return arena_aligned(alignment, size))
BOOT(int, posix_memalign, (void **place, size_t alignment, size_t size), (place, alignment, size),
     return arena_posix_memalign(place, alignment, size))

/* Nothing leads to these hooks before main. */
int (*dm_real_pthread_mutex_lock)(pthread_mutex_t *mutex);
int (*dm_real_pthread_mutex_trylock)(pthread_mutex_t *mutex);
int (*dm_real_pthread_mutex_timedlock)(pthread_mutex_t *mutex, const struct timespec *until);
int (*dm_real_pthread_mutex_clocklock)(pthread_mutex_t *mutex, clockid_t clock,
                                       const struct timespec *until);
int (*dm_real_pthread_mutex_unlock)(pthread_mutex_t *mutex);

BOOT(int, mlockall, (int flags), (flags), return (int)dm_syscall(SYS_mlockall, flags))

/* The kernel's own, as the C library calls it: a signal handler that comes while
 * functions are looked up reads and writes all the same. */
static ssize_t result_of(long answer) {
    if (answer >= 0)
        return answer;
    errno = (int)-answer;
    return -1;
}

#define BOOT_IO(name, parameters, arguments, ...)                                                  \
    BOOT(ssize_t, name, parameters, arguments, return result_of(dm_syscall(__VA_ARGS__)))

BOOT_IO(read, (int fd, void *buffer, size_t size), (fd, buffer, size), SYS_read, fd, buffer, size)
BOOT_IO(write, (int fd, const void *buffer, size_t size), (fd, buffer, size), SYS_write, fd, buffer,
        size)
BOOT_IO(pread, (int fd, void *buffer, size_t size, off_t offset), (fd, buffer, size, offset),
        SYS_pread64, fd, buffer, size, offset)
BOOT_IO(pwrite, (int fd, const void *buffer, size_t size, off_t offset), (fd, buffer, size, offset),
        SYS_pwrite64, fd, buffer, size, offset)
BOOT_IO(pread64, (int fd, void *buffer, size_t size, off_t offset), (fd, buffer, size, offset),
        SYS_pread64, fd, buffer, size, offset)
BOOT_IO(pwrite64, (int fd, const void *buffer, size_t size, off_t offset),
        (fd, buffer, size, offset), SYS_pwrite64, fd, buffer, size, offset)
BOOT_IO(readv, (int fd, const struct iovec *parts, int count), (fd, parts, count), SYS_readv, fd,
        parts, count)
BOOT_IO(writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), SYS_writev, fd,
        parts, count)
BOOT_IO(__read_chk, (int fd, void *buffer, size_t size, size_t capacity),
        (fd, buffer, size, capacity), SYS_read, fd, buffer, size < capacity ? size : capacity)
BOOT_IO(__pread_chk, (int fd, void *buffer, size_t size, off_t offset, size_t capacity),
        (fd, buffer, size, offset, capacity), SYS_pread64, fd, buffer,
        size < capacity ? size : capacity, offset)
BOOT_IO(__pread64_chk, (int fd, void *buffer, size_t size, off_t offset, size_t capacity),
        (fd, buffer, size, offset, capacity), SYS_pread64, fd, buffer,
        size < capacity ? size : capacity, offset)

/* ---- looking up --------------------------------------------------------- */

/* Where a name is looked up: behind this library if it was preloaded, else in
 * one object after the other. */
static void *find_next(const char *name) { return dlsym(RTLD_NEXT, name); }

static void look_up(void *(*find)(const char *), void **place, const char *name) {
    void *found = find(name);
    if (found != NULL)
        __atomic_store_n(place, found, __ATOMIC_RELEASE);
}

static void look_up_free(void *(*find)(const char *)) {
    void *real_free = find("free");
    void *real_realloc = find("realloc");
    if (real_free == NULL || real_realloc == NULL)
        return; /* no C library yet */
    memcpy(&dm_libc_free, &real_free, sizeof(dm_libc_free));
    memcpy(&dm_libc_realloc, &real_realloc, sizeof(dm_libc_realloc));
    bool filter = __atomic_load_n(&arena_used, __ATOMIC_RELAXED) != 0;
    __atomic_store_n(&dm_real_free, filter ? free_unless_arena : dm_libc_free, __ATOMIC_RELEASE);
    __atomic_store_n(&dm_real_realloc, filter ? realloc_out_of_arena : dm_libc_realloc,
                     __ATOMIC_RELEASE);
}

static void look_up_all(void *(*find)(const char *)) {
#define DM_REAL(result, name, parameters)                                                          \
    if (#name[0] != 'f' && __builtin_strcmp(#name, "realloc") != 0)                                \
        look_up(find, (void **)&dm_real_##name, #name);
#include "real.def"
#undef DM_REAL
    look_up_free(find); /* last: only now is it known whether the arena was used */
}

/* Two threads may do this at once: they find the same. */
static DM_COLD void resolve(void) {
    int saved = errno;
    dm_thread.resolving = 1;
    look_up_all(find_next);
    dm_thread.resolving = 0;
    errno = saved;
}

void dm_real_resolve_preloaded(void) {
    if (dm_real_malloc == boot_malloc)
        resolve();
}

/* What an object itself defines, not what it sees. */
static void *defined_in(const struct link_map *object, const char *name) {
    void *handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
    Dl_info info;
    if (handle == NULL)
        return NULL;
    void *found = dlsym(handle, name);
    if (found != NULL && (dladdr(found, &info) == 0 || (uintptr_t)info.dli_fbase != object->l_addr))
        found = NULL;
    dlclose(handle);
    return found;
}

/* In the loader's order. The program itself is left out: for a function that
 * it imports, dlsym may answer with its PLT entry, which goes through the very
 * GOT slot that will lead to our hook. One that brings its own allocator is not
 * attached to. */
static void *find_defined(const char *name) {
    const struct link_map *object = dlopen(NULL, RTLD_LAZY);
    extern const char __ehdr_start[] DM_HIDDEN;
    for (object = object ? object->l_next : NULL; object != NULL; object = object->l_next) {
        if (object->l_addr == (uintptr_t)__ehdr_start || object->l_name[0] == '\0')
            continue;
        void *found = defined_in(object, name);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* What the controller found: dlopen and dlsym for each object and each name
 * take milliseconds in a program of many libraries. */
static const struct attune_attach_real *given;
static uint32_t given_count;

static void *find_given(const char *name) {
    for (uint32_t i = 0; i < given_count; i++)
        if (strncmp(given[i].name, name, sizeof(given[i].name)) == 0)
            return (void *)(uintptr_t)given[i].address;
    return find_defined(name);
}

bool dm_real_resolve_attached(const struct attune_attach_real *known, uint32_t count) {
    if (dm_real_malloc != boot_malloc)
        return true; /* preloaded, or attached before */
    given = known;
    given_count = count;
    bool found =
        find_given("malloc") != NULL && find_given("free") != NULL && find_given("realloc") != NULL;
    if (found)
        look_up_all(find_given);
    given_count = 0;
    return found;
}
