// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package ps

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/silentfs"
)

// TestSilentPrograms: a program whose file system does not answer holds up nobody who lists
// processes, and it is listed with that as the reason.
func TestSilentPrograms(t *testing.T) {
	const user = 65534
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content := files.Read(t, program)
	served := silentfs.Mount(t, user, content)
	// By a shell: this process, which serves the file, is held up while a child of its own executes.
	cmd := exec.Command("sh", "-c", `exec "$0" 1000`, served.File)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the program", func() bool {
		exe, err := os.Readlink("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/exe")
		return err == nil && exe == served.File
	})
	served.Silence(true)
	t.Cleanup(func() {
		served.Silence(false)
		_, _ = cmd.Process.Kill(), cmd.Wait()
	})
	listed := make(chan []Process, 1)
	go func() { listed <- listRunning(true) }()
	list := patience.Receive(t, "the list of processes", listed)
	at := slices.IndexFunc(list, func(p Process) bool { return p.PID == cmd.Process.Pid })
	if at < 0 || !slices.Contains(list[at].Ways, way{Name: "preload", Reason: procs.ErrSilent.Error()}) {
		t.Errorf("process %d at %d of %+v", cmd.Process.Pid, at, list)
	}
	own := slices.IndexFunc(list, func(p Process) bool { return p.PID == os.Getppid() })
	if own < 0 || slices.ContainsFunc(list[own].Ways, func(w way) bool { return w.Reason == procs.ErrSilent.Error() }) {
		t.Errorf("the parent of this test at %d of %+v", own, list)
	}
}
