// SPDX-License-Identifier: Apache-2.0

// Package confined starts services in tests and benchmarks with the rights that their units give
// them, without systemd as the first process: the capabilities of their bounding set,
// their filters of system calls, address families, namespaces and executable memory,
// no new privileges, their umask, and a file system that is read-only but for their
// directories. Not imitated are limits of resources and of addresses, private devices
// and the filter on scheduling policies.
//
// It remembers what systemd says of sets of system calls; everything may be used from any
// goroutine.
package confined

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// Apply has a command that is not started yet run with the rights of a unit, whose
// text it gets. It can write to the directories beside those of the unit. source is
// the path of this package from the test's.
func Apply(t testing.TB, cmd *exec.Cmd, source, text string, directories ...string) {
	t.Helper()
	dir := asuser.Folder(t) // a service is another user
	program := targets.Build(t, filepath.Join(source, "testdata/confine.c"), "-D_GNU_SOURCE")
	if err := Confine(cmd, program, dir, text, directories...); err != nil {
		t.Fatal(err)
	}
}

// Confine is Apply with testdata/confine.c compiled, and a directory that is there for as
// long as the command runs and that everybody comes to.
func Confine(cmd *exec.Cmd, compiled, dir, text string, directories ...string) error {
	u, err := parse(text)
	if err != nil {
		return err
	}
	code, err := u.code()
	if err != nil {
		return err
	}
	filter, program := filepath.Join(dir, "filter"), filepath.Join(dir, "confine")
	confine, err := os.ReadFile(compiled)
	if err == nil {
		err = errors.Join(os.WriteFile(filter, code, 0o644), targets.WriteProgram(program, confine))
	}
	if err != nil {
		return err
	}
	path, err := filepath.Abs(cmd.Path)
	if err != nil {
		return err
	}
	args := []string{program, fmt.Sprintf("%x", u.capabilities), u.umask, filter}
	args = append(append(args, u.writable...), directories...)
	args = append(append(args, "--", path), cmd.Args[1:]...)
	cmd.Path, cmd.Args = program, args
	return nil
}
