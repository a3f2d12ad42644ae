// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"testing"
)

func TestOptionText(t *testing.T) {
	for want, o := range map[string]Option{
		"":                      {},
		", 1 to 9, else 4":      {Min: "1", Max: "9", Default: "4"},
		", at least 1s":         {Min: "1s"},
		", at most 1GiB":        {Max: "1GiB"},
		", one of a, b, else b": {Choices: []string{"a", "b"}, Default: "b"},
	} {
		if got := o.limits(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
