// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

func TestSpan(t *testing.T) {
	for text, want := range map[string]string{"90m": "1h30m0s", "48h": "2d", "30d": "30d", "d": "", "-1d": "", "-5m": "", "99999d": "", "1.5d": ""} {
		var s Span
		if err := s.Set(text); (err == nil) != (want != "") || err == nil && s.String() != want {
			t.Errorf("%s: %v, %v", text, &s, err)
		}
	}
}
