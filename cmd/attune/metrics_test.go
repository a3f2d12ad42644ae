// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/testing/scraped"
)

// TestAnalyzerMetrics: the Analyzer, with the rights of its unit, has all that the reference
// page lists, at its socket, over TCP and in a file.
func TestAnalyzerMetrics(t *testing.T) {
	s := newSite(t)
	s.end(syscall.SIGTERM)
	address, file := scraped.FreePort(t), filepath.Join(s.dir, "state", "attune.prom")
	s.more = []string{"--metrics-listen", address, "--metrics-file", file}
	s.start()
	atSocket := scraped.Lines(t, s.client(), "http://analyzer/metrics")
	scraped.CheckWhole(t, metrics.Analyzer, atSocket)
	for _, want := range []string{"attune_analyzer_registry_keeps 1", `attune_registry_connected{service="analyzer"} 1`, "attune_analyzer_sessions 0"} {
		if !slices.Contains(atSocket, want) {
			t.Errorf("without %s", want)
		}
	}
	scraped.CheckWhole(t, metrics.Analyzer, scraped.Lines(t, http.DefaultClient, "http://"+address+"/metrics"))
	scraped.CheckWhole(t, metrics.Analyzer, scraped.File(t, file))
}
