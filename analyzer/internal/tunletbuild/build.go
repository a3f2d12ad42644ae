// SPDX-License-Identifier: Apache-2.0

// Package tunletbuild builds the test tunlet for tests of the Analyzer.
package tunletbuild

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Dir builds the test tunlet once and returns a directory that holds it under
// the names attune-tunlet-BEHAVIOUR for the given behaviours.
func Dir(t testing.TB, behaviours ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "testtunlet")
	cmd := exec.Command("go", "build", "-o", binary, "github.com/attune-hpc/attune/analyzer/internal/testtunlet")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the test tunlet: %v\n%s", err, out)
	}
	if err := os.Chmod(binary, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, b := range behaviours {
		if err := os.Link(binary, filepath.Join(dir, "attune-tunlet-"+b)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
