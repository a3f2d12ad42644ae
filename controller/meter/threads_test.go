// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestThreadAlive(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	alive := threadAlive(os.Getpid())
	if !alive(unix.Gettid()) || !alive(os.Getpid()) || alive(1) || alive(1<<22) {
		t.Error("the threads of this process are others")
	}
	if !threadAlive(1 << 22)(1) {
		t.Error("an unreadable thread is taken for dead")
	}
}

// In a container the process knows its threads by other ids.
func TestThreadAliveInAnotherNamespace(t *testing.T) {
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
	if !threadAlive(cmd.Process.Pid)(1) {
		t.Error("the first process of a namespace is not 1")
	}
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // read fails at the end of its input
	if strings.TrimSpace(out.String()) != "1" {
		t.Errorf("the process takes itself for %q", out.String())
	}
}
