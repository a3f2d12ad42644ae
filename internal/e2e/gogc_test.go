// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A Go program without symbols, and with GOGC=50: its collector is seen by the kernel's probes, and
// is left alone without root. How much it gains is for bench/catalogue to say.
func TestGoCollectorIsTuned(t *testing.T) {
	program := filepath.Join(t.TempDir(), "go_garbage")
	run(t, "go", "build", "-ldflags=-s -w", "-o", program, workloads+"go_garbage.go")
	mustBeTuned(t, func() string {
		stdout, r := runTuned(t, []string{"--tunlet", "go-gc"}, program, "20", "50")
		switch {
		case rate(t, stdout) <= 0:
			t.Fatal("the program did nothing")
		case os.Geteuid() != 0 && len(r.Changes) != 0:
			t.Fatalf("changed without a look at collections: %+v", r.Changes)
		case os.Geteuid() == 0 && (len(r.Changes) == 0 || r.Changes[0].Knob != "go.gc.percent"):
			return fmt.Sprintf("changes %+v, want one of go.gc.percent", r.Changes)
		}
		return ""
	})
}
