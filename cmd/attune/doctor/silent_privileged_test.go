// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/silentfs"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestSilentArguments: a process with the name of the service whose arguments never answer holds up
// nobody who looks for the service.
func TestSilentArguments(t *testing.T) {
	const user = 65534
	served := silentfs.Mount(t, user, make([]byte, 1<<20))
	dir := t.TempDir()
	for _, way := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(way, 0o755); err != nil { // all users come through
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, nodeService)
	if err := os.Symlink(targets.Program(t, "unread"), link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link, "file", served.File)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // "ready"
		t.Fatal(err)
	}
	served.Silence(true)
	t.Cleanup(func() {
		served.Silence(false)
		_, _ = cmd.Process.Kill(), cmd.Wait()
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d, err := diagnoseServices()
		if err != nil || strings.Contains(fmt.Sprint(d), fmt.Sprint(nodeService, " ", cmd.Process.Pid, ":")) {
			t.Errorf("%+v, %v", d, err)
		}
	}()
	patience.Closed(t, "the diagnosis", ended)
}
