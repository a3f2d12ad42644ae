// SPDX-License-Identifier: Apache-2.0

// Package bpftest runs tests of BPF programs as somebody with few privileges.
package bpftest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// AsNobody runs tests of this program again, as nobody with the two capabilities
// that the remedy for missing ones names and no other.
func AsNobody(t *testing.T, tests string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	directory := openDirectory(t)
	binary := filepath.Join(directory, "bpf.test")
	image, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, image, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(directory, "testdata"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	const held = "+bpf,+perfmon"
	command := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
		"--inh-caps="+held, "--ambient-caps="+held, "--bounding-set=-all,"+held, "--",
		binary, "-test.run="+tests)
	command.Dir = directory
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/tmp"}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// openDirectory makes a directory that every user may enter.
func openDirectory(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(directory), 0o755), os.Chmod(directory, 0o755)); err != nil {
		t.Fatal(err)
	}
	return directory
}
