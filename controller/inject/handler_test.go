// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// staying has a signal interrupt what main does, in a handler that does not return, as
// where a server forks its workers in one.
const staying = `
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *bytes;
static int pipes[2];

static void stay(int signal) {
    if (signal == SIGALRM && write(1, "ready\n", 6) != 6)
        _exit(1);
    for (;;)
        poll(NULL, 0, 50);
}

int main(void) {
    struct sigaction action = {.sa_handler = stay, .sa_flags = FLAGS};
    struct itimerval soon = {.it_value = {.tv_usec = 100000}};
    sigaction(SIGALRM, &action, NULL);
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
		want               error
	}{
		"selects":             {"select(0, NULL, NULL, NULL, NULL)", "0", nil},
		"reads, begins anew":  {"if (read(pipes[0], bytes, 1) < 0) return 1", "SA_RESTART", nil},
		"code of its own":     {`__asm__ volatile("pause")`, "0", nil},
		"waits for a lock":    {"pthread_mutex_lock(&lock)", "0", ErrNoSafePoint},
		"in the C library":    {"memset(bytes, 1, 1 << 26)", "0", ErrNoSafePoint},
		"sleeps, begins anew": {"usleep(1 << 20)", "SA_RESTART", nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if row.want != nil {
				b.options.patience = 300 * time.Millisecond
			}
			target := targets.Start(t, targets.BuildText(t, "staying", staying, "-O1", "-DFLAGS="+row.flags, "-DINTERRUPTED="+row.interrupted))
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
