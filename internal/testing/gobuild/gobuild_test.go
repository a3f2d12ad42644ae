// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A race in a command is reported under the race detector, and without it the
// command is built as well.
func TestRacesAreReported(t *testing.T) {
	bin, races := t.TempDir(), t.TempDir()
	if reportRaces(io.Discard, races) {
		t.Error("races before any command has run")
	}
	if err := build(bin, []Command{{Package: "./testdata/racy"}}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "racy"))
	cmd.Env = []string{settings(races)}
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var said bytes.Buffer
	found := reportRaces(&said, races)
	if want := len(flags()) > 0 && flags()[0] == "-race"; found != want || strings.Contains(said.String(), "DATA RACE") != want {
		t.Errorf("races found: %v, want %v: %s", found, want, said.String())
	}
}

// Where there is no Go, what make has built is taken.
func TestMadeIsTaken(t *testing.T) {
	bin, path := t.TempDir(), t.TempDir()
	if err := os.Symlink("/bin/cp", filepath.Join(path, "cp")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	if err := build(bin, []Command{{Package: "./testdata/racy", Made: "/bin/true"}}); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(filepath.Join(bin, "true")).Run(); err != nil {
		t.Error(err)
	}
}
