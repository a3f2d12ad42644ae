// SPDX-License-Identifier: Apache-2.0

package account

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
)

// What was exceeded is told once: as the reason of the end, or by itself.
func TestPageOfExceeded(t *testing.T) {
	for name, row := range map[string]struct {
		exit account.Exit
		want string
	}{
		"nothing":       {account.Exit{Type: account.ExitNormal, Code: new(int)}, "ended after 0 s\n"},
		"soft":          {account.Exit{Type: account.ExitNormal, SoftLimits: []string{"a: 2 > 1"}}, "ended after 0 s\nattune: exceeded   a: 2 > 1\n"},
		"seen too late": {account.Exit{Type: account.ExitNormal, Limits: []string{"b: 2 > 1"}}, "ended after 0 s\nattune: exceeded   b: 2 > 1\n"},
		"both": {
			account.Exit{Type: account.ExitLimits, Limits: []string{"b: 2 > 1"}, SoftLimits: []string{"a: 2 > 1"}},
			"ended because of b: 2 > 1 after 0 s\nattune: exceeded   a: 2 > 1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := page(&account.Account{Exit: row.exit})
			if !strings.HasPrefix(got, "attune: "+row.want) || strings.Count(got, "2 > 1") != strings.Count(row.want, "2 > 1") {
				t.Errorf("got %q, want it to begin with %q", got, row.want)
			}
		})
	}
}
