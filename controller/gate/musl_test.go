// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestAnotherCLibrary: what a job starts inherits LD_PRELOAD, a program that is linked
// against musl as well. Its loader finds all that DMLib needs, and the program runs on alone.
func TestAnotherCLibrary(t *testing.T) {
	program := targets.BuildWith(t, "musl-gcc", "ready", "testdata/ready.c") // scripts/deps test: musl-tools
	g := mustServe(t, Options{geometry: small()})
	p := mustStart(t, g, "/bin/sh", "-c", "exec "+program)
	mustAttach(t, g) // the shell
	p.Expect(t, "ready")
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
	if err != nil || !strings.Contains(string(maps), "musl") || !strings.Contains(string(maps), "libattune-dm") {
		t.Errorf("not musl's loader, or without DMLib: %v\n%s", err, maps)
	}
	p.finish()
	select {
	case a := <-g.attached:
		t.Errorf("%+v has come", released(t, a).Hello)
	default:
	}
}
