// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package procs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestReaderInContainer: root of a container looks at its own processes with the rights that it has.
func TestReaderInContainer(t *testing.T) { asuser.InContainer(t, "TestReader") }

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
	content := files.Read(t, sleep)
	path := filepath.Join(dir, "sleep")
	err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, content, 0o755), os.Chown(path, owner, owner), os.Chmod(path, mode))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
