// SPDX-License-Identifier: Apache-2.0

// Package confined starts services in tests with the rights that their units give
// them, without systemd as the first process: the capabilities of their bounding set,
// their filters of system calls, address families, namespaces and executable memory,
// no new privileges, their umask, and a file system that is read-only but for their
// directories. Not imitated are limits of resources and of addresses, private devices
// and the filter on scheduling policies.
//
// It has no state; everything may be used from any goroutine.
package confined

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// Apply has a command that is not started yet run with the rights of a unit, whose
// text it gets. It can write to the directories beside those of the unit. source is
// the path of this package from the test's.
func Apply(t testing.TB, cmd *exec.Cmd, source, text string, directories ...string) {
	t.Helper()
	u, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	code, err := u.code()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, dir := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(dir, 0o755); err != nil { // a service is another user
			t.Fatal(err)
		}
	}
	filter := filepath.Join(dir, "filter")
	if err := os.WriteFile(filter, code, 0o644); err != nil {
		t.Fatal(err)
	}
	confine, err := os.ReadFile(targets.Build(t, filepath.Join(source, "testdata/confine.c"), "-D_GNU_SOURCE"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "confine")
	if err := os.WriteFile(program, confine, 0o755); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(cmd.Path)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{program, fmt.Sprintf("%x", u.capabilities), u.umask, filter}
	args = append(append(args, u.writable...), directories...)
	args = append(append(args, "--", path), cmd.Args[1:]...)
	cmd.Path, cmd.Args = program, args
}
