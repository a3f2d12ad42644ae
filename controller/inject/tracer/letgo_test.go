// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestLookAtCalls: a thread that is stopped and let go does what it would have done.
func TestLookAtCalls(t *testing.T) {
	target := targets.StartProgram(t, "timeouts")
	tids, err := procid.Threads(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // the tracer; it ends with the goroutine
	for range targets.Fewer(100) {
		for _, tid := range tids[1:] { // each waits in one call
			thread := &Thread{ID: tid}
			if err := thread.seize(0); err != nil {
				t.Fatal(err)
			}
			if err := thread.interrupt(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if err := thread.LetGo(); err != nil {
				t.Fatal(err)
			}
		}
	}
	target.Right(t)
	target.Finish(t)
}

// interrupted waits for input or a signal with a handler, and tells what came.
const interrupted = `
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>

static void nothing(int signal) { (void)signal; }

int main(void) {
    struct epoll_event event = {.events = EPOLLIN};
    sigset_t none, usr1;
    int epoll = epoll_create1(0);
    sigemptyset(&none);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    signal(SIGUSR1, nothing);
    epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event);
    puts("ready");
    fflush(stdout);
    puts(epoll_pwait(epoll, &event, 1, -1, &none) < 0 && errno == EINTR ? "interrupted" : "input");
    return 0;
}
`

// TestSignalWhileLetGo: a signal that comes when all has been done for a call to be made
// again interrupts that call, as it would without us.
func TestSignalWhileLetGo(t *testing.T) {
	target := targets.Start(t, targets.BuildText(t, "interrupted", interrupted))
	patience.Until(t, "its waiting", func() bool {
		call, ok := CurrentCall(target.PID, target.PID)
		return ok && call.Number == unix.SYS_EPOLL_PWAIT
	})
	runtime.LockOSThread() // the tracer; it ends with the goroutine
	thread := &Thread{ID: target.PID}
	if err := thread.seize(0); err != nil {
		t.Fatal(err)
	}
	if err := thread.interrupt(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	thread.repeatCall()
	if err := unix.Tgkill(target.PID, target.PID, unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if err := thread.ptrace(unix.PTRACE_DETACH, 0, 0); err != nil {
		t.Fatal(err)
	}
	_ = target.Say("end") // it has ended already if it was interrupted at once
	target.Expect(t, "interrupted")
	target.EndWell(t)
}
