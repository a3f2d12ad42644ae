// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/scraped"
)

// TestFullDisk: an Analyzer whose state disk is full is not ready, says so in its metrics,
// and is ready again when there is room.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	s := newSite(t)
	s.end(syscall.SIGTERM)
	state := filepath.Join(s.dir, "state")
	if err := unix.Mount("attune", state, "tmpfs", 0, "size=32m,mode=700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
	s.start()
	filler := filepath.Join(state, "filler")
	file, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1<<16); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "503 of a full disk", func() bool { return s.get("/readyz") == http.StatusServiceUnavailable })
	if lines := scraped.Lines(t, s.client(), "http://analyzer/metrics"); !slices.Contains(lines, "attune_analyzer_registry_keeps 0") {
		t.Errorf("%q", lines)
	}
	if code := s.get("/healthz"); code != http.StatusOK {
		t.Errorf("health %d", code)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "it to be ready again", func() bool { return s.get("/readyz") == http.StatusOK })
}
