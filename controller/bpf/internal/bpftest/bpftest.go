// SPDX-License-Identifier: Apache-2.0

// Package bpftest runs tests of BPF programs as somebody with few privileges.
package bpftest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// AsNobody runs tests of this program again, as nobody with the two capabilities
// that the remedy for missing ones names and no other.
func AsNobody(t *testing.T, tests ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	directory := asuser.Folder(t)
	binary := filepath.Join(directory, "bpf.test")
	image, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := targets.WriteProgram(binary, image); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(directory, "testdata"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	const held = "+bpf,+perfmon"
	command := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
		"--inh-caps="+held, "--ambient-caps="+held, "--bounding-set=-all,"+held, "--", binary)
	command.Dir = directory
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/tmp"}
	asuser.RunTests(t, command, tests...)
}
