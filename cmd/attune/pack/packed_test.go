// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"os"
	"testing"

	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/rundir"
)

// TestExpandNames: each node of a job writes files of its own, of every kind.
func TestExpandNames(t *testing.T) {
	const name = "r-%h-%j-100%%"
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Run{Report: name, HTML: name, Timeline: name, Record: name, LogFile: name}
	expandNames(&cfg, rundir.Job{Path: "/run/attune/job-4711"})
	for _, got := range []string{cfg.Report, cfg.HTML, cfg.Timeline, cfg.Record, cfg.LogFile} {
		if want := "r-" + host + "-4711-100%"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
