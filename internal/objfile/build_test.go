// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mustRun runs a tool and returns what it wrote.
func mustRun(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// mustBuild compiles testdata/program.c.
func mustBuild(t testing.TB, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	mustRun(t, "gcc", append([]string{"-O1", "-o", out, "testdata/program.c"}, flags...)...)
	return out
}

// mustBuildLibrary compiles testdata/library.c with its versions.
func mustBuildLibrary(t testing.TB, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "libattunetest.so")
	args := []string{"-O1", "-fno-builtin", "-shared", "-fPIC", "-Wl,--version-script=testdata/library.map", "-Wl,-soname,libattunetest.so.2"}
	mustRun(t, "gcc", append(append(args, "-o", out, "testdata/library.c"), flags...)...)
	return out
}

// program is a running testdata/program.c.
type program struct {
	pid       int
	addresses map[string]uint64
}

// mustStart starts a program and reads the addresses that it prints.
func mustStart(t *testing.T, env []string, path string) program {
	t.Helper()
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		io.Copy(io.Discard, stdout)
		cmd.Wait()
	})
	p := program{cmd.Process.Pid, make(map[string]uint64)}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name == "sum" {
			return p
		}
		if p.addresses[name], err = strconv.ParseUint(value, 0, 64); err != nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
	}
	t.Fatalf("%s ended early: %v", path, lines.Err())
	return program{}
}
