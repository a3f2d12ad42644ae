/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that the tests run under DMLib: `target WHAT [NUMBER...]`. It
 * knows nothing of DMLib and fails if anything is not as it would be without.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "target: %s:%d: %s, errno %d\n", __FILE__, __LINE__, #condition,       \
                    errno);                                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static long number[4];
static const char *self;

static void lock_pairs(pthread_mutex_t *mutex, long count) {
    while (count-- > 0) {
        errno = EDOM;
        int locked = pthread_mutex_lock(mutex);
        int unlocked = pthread_mutex_unlock(mutex);
        if (locked != 0 || unlocked != 0 || errno != EDOM)
            exit(3);
    }
}

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

/* ---- threads ------------------------------------------------------------ */

static void *worker(void *unused) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    lock_pairs(&mutex, number[1]);
    for (long i = 0; i < number[2]; i++)
        free(malloc(4242));
    return unused;
}

/* threads COUNT PAIRS MALLOCS: all at once */
static void threads(void) {
    pthread_t *all = calloc((size_t)number[0], sizeof(*all));
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (long i = 0; i < number[0]; i++)
        CHECK(pthread_create(&all[i], &small, worker, NULL) == 0);
    for (long i = 0; i < number[0]; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    free(all);
}

/* sequence COUNT PAIRS: one thread after the other */
static void sequence(void) {
    for (long i = 0; i < number[0]; i++) {
        pthread_t one;
        CHECK(pthread_create(&one, NULL, worker, NULL) == 0);
        CHECK(pthread_join(one, NULL) == 0);
        usleep(500);
    }
}

static pthread_key_t key;

static void at_end(void *count) { lock_pairs(&own, *(long *)count); }

static void *ends(void *unused) {
    pthread_setspecific(key, &number[0]);
    lock_pairs(&own, 1);
    return unused;
}

/* destructor PAIRS: hooks in the destructor of a key younger than DMLib's */
static void destructor(void) {
    pthread_t one;
    CHECK(pthread_key_create(&key, at_end) == 0);
    CHECK(pthread_create(&one, NULL, ends, NULL) == 0);
    CHECK(pthread_join(one, NULL) == 0);
}

static int pipe_ends[2];
static bool cleaned;

static void clean(void *unused) {
    (void)unused;
    cleaned = true;
}

static void *reads(void *unused) {
    char byte;
    pthread_cleanup_push(clean, NULL);
    for (;;)
        CHECK(read(pipe_ends[0], &byte, 1) == 1);
    pthread_cleanup_pop(0);
    return unused;
}

/* cancel: a thread is cancelled while it waits in read */
static void cancel(void) {
    pthread_t one;
    void *result;
    CHECK(pipe(pipe_ends) == 0);
    CHECK(pthread_create(&one, NULL, reads, NULL) == 0);
    CHECK(write(pipe_ends[1], "ab", 2) == 2);
    usleep(20000);
    CHECK(pthread_cancel(one) == 0);
    CHECK(pthread_join(one, &result) == 0);
    CHECK(result == PTHREAD_CANCELED && cleaned);
    CHECK(write(pipe_ends[1], "c", 1) == 1);
    char byte;
    CHECK(read(pipe_ends[0], &byte, 1) == 1 && byte == 'c');
}

/* hold MICROSECONDS: lock waits for another thread so long */
static void *holder(void *unused) {
    pthread_mutex_lock(&own);
    CHECK(write(pipe_ends[1], "x", 1) == 1);
    usleep((useconds_t)number[0]);
    pthread_mutex_unlock(&own);
    return unused;
}

static void hold(void) {
    pthread_t one;
    char byte;
    CHECK(pipe(pipe_ends) == 0);
    CHECK(pthread_create(&one, NULL, holder, NULL) == 0);
    CHECK(read(pipe_ends[0], &byte, 1) == 1);
    lock_pairs(&own, 1);
    pthread_join(one, NULL);
}

/* ---- signals ------------------------------------------------------------ */

static volatile sig_atomic_t handled;
static int null;
static pthread_mutex_t handlers = PTHREAD_MUTEX_INITIALIZER;

static void handler(int signal) {
    (void)signal;
    if (write(null, "x", 1) != 1)
        _exit(4);
    pthread_mutex_lock(&handlers);
    pthread_mutex_unlock(&handlers);
    handled++;
}

static void tick_with(void (*function)(int), int flags) {
    struct sigaction action = {.sa_handler = function, .sa_flags = flags};
    struct itimerval every = {{0, 50}, {0, 50}};
    null = open("/dev/null", O_WRONLY);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
}

static void stop_ticking(void) {
    struct itimerval never = {0};
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
}

/* signals PAIRS: prints how often the handler ran */
static void signals(void) {
    tick_with(handler, SA_RESTART);
    lock_pairs(&own, number[0]);
    stop_ticking();
    printf("%d\n", (int)handled);
}

static sigjmp_buf escape;
static volatile sig_atomic_t can_escape;

static void jump(int signal) {
    (void)signal;
    if (!can_escape)
        return; /* nowhere yet, or to a frame that is gone */
    can_escape = 0;
    handled++;
    siglongjmp(escape, 1);
}

/* A mutex that is new each time: the jump may leave it locked. */
static void until_jump(void) {
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    if (sigsetjmp(escape, 1) != 0)
        return;
    can_escape = 1;
    for (;;) {
        pthread_mutex_lock(&fresh);
        pthread_mutex_unlock(&fresh);
    }
}

/* jumps JUMPS PAIRS: handlers leave by longjmp; then all must be well again */
static void jumps(void) {
    tick_with(jump, SA_RESTART);
    while (handled < number[0])
        until_jump();
    stop_ticking();
    lock_pairs(&own, number[1]);
}

/* ---- processes ----------------------------------------------------------- */

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

static void work_until_killed(void) {
    signal(SIGTERM, leave);
    for (;;) {
        lock_pairs(&own, 100);
        usleep(100);
    }
}

/* fork DEPTH: each process forks the next; the last works until SIGTERM */
static void forks(void) {
    for (long i = 0; i < number[0]; i++) {
        lock_pairs(&own, 1);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child != 0) {
            int status;
            CHECK(waitpid(child, &status, 0) == child && status == 0);
            return;
        }
        /* long enough to be registered as well before forking on */
        for (int round = 0; i + 1 < number[0] && round < 50; round++) {
            lock_pairs(&own, 100);
            usleep(1000);
        }
    }
    work_until_killed();
}

