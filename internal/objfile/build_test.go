// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/internal/testing/targets"
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
	return targets.Build(t, "testdata/program.c", append([]string{"-g0"}, flags...)...)
}

// mustBuildLibrary compiles testdata/library.c with its versions.
func mustBuildLibrary(t testing.TB, flags ...string) string {
	t.Helper()
	arguments := []string{"testdata/library.c", "-g0", "-fno-builtin", "-shared", "-fPIC",
		"-Wl,--version-script=testdata/library.map", "-Wl,-soname,libattunetest.so.2"}
	return targets.BuildWith(t, "gcc", "libattunetest.so", append(arguments, flags...)...)
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
	target := targets.Launch(t, cmd)
	p := program{target.PID, make(map[string]uint64)}
	for {
		name, value, _ := strings.Cut(target.Line(t), " ")
		if name == "sum" {
			return p
		}
		address, err := strconv.ParseUint(value, 0, 64)
		if err != nil {
			t.Fatalf("%s %q: %v", name, value, err)
		}
		p.addresses[name] = address
	}
}
