// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/leaktest"
)

// TestMain fails if a test leaves a goroutine, a child or a descriptor behind.
func TestMain(m *testing.M) { leaktest.Main(m) }

// mustCompile builds a C program from testdata.
func mustCompile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), filepath.Base(source)+".bin")
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", binary, filepath.Join("testdata", source)}, flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", source, err, out)
	}
	return binary
}
