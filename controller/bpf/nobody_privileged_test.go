// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package bpf

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Root is not needed: the two capabilities that the remedy names are enough, for
// uprobes where the kernel has uprobe_multi. The test runs some of the others
// again, as nobody with these two only.
func TestTwoCapabilitiesAreEnough(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	directory := mustOpenDirectory(t)
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
	tests := "TestSinglyNeedsAdmin|TestProcessTree"
	if kernelHas(t, linuxWithMulti) {
		tests += "|TestThreads|TestSampled|TestLibrary"
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

// mustOpenDirectory makes a directory that every user may enter.
func mustOpenDirectory(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(directory), 0o755), os.Chmod(directory, 0o755)); err != nil {
		t.Fatal(err)
	}
	return directory
}
