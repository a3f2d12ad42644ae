// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// The stacks of a watch are in its files when it has ended: in one as lines, outermost call
// first, in the other drawn.
func TestProbeStacks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a stack as a key needs root")
	}
	k := newProbeTest(t)
	folded, page := filepath.Join(t.TempDir(), "stacks.folded"), filepath.Join(t.TempDir(), "stacks.html")
	patience.Until(t, "a watch in which the program comes by", func() bool {
		k.want(t, "watch --for 3s --folded "+folded+" --flame "+page+" $P 'steps:step by stack'", 0)
		lines, err := os.ReadFile(folded)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^(.+;)?steps:main;steps:step [1-9][0-9]*$`).Match(lines)
	})
	drawn, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(drawn), "Stacks of steps") || !strings.Contains(string(drawn), "steps:step") {
		t.Errorf("%v: %.2000q", err, drawn)
	}
	if err := k.End(t); err == nil || err.Error() != "exit status 3" {
		t.Errorf("the program ended with %v, want its own 3", err)
	}
}
