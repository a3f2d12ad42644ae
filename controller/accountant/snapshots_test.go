// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestHostileSnapshots: a file becomes terabytes long, which costs its user nothing, and then a
// pipe; lines are found all the same, and looking ends.
func TestHostileSnapshots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	files.Write(t, path, "", 0o600)
	w := startingWith([]Event{{Path: path, Line: regexp.MustCompile("mark")}})
	var told []string
	look := func() {
		t.Helper()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w[0].look(func(label string) { told = append(told, label) })
		}()
		patience.Closed(t, "the end of a look", ended)
	}
	if err := os.Truncate(path, 1<<42); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	look()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString("\nmark 1\n")
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	look()
	if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	look()
	if !slices.Equal(told, []string{"mark 1"}) {
		t.Errorf("%q", told)
	}
}

// TestSilentSnapshots: nobody waits for a look that does not end.
func TestSilentSnapshots(t *testing.T) {
	w := &watcher{stopped: make(chan struct{})}
	if err := w.await(); !errors.Is(err, errSilent) {
		t.Errorf("error %v", err)
	}
	close(w.stopped)
	if err := w.await(); err != nil {
		t.Error(err)
	}
}
