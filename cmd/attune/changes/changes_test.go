// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bytes"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/inforce"
	"github.com/attune-hpc/attune/controller/actuate"
)

// BY says who takes a change back; texts of sessions do nothing to the terminal.
func TestWriteChanges(t *testing.T) {
	for _, tt := range []struct {
		change actuate.InForce
		by     string
	}{
		{actuate.InForce{}, "hand"},
		{actuate.InForce{By: "4711"}, "attune 4711"},
		{actuate.InForce{By: inforce.ByService}, "attuned"},
		{actuate.InForce{By: inforce.ByService, Registration: "redis", Knob: "\x1b[2J"}, "session redis"},
	} {
		var out bytes.Buffer
		if err := writeChanges(&cli.Env{Stdout: &out}, []actuate.InForce{tt.change}); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); !strings.HasSuffix(got, "  "+tt.by) || strings.Contains(got, "\x1b") {
			t.Errorf("%+v: %q, want BY %q", tt.change, got, tt.by)
		}
	}
}
