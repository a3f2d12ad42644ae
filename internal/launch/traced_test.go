// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/inherit"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// A thread of this process may stop the program, as injecting does: Wait takes
// neither these stops for the program's own, nor do they hide its end.
func TestOwnTracer(t *testing.T) {
	signals := Catch(inherit.Get())
	enough := filepath.Join(t.TempDir(), "enough")
	child, err := Start(t.Context(), Command{Args: []string{"sh", "-c", "while [ ! -e " + enough + " ]; do :; done; exit 7"}, Env: os.Environ(), Signals: signals})
	if err != nil {
		t.Fatal(err)
	}
	stops := make(chan int)
	go func() { stops <- stopAgainAndAgain(child.PID(), func() { files.Write(t, enough, "", 0o600) }) }()
	exit := child.Wait()
	if exit.Code != 7 || exit.Signal != 0 {
		t.Errorf("exit %+v, want code 7", exit)
	}
	if n := <-stops; n < enoughStops {
		t.Errorf("the program was stopped %d times", n)
	}
}

const enoughStops = 50

// stopAgainAndAgain seizes a process, stops it and lets it go until it ends, and
// returns how often it did. It tells when it has done so enoughStops times.
func stopAgainAndAgain(pid int, enough func()) (stops int) {
	runtime.LockOSThread() // for good: the thread that seized ends with its goroutine
	for {
		if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0); errno != 0 {
			return stops
		}
		if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(pid), 0, 0, 0, 0); errno != 0 {
			return stops
		}
		for {
			var info unix.Siginfo
			err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil)
			if err != nil {
				return stops // it has ended
			}
			if info.Signo != 0 {
				break
			}
			if state(pid) == 'Z' {
				return stops
			}
		}
		time.Sleep(time.Millisecond) // stopped long enough to be seen
		if unix.PtraceDetach(pid) != nil {
			return stops
		}
		if stops++; stops == enoughStops {
			enough()
		}
	}
}
