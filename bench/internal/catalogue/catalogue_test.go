// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
	tunlets "github.com/attune-hpc/attune/tunlets/catalogue"
)

func TestCasesAreWhole(t *testing.T) {
	names := map[string]bool{}
	for _, c := range All() {
		t.Run(c.Name, func(t *testing.T) {
			if names[c.Name] {
				t.Error("there is another one of this name")
			}
			names[c.Name] = true
			folder := c.Tunlet
			if folder == "" {
				folder = Control
			}
			if !strings.HasPrefix(c.Name, folder+"/") {
				t.Errorf("does not begin with %s/", folder)
			}
			if c.Tunlet != "" && !slices.Contains(tunlets.Names(), c.Tunlet) {
				t.Errorf("there is no tunlet %s", c.Tunlet)
			}
			if c.Tunlet == "" && (c.Best.known() || c.Format != measure.Format{}) {
				t.Error("a control has a best setting or a rate; its time is what is compared")
			}
			if (c.Unit == "") != (c.Format == measure.Format{}) {
				t.Error("has a unit or a format, want both or none")
			}
		})
	}
}

// Where a compiler is missing, the message says which package has it.
func TestCompilersHavePackages(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range All() {
		for _, s := range c.Sources {
			missing := workload.Repository.Build(t.Context(), s.Compiler, s.Name, s.As, s.Flags...)
			if missing == "" || strings.HasSuffix(missing, "apt-get install )") {
				t.Errorf("%s: %q", c.Name, missing)
			}
		}
	}
}
