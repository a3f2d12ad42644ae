// SPDX-License-Identifier: Apache-2.0

// Package longgate has the DMLib and builds the commands for tests whose subject
// is not the start gate. A program that is not answered within 250 ms runs without
// DMLib, as promised, which on a crowded machine would fail such tests by chance.
// With what is here a program waits for up to [Limit]. What is shipped has no way
// to be told so. The package has no state.
package longgate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/dmlib"
)

// Limit is how long a program waits at the gate; dmlib/Makefile has it, too.
const Limit = 30 * time.Second

const (
	built   = "dmlib/obj/long-gate/libattune-dm.so"
	shipped = "dmlib/build/libattune-dm.so"
	// timeout holds what the Application Controller knows of the gate's limit.
	timeout = "controller/gate/timeout.go"
)

// Install writes the library into the directory, under the name by which DMLib
// knows itself, and returns its path. It fails where the library is not built.
func Install(tb testing.TB, dir string) string {
	tb.Helper()
	root, err := checkout()
	if err != nil {
		tb.Fatal(err)
	}
	library, err := os.ReadFile(filepath.Join(root, built))
	if err != nil {
		tb.Fatalf("DMLib for tests is not built: run make dmlib: %v", err)
	}
	path := filepath.Join(dir, dmlib.Name(library))
	if err := os.WriteFile(path, library, 0o755); err != nil {
		tb.Fatal(err)
	}
	return path
}

// BuildFlags returns arguments of go build by which commands are built with the
// library and know its limit. The files that they name are put into the directory,
// which must last until the build has ended.
func BuildFlags(dir string) ([]string, error) {
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	for _, file := range []string{built, shipped, timeout} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			return nil, fmt.Errorf("build commands for tests: run make dmlib: %w", err)
		}
	}
	own := filepath.Join(dir, "timeout.go")
	text := fmt.Sprintf("package gate\n\nconst gateMilliseconds = %d\n", Limit.Milliseconds())
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, shipped): filepath.Join(root, built),
		filepath.Join(root, timeout): own,
	}})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "overlay.json")
	return []string{"-overlay", path}, os.WriteFile(path, overlay, 0o600)
}

// checkout returns the folder of go.mod: a test runs in the folder of its package.
func checkout() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above %s", here)
		}
	}
}
