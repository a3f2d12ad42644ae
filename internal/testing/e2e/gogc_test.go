// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// A Go program without symbols, and with GOGC=25: its collector is seen by the kernel's probes, and
// is left alone without root. How much it gains is for bench/catalogue to say.
func TestGoCollectorIsTuned(t *testing.T) {
	program := filepath.Join(t.TempDir(), "go_garbage")
	run(t, "go", "build", "-ldflags=-s -w", "-o", program, workloads+"go_garbage.go")
	flags := []string{"--tunlet", "go-gc"}
	if os.Geteuid() != 0 {
		wantNone(t, runTuned(t, flags, program, "5", "25"))
		return
	}
	r := tuneUntil(t, applied("go-gc", 1), flags, program, lasting, "25")
	if knob := r.Changes[0].Knob; knob != "go.gc.percent" {
		t.Errorf("%s is changed, want go.gc.percent", knob)
	}
}
