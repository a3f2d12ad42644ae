// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// staying has a signal interrupt what main does, in a handler that does not return, as
// where a server forks its workers in one. With APART another signal interrupts that
// handler, in code of the program's own, and is handled on another stack.
const staying = `
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *bytes;
static int pipes[2];
static char other[1 << 16];

static void interrupt_here(void) {
    long result = SYS_kill;
    __asm__ volatile("syscall" : "+a"(result) : "D"((long)getpid()), "S"((long)SIGUSR1) : "rcx", "r11", "memory");
}

static void stay(int signal) {
    if (APART && signal == SIGALRM)
        interrupt_here();
    if (write(1, "ready\n", 6) != 6)
        _exit(1);
    for (;;)
        poll(NULL, 0, 50);
}

int main(void) {
    struct sigaction action = {.sa_handler = stay, .sa_flags = FLAGS};
    struct sigaction apart = {.sa_handler = stay, .sa_flags = SA_ONSTACK};
    struct itimerval soon = {.it_value = {.tv_usec = 100000}};
    stack_t stack = {.ss_sp = other, .ss_size = sizeof(other)};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &apart, NULL);
    sigaltstack(&stack, NULL);
    bytes = malloc(1 << 26);
    if (!bytes || pipe(pipes) != 0)
        return 1;
    pthread_mutex_lock(&lock);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (;;)
        INTERRUPTED;
}
`

// A process in such a handler can be entered where the signal came in a system call in
// which no lock is held, and not elsewhere in the C library.
func TestHandlerThatStays(t *testing.T) {
	for name, row := range map[string]struct {
		interrupted, flags string
		apart              bool // the handler was interrupted as well
		want               error
	}{
		"selects":                     {"select(0, NULL, NULL, NULL, NULL)", "0", false, nil},
		"reads, begins anew":          {"if (read(pipes[0], bytes, 1) < 0) return 1", "SA_RESTART", false, nil},
		"code of its own":             {`__asm__ volatile("pause")`, "0", false, nil},
		"waits for a lock":            {"pthread_mutex_lock(&lock)", "0", false, ErrNoSafePoint},
		"in the C library":            {"memset(bytes, 1, 1 << 26)", "0", false, ErrNoSafePoint},
		"sleeps, begins anew":         {"usleep(1 << 20)", "SA_RESTART", false, nil},
		"code of its own, then apart": {`__asm__ volatile("pause")`, "0", true, nil},
		"C library, then apart":       {"memset(bytes, 1, 1 << 26)", "0", true, ErrNoSafePoint},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if row.want != nil {
				b.options.patience = 300 * time.Millisecond
			}
			target := targets.Start(t, targets.BuildText(t, "staying", staying, "-O1", "-DFLAGS="+row.flags, fmt.Sprintf("-DAPART=%t", row.apart), "-DINTERRUPTED="+row.interrupted))
			result, err := Inject(t.Context(), mustOpen(t, target.PID), b.options)
			if !errors.Is(err, row.want) {
				t.Fatalf("%v, want %v (%+v)", err, row.want, result)
			}
			if err == nil {
				free(t, result)
			}
		})
	}
}
