// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// loadOnly starts a program and stops it where the dynamic loader would give it the
// control: its libraries are mapped and set up, and nothing of its own has run. stop
// ends it, and must be called in the goroutine that loadOnly was called in: only the
// thread that traces a process may do so, and it is kept for that.
func loadOnly(program string) (pid int, stop func(), err error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return 0, nil, err
	}
	runtime.LockOSThread()
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		runtime.UnlockOSThread()
		return 0, nil, fmt.Errorf("start %s: %w", path, err)
	}
	pid = cmd.Process.Pid
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		runtime.UnlockOSThread()
	}
	if err := runToEntry(pid); err != nil {
		stop()
		return 0, nil, fmt.Errorf("load %s: %w", path, err)
	}
	return pid, stop, nil
}

// runToEntry lets a traced process that has just been executed run to the entry of its
// program.
func runToEntry(pid int) error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return err
	}
	entry, err := procid.Auxiliary(pid, procid.AuxEntry)
	if err != nil {
		return err
	}
	old := make([]byte, 1)
	if _, err := unix.PtracePeekText(pid, uintptr(entry), old); err != nil {
		return err
	}
	const breakpoint = 0xcc // int3
	if _, err := unix.PtracePokeText(pid, uintptr(entry), []byte{breakpoint}); err != nil {
		return err
	}
	for {
		if err := unix.PtraceCont(pid, 0); err != nil {
			return err
		}
		if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
			return err
		}
		switch {
		case status.Stopped() && status.StopSignal() == unix.SIGTRAP:
			_, err := unix.PtracePokeText(pid, uintptr(entry), old)
			return err
		case !status.Stopped():
			return errors.New("it ends before its main function")
		}
	}
}
