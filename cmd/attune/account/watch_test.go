// SPDX-License-Identifier: Apache-2.0

package account

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestWatch: a terminal's line is rewritten and cleared at the end, elsewhere lines are whole, and
// neither comes too often.
func TestWatch(t *testing.T) {
	row := account.Row{Seconds: 3725, CPUSeconds: 59.96, Cores: new(1.5), Processes: 1, Resident: 2e9, Read: 1000}
	const text = "attune: 1:02:05  1.50 cores  CPU 60.0 s  1 process  memory 2 GB  read 1 KB  written 0 B"
	for _, tt := range []struct {
		name     string
		terminal bool
		row      account.Row
		want     string
	}{
		{"a terminal", true, row, eraseLine + text + "\r" + eraseLine},
		{"a file", false, row, text + "\n"},
		{"too soon", true, account.Row{Seconds: 0.1}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			w := newWatch(&out, tt.terminal)
			w.put(tt.row)
			w.end(patience.Limit)
			if out.String() != tt.want {
				t.Errorf("%q, want %q", out.String(), tt.want)
			}
		})
	}
}
