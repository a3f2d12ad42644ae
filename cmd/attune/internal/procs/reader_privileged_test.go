// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package procs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestReaderInContainer: root of a container looks at its own processes with the rights that Docker
// leaves it, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH not among them.
func TestReaderInContainer(t *testing.T) {
	confine.Apart(func(err error) {
		if err != nil {
			t.Error(err)
			return
		}
		out, err := exec.Command("/proc/self/exe", "-test.run=^TestReader$", "-test.v").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestReader ") {
			t.Errorf("%v: %s", err, out)
		}
	}, confine.Rights{Keep: []uintptr{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID,
		unix.CAP_SETUID, unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE,
	}})
}

// TestReaderOfPrivileged: whether the loader takes DMLib into a process depends on what its own user
// gains by the program, not on root, who asks, nor on a helper, who gains nothing.
func TestReaderOfPrivileged(t *testing.T) {
	const uid, other = 65534, 65533
	confined := []string{"setpriv", "--no-new-privs"}
	for name, tt := range map[string]struct {
		mode   os.FileMode
		owner  int // and group
		before []string
		want   string
	}{
		"plain":                  {0o755, other, nil, ""},
		"setuid to root":         {0o755 | os.ModeSetuid, 0, nil, "setuid: the loader ignores LD_PRELOAD"},
		"setuid to another user": {0o755 | os.ModeSetuid, other, nil, "setuid: the loader ignores LD_PRELOAD"},
		"setgid":                 {0o755 | os.ModeSetgid, other, nil, "setgid: the loader ignores LD_PRELOAD"},
		"setuid to oneself":      {0o755 | os.ModeSetuid, uid, nil, ""},
		"without new privileges": {0o755 | os.ModeSetuid, other, confined, ""},
	} {
		t.Run(name, func(t *testing.T) {
			program := copyOfSleep(t, tt.owner, tt.mode)
			words := append(slices.Clone(tt.before), program, "100")
			cmd := exec.Command(words[0], words[1:]...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
			patience.Until(t, "the program", func() bool { return procid.Executable(cmd.Process.Pid) == program })
			look := NewReader()
			defer look.Close()
			if why, err := look.PreloadRefusal(cmd.Process.Pid); err != nil || why != tt.want {
				t.Errorf("%q, %v, want %q", why, err, tt.want)
			}
		})
	}
}

// copyOfSleep is a program of a user and group, where everybody finds it.
func copyOfSleep(t *testing.T, owner int, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "reader") //nolint:usetesting // other users pass to it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sleep")
	err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, content, 0o755), os.Chown(path, owner, owner), os.Chmod(path, mode))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
