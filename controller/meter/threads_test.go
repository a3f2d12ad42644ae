// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/procid"
)

func TestEndedThreads(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own := os.Getpid()
	if got := endedThreads(own, []int{unix.Gettid(), 1, own, 1 << 22}); !slices.Equal(got, []int{1, 1 << 22}) {
		t.Errorf("ended: %v; want 1 and %d, which are no threads of this process", got, 1<<22)
	}
	if got := endedThreads(1<<22, []int{1}); len(got) > 0 {
		t.Errorf("ended: %v of a process that cannot be read", got)
	}
}

// TestEndedThreadsAreAskedAfter: a thread that starts after the slots were read, and
// before the threads are looked at, lives.
func TestEndedThreadsAreAskedAfter(t *testing.T) {
	memory, err := shm.New(shm.Geometry{Slots: 4, Rings: 1, RingRecords: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	app := dmtest.Map(t, memory.File().Fd())
	app.Claim(os.Getpid(), 0)
	ended := app.Claim(1<<22, 0)
	tid, end := make(chan int), make(chan struct{})
	closed := memory.Reclaim(func(tids []int) []int {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			tid <- unix.Gettid()
			<-end
		}()
		born := <-tid
		app.Claim(born, 0)
		return endedThreads(os.Getpid(), append(tids, born))
	})
	close(end)
	if state := *app.SlotWord(ended.Slot(), abi.SlotStateAt); closed != 1 || uint64(state) == abi.SlotUsed {
		t.Errorf("closed %d slots, and that of the ended thread is in state %d", closed, state)
	}
}

// In a container the process knows its threads by other ids.
func TestEndedThreadsInAnotherNamespace(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo $$; read end")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Skipf("no pid namespaces for this user: %v", err)
	}
	if nested, err := procid.Nested(cmd.Process.Pid); err != nil || !nested {
		t.Errorf("in another namespace: %t, %v", nested, err)
	}
	if got := endedThreads(cmd.Process.Pid, []int{1, cmd.Process.Pid}); !slices.Equal(got, []int{cmd.Process.Pid}) {
		t.Errorf("ended: %v; want all but 1, which is the first process of a namespace", got)
	}
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // read fails at the end of its input
	if strings.TrimSpace(out.String()) != "1" {
		t.Errorf("the process takes itself for %q", out.String())
	}
}
