// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A program is executed by the path that was asked for, a symbolic link here, however long.
func TestExecutedAs(t *testing.T) {
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), strings.Repeat("a", 200), strings.Repeat("b", 200))
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link, "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	patience.Until(t, "the path of the link", func() bool { return ExecutedAs(cmd.Process.Pid) == link })
	if got := ExecutedAs(0); got != "" {
		t.Errorf("of no process: %q", got)
	}
}
