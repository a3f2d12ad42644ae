// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/scraped"
	"github.com/attune-hpc/attune/internal/testing/smalldisk"
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
	smalldisk.Mount(t, state, "size=32m,mode=700")
	t.Cleanup(func() { s.end(syscall.SIGKILL) }) // before the disk goes
	s.start()
	makeRoom := smalldisk.Fill(t, state)
	patience.Until(t, "503 of a full disk", func() bool { return s.get("/readyz") == http.StatusServiceUnavailable })
	if lines := scraped.Lines(t, s.client(), "http://analyzer/metrics"); !slices.Contains(lines, "attune_analyzer_registry_keeps 0") {
		t.Errorf("%q", lines)
	}
	if code := s.get("/healthz"); code != http.StatusOK {
		t.Errorf("health %d", code)
	}
	makeRoom()
	patience.Until(t, "it to be ready again", func() bool { return s.get("/readyz") == http.StatusOK })
}