/* brief COUNT: children that exit at once */
static void brief(void) {
    for (long i = 0; i < number[0]; i++) {
        pid_t child = fork();
        if (child == 0) {
            lock_pairs(&own, 10);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void wait_ok(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* vfork: exec after vfork, and an exec that fails in between */
static void vforks(void) {
    lock_pairs(&own, 10);
    pid_t child = vfork();
    if (child == 0) {
        execl("/nonexistent", "x", NULL);
        execl(self, self, "pairs", "7", NULL);
        _exit(9);
    }
    wait_ok(child);
    lock_pairs(&own, 10);
}

/* spawn: the same by posix_spawn */
static void spawns(void) {
    char *arguments[] = {(char *)self, "pairs", "7", NULL};
    pid_t child;
    lock_pairs(&own, 10);
    CHECK(posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0);
    wait_ok(child);
    lock_pairs(&own, 10);
}

/* limit MEGABYTES: goes on as `pairs 7` with so little address space */
static void limit(void) {
    struct rlimit space = {(rlim_t)number[0] << 20, (rlim_t)number[0] << 20};
    CHECK(setrlimit(RLIMIT_AS, &space) == 0);
    execl(self, self, "pairs", "7", NULL);
    CHECK(false);
}

/* environment: what children get to see */
static void environment(void) {
    fflush(stdout);
    CHECK(system("echo \"${LD_PRELOAD-none} ${ATTUNE_SOCKET+socket} ${KEPT-lost}\"") == 0);
}

/* ---- descriptors, libraries ------------------------------------------------ */

/* pairs COUNT */
static void pairs(void) { lock_pairs(&own, number[0]); }

/* open: descriptors are what they would have been */
static void open_first(void) {
    int fd = open("/dev/null", O_RDONLY);
    printf("%d\n", fd);
}

/* closeall PAIRS: a daemon's start */
static void close_all(void) {
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    lock_pairs(&own, number[0]);
    CHECK(open("/dev/null", O_RDONLY) == 3);
}

#ifndef STATIC

/* dlopen PAIRS: in a library that came late */
static void load(void) {
    const char *path = getenv("PLUGIN");
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library != NULL);
    void (*lock)(long);
    *(void **)&lock = dlsym(library, "plugin_lock");
    CHECK(lock != NULL);
    lock(number[0]);
    CHECK(dlclose(library) == 0);
}

#endif

/* io COUNT: read and write in all their forms, counted by the test */
static void io(void) {
    char text[64];
    int fd = open("/dev/zero", O_RDWR);
    for (long i = 0; i < number[0]; i++) {
        CHECK(read(fd, text, 10) == 10);
        CHECK(pread(fd, text, 20, 0) == 20);
        CHECK(write(fd, text, 30) == 30);
        CHECK(pwrite(fd, text, 40, 0) == 40);
        errno = 0;
        CHECK(read(-1, text, 1) == -1 && errno == EBADF);
    }
}

/* heap COUNT: every way to get memory */
static void heap(void) {
    for (long i = 0; i < number[0]; i++) {
        void *place = NULL;
        char *block = calloc(10, 11);
        for (int at = 0; at < 110; at++)
            CHECK(block[at] == 0);
        memset(block, 1, 110);
        block = realloc(block, 5000);
        CHECK(block != NULL && block[109] == 1);
        free(block);
        block = aligned_alloc(256, 512);
        CHECK((unsigned long)block % 256 == 0);
        free(block);
        CHECK(posix_memalign(&place, 128, 333) == 0 && (unsigned long)place % 128 == 0);
        free(place);
        free(memalign(64, 100));
        free(NULL);
        errno = 0;
        CHECK(malloc((size_t)-1 / 2) == NULL && errno == ENOMEM);
        CHECK(calloc((size_t)-1, 16) == NULL);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} subjects[] = {
    {"threads", threads},
    {"sequence", sequence},
    {"destructor", destructor},
    {"cancel", cancel},
    {"hold", hold},
    {"signals", signals},
    {"jumps", jumps},
    {"fork", forks},
    {"brief", brief},
    {"vfork", vforks},
    {"spawn", spawns},
    {"limit", limit},
    {"pairs", pairs},
    {"environment", environment},
    {"open", open_first},
    {"closeall", close_all},
#ifndef STATIC
    {"dlopen", load},
#endif

    {"io", io},
    {"heap", heap},
    {"work", work_until_killed},
};

int main(int argc, char **argv) {
    self = argv[0];
    for (int i = 2; i < argc && i < 6; i++)
        number[i - 2] = atol(argv[i]);
    for (size_t i = 0; argc > 1 && i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        if (strcmp(argv[1], subjects[i].name) != 0)
            continue;
        subjects[i].run();
        printf("done\n");
        return 0;
    }
    fprintf(stderr, "target: what?\n");
    return 2;
}
