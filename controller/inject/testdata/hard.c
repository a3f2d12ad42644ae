// SPDX-License-Identifier: Apache-2.0
/* A program that makes it hard to enter it. argv[1] says how. It answers every
 * line with "right" if all has gone as it should, and ends with status 7. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define STATUS 7

static volatile unsigned long wrong, steps, signals;
static char **arguments;

static void step(void) { __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED); }
static void is_wrong(void) { __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED); }

static void begin(void *(*work)(void *), size_t stack) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack != 0)
        pthread_attr_setstacksize(&attributes, stack);
    if (pthread_create(&thread, &attributes, work, NULL) != 0)
        is_wrong();
}

static void *forever(void (*once)(void)) {
    for (;; step())
        once();
    return NULL;
}

static void compute(void) {
    volatile double x = 1.0;
    for (int n = 1; n < 2000; n++)
        x = x * n / n;
    if (x != 1.0)
        is_wrong();
}

static void *computing(void *unused) {
    (void)unused;
    return forever(compute);
}

static void *sleeping(void *unused) {
    (void)unused;
    for (;; step())
        usleep(200000);
    return NULL;
}

/* ---- threads that come and go ------------------------------------------ */

static void *brief(void *unused) {
    (void)unused;
    void *volatile block = malloc(1000); /* not to be left out */
    free(block);
    return NULL;
}

static void one_more(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, brief, NULL) != 0 || pthread_join(thread, NULL) != 0)
        is_wrong();
}

static void *churning(void *unused) {
    (void)unused;
    return forever(one_more);
}

/* ---- signals ------------------------------------------------------------- */

static void count(int signal) {
    (void)signal;
    signals++;
}

static void sleep_exactly(void) {
    struct timespec left = {.tv_nsec = 3000000};
    while (nanosleep(&left, &left) != 0)
        if (errno != EINTR)
            is_wrong();
}

static void *exact(void *unused) {
    (void)unused;
    return forever(sleep_exactly);
}

static void alarm_storm(void) {
    struct sigaction action = {.sa_handler = count};
    struct itimerval often = {{.tv_usec = 500}, {.tv_usec = 500}};
    sigaction(SIGALRM, &action, NULL);
    action.sa_flags = SA_RESTART;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    begin(computing, 0);
    begin(exact, 0);
    sigset_t alarms; /* the main thread reads lines, which must not be cut off */
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
}

/* A handler that stays, on a stack of its own. */
static void stay(int signal) {
    (void)signal;
    forever(compute);
}

static volatile int prepared;

static void *in_handler(void *unused) {
    (void)unused;
    stack_t other = {.ss_sp = malloc(32768), .ss_size = 32768};
    struct sigaction action = {.sa_handler = stay, .sa_flags = SA_ONSTACK};
    sigaltstack(&other, NULL);
    sigaction(SIGUSR2, &action, NULL);
    prepared = 1;
    return forever(compute);
}

static void begin_in_handler(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_handler, NULL) != 0)
        is_wrong();
    while (!prepared)
        usleep(1000);
    usleep(1000);
    pthread_kill(thread, SIGUSR2);
}

/* ---- 4 KB of stack -------------------------------------------------------- */

static void *coroutine(void *unused) {
    (void)unused;
    ucontext_t here, there;
    char *stack = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack + 4096, 4096, PROT_READ | PROT_WRITE);
    getcontext(&there);
    there.uc_stack.ss_sp = stack + 4096;
    there.uc_stack.ss_size = 4096;
    there.uc_link = &here;
    makecontext(&there, (void (*)(void))computing, 1, NULL);
    swapcontext(&here, &there);
    return NULL;
}

/* ---- the loader, vfork ---------------------------------------------------- */

static void load(void) {
    void *library = dlopen("libutil.so.1", RTLD_NOW);
    if (library == NULL)
        library = dlopen("libm.so.6", RTLD_NOW);
    if (library == NULL || dlclose(library) != 0)
        is_wrong();
}

static void *loading(void *unused) {
    (void)unused;
    return forever(load);
}

static void spawn(void) {
    int status = -1;
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        is_wrong();
}

static void *spawning(void *unused) {
    (void)unused;
    return forever(spawn);
}

static void *slow_vfork(void *unused) {
    (void)unused;
    pid_t child = vfork();
    if (child == 0) {
        const struct timespec pause = {.tv_sec = 2};
        syscall(SYS_nanosleep, &pause, NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return NULL;
}

/* ---- seccomp, debug registers ---------------------------------------------- */

/* Kills the process for one system call. */
static void forbid(unsigned number) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        is_wrong();
}

static volatile long watched;
static int watcher = -1;
static unsigned long stores;

static void watch(void) {
    struct perf_event_attr attributes = {.type = PERF_TYPE_BREAKPOINT,
                                         .size = sizeof(attributes),
                                         .bp_type = HW_BREAKPOINT_W,
                                         .bp_addr = (uintptr_t)&watched,
                                         .bp_len = HW_BREAKPOINT_LEN_8,
                                         .exclude_kernel = 1};
    watcher = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
}

static void look_at_watcher(void) {
    unsigned long long seen = 0;
    if (watcher < 0)
        return;
    for (int i = 0; i < 100; i++, stores++)
        watched++;
    if (read(watcher, &seen, sizeof(seen)) != sizeof(seen) || seen != stores)
        is_wrong();
}

/* ---- main ------------------------------------------------------------------- */

static int is(const char *what) { return strcmp(arguments[1], what) == 0; }

static void set_up(void) {
    if (is("many"))
        for (int i = 0; i < 2000; i++)
            begin(sleeping, 16384);
    else if (is("churn"))
        begin(churning, 0), begin(churning, 0);
    else if (is("alarms"))
        alarm_storm();
    else if (is("handler"))
        begin_in_handler();
    else if (is("small"))
        begin(coroutine, 0), begin(coroutine, 0);
    else if (is("dlopen"))
        begin(loading, 0), begin(computing, 0);
    else if (is("vfork"))
        begin(spawning, 0), begin(computing, 0);
    else if (is("slow-vfork"))
        begin(slow_vfork, 0);
    else if (is("forbid"))
        forbid((unsigned)atoi(arguments[2])), begin(computing, 0);
    else if (is("forbid-one"))
        begin(computing, 0), forbid((unsigned)atoi(arguments[2]));
    else if (is("watch"))
        watch(), begin(computing, 0);
    else
        begin(computing, 0);
}

static void answer(void) {
    unsigned long before = steps;
    look_at_watcher();
    for (int i = 0; i < 20000 && steps == before && !is("slow-vfork"); i++)
        usleep(1000);
    if (steps == before && !is("slow-vfork"))
        is_wrong();
    printf(wrong == 0 ? "right\n" : "%lu wrong\n", wrong);
    fflush(stdout);
}

int main(int argc, char **argv) {
    char line[4096];
    arguments = argv;
    if (argc < 2)
        return 1;
    set_up();
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strcmp(line, "exec\n") == 0)
            execl("/proc/self/exe", argv[0], "plain", (char *)NULL);
        if (strcmp(line, "end\n") == 0)
            break;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "load ", 5) == 0 && dlopen(line + 5, RTLD_NOW) == NULL)
            is_wrong();
        answer();
    }
    printf("end\n");
    fflush(stdout);
    _exit(wrong == 0 ? STATUS : 1);
}
