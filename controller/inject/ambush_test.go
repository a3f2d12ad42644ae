// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// handling comes to a function all the time, and has another thread that handles a
// signal and ends.
const handling = `
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

unsigned long started, handled;

__attribute__((noinline)) void visited(void) { __asm__ volatile(""); }

static void handle(int signal) { handled = signal; }

static void *other(void *argument) {
    pause(); // which only a signal ends
    return argument;
}

int main(void) {
    pthread_t thread;
    signal(SIGUSR1, handle);
    pthread_create(&thread, NULL, other, NULL);
    puts("ready");
    fflush(stdout);
    for (;;) {
        visited();
        usleep(1000);
    }
}
`

// waiting returns code that sets one word and returns another one when that is not 0.
func waiting(started, handled uint64) []byte {
	code := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, started) // movabs $started,%rax
	code = append(code, 0xff, 0x00, 0x48, 0xb8)                           // incl (%rax); movabs $handled,%rax
	code = binary.LittleEndian.AppendUint64(code, handled)
	// 1: pause; mov (%rax),%rcx; test %rcx,%rcx; je 1b; mov %rcx,%rax; ret
	return append(code, 0xf3, 0x90, 0x48, 0x8b, 0x08, 0x48, 0x85, 0xc9, 0x74, 0xf6, 0x48, 0x89, 0xc8, 0xc3)
}

// startHandling starts a program that is handling. other is its other thread, at where a
// symbol of it is.
func startHandling(t *testing.T) (target *targets.Target, other int, at func(name string, kind objfile.SymbolKind) uint64) {
	t.Helper()
	target = targets.Start(t, targets.BuildText(t, "handling.c", handling, "-O1"))
	tids, err := procid.Threads(target.PID)
	if err != nil || len(tids) != 2 {
		t.Fatalf("threads %v, %v", tids, err)
	}
	return target, tids[1], func(name string, kind objfile.SymbolKind) uint64 {
		t.Helper()
		found, err := objfile.Resolve(target.PID, "handling*", name, kind)
		if err != nil {
			t.Fatal(err)
		}
		return found.Address
	}
}

// TestNobodyWaitsForEndedThread: that the thread has ended which was to come by is said at
// once.
func TestNobodyWaitsForEndedThread(t *testing.T) {
	target, other, at := startHandling(t)
	process := mustOpen(t, target.PID)
	refused := make(chan error, 1)
	go func() {
		_, _, err := Execute(t.Context(), process, ownThread(), patiently(ExecuteOptions{At: at("visited", objfile.Function), Thread: other}))
		refused <- err
	}()
	patience.Until(t, "the thread to be watched", func() bool {
		s, err := procid.ReadStatus(other)
		return err == nil && s.Tracer != 0
	})
	if err := unix.Tgkill(target.PID, other, unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	err := patience.Receive(t, "the end of the search", refused)
	if !errors.Is(err, ErrNoSafePoint) || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("got %v", err)
	}
}

// TestOthersGoOnDuringExecution: what is executed where a thread comes by itself may
// wait for another thread, which gets a signal meanwhile.
func TestOthersGoOnDuringExecution(t *testing.T) {
	target, other, at := startHandling(t)
	process := mustOpen(t, target.PID)
	started := at("started", objfile.Variable)
	value := make(chan uint64, 1)
	go func() {
		defer close(value)
		code := waiting(started, at("handled", objfile.Variable))
		v, _, err := Execute(t.Context(), process, code, patiently(ExecuteOptions{At: at("visited", objfile.Function), Timeout: 10 * time.Second}))
		if err != nil {
			t.Error(err)
		}
		value <- v
	}()
	patience.Until(t, "the code to begin", func() bool {
		var word [8]byte
		return process.Read(started, word[:]) == nil && word != [8]byte{}
	})
	if err := unix.Tgkill(target.PID, other, unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if got := <-value; got != uint64(unix.SIGUSR1) {
		t.Errorf("value %d, want %d", got, unix.SIGUSR1)
	}
}

// gaps has a thread that mostly waits in vfork(2) for a child, which sleeps for so many
// milliseconds, and others that take note of how long they do not get on: it tells the
// most since it was asked before.
const gaps = `
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct timespec life = {.tv_nsec = CHILD * 1000000L};
static long longest;

void never(void) { __asm__ volatile(""); }

static void *parent(void *unused) {
    for (;;) {
        pid_t child = vfork();
        if (child == 0) {
            syscall(SYS_nanosleep, &life, NULL);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return unused;
}

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *other(void *unused) {
    for (long before = now(), after;; before = after) {
        usleep(1000);
        after = now();
        if (after - before > __atomic_load_n(&longest, __ATOMIC_RELAXED))
            __atomic_store_n(&longest, after - before, __ATOMIC_RELAXED);
    }
    return unused;
}

int main(void) {
    char line[64];
    pthread_t thread;
    pthread_create(&thread, NULL, parent, NULL);
    for (int i = 0; i < 8; i++)
        pthread_create(&thread, NULL, other, NULL);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        usleep(2000); /* a gap that has ended is noted */
        printf("%ld\n", __atomic_exchange_n(&longest, 0, __ATOMIC_RELAXED));
        fflush(stdout);
    }
    return 0;
}
`

// TestNobodyWaitsForASleeper: when a watch ends, no thread stands still until another one
// has stopped, which sleeps uninterruptibly.
func TestNobodyWaitsForASleeper(t *testing.T) {
	const child = 800 // milliseconds
	target := targets.Start(t, targets.BuildText(t, "gaps", gaps, "-DCHILD="+strconv.Itoa(child)))
	never, err := objfile.Resolve(target.PID, "gaps", "never", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	rounds, long := max(4, targets.Fewer(20)), 0
	target.Ask(t, "gap")
	for range rounds {
		options := ExecuteOptions{At: never.Address, Patience: 50 * time.Millisecond}
		if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), constant(1), options); !errors.Is(err, ErrNoSafePoint) {
			t.Fatal(err)
		}
		gap, err := strconv.Atoi(target.Ask(t, "gap"))
		if err != nil {
			t.Fatal(err)
		}
		if gap > child/2 {
			long++
		}
	}
	if long > rounds/4 { // a machine may be busy for a moment
		t.Errorf("in %d of %d rounds threads stood still for half of the child's sleep", long, rounds)
	}
	target.EndWell(t)
}
