// SPDX-License-Identifier: Apache-2.0

// Package tunletbuild builds the test tunlet for tests of the Analyzer.
package tunletbuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Builder builds the test tunlet once for all tests of a package. Its zero
// value is ready for use; Clean removes what it built. Safe for use by several
// goroutines.
type Builder struct {
	once   sync.Once
	dir    string
	output []byte
	err    error
}

// Dir returns a directory that holds the test tunlet under the names
// attune-tunlet-BEHAVIOUR for the given behaviours.
func (b *Builder) Dir(t testing.TB, behaviours ...string) string {
	t.Helper()
	b.once.Do(b.build)
	if b.err != nil {
		t.Fatalf("build the test tunlet: %v\n%s", b.err, b.output)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range behaviours {
		if err := os.Link(filepath.Join(b.dir, "testtunlet"), filepath.Join(dir, "attune-tunlet-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Package adds to a directory of Dir a package of tunlets, which has attune-tunlet-one
// and attune-tunlet-two.
func (b *Builder) Package(t testing.TB, dir string) {
	t.Helper()
	const program = "attune-tunlets"
	if err := os.Link(filepath.Join(b.dir, "testtunlet"), filepath.Join(dir, program)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		if err := os.Symlink(program, filepath.Join(dir, "attune-tunlet-"+name)); err != nil {
			t.Fatal(err)
		}
	}
}

// Clean removes the binary; call it when all tests have run.
func (b *Builder) Clean() { _ = os.RemoveAll(b.dir) }

// build makes the binary.
func (b *Builder) build() {
	if b.dir, b.err = os.MkdirTemp("", "attune-testtunlet-"); b.err != nil {
		return
	}
	binary := filepath.Join(b.dir, "testtunlet")
	cmd := exec.Command("go", "build", "-o", binary, "github.com/attune-hpc/attune/analyzer/internal/testtunlet")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
	if b.output, b.err = cmd.CombinedOutput(); b.err != nil {
		return
	}
	b.err = os.Chmod(binary, 0o755)
}
