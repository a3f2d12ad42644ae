// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestReader: what is read of a process does not depend on who reads it, though only its user may
// execute its program.
func TestReader(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content := files.Read(t, sleep)
	own := filepath.Join(t.TempDir(), "sleep")
	files.Write(t, own, content, 0o700)
	cmd := exec.Command(own, "100")
	mustExecute(t, cmd)
	end := func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
	t.Cleanup(end)
	look := NewReader()
	defer look.Close()
	if words, err := look.Arguments(cmd.Process.Pid); err != nil || !slices.Equal(words, []string{own, "100"}) {
		t.Errorf("arguments %q, %v", words, err)
	}
	if why, err := look.PreloadRefusal(cmd.Process.Pid); err != nil || why != "" {
		t.Errorf("preload refused: %q, %v", why, err)
	}
	end()
	if why, err := look.PreloadRefusal(cmd.Process.Pid); !errors.Is(err, procid.ErrGone) {
		t.Errorf("of a process that has ended: %q, %v", why, err)
	}
}

// TestReaderInNamespace: root of a user namespace that a user made without rights is that user, and
// there is nobody else.
func TestReaderInNamespace(t *testing.T) {
	own := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestReader$", "-test.v")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: own(os.Getuid()), GidMappings: own(os.Getgid())}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) {
		t.Skip("user namespaces are forbidden here: ", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestReader ") {
		t.Errorf("%v: %s", err, out)
	}
}
