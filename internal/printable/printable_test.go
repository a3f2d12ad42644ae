// SPDX-License-Identifier: Apache-2.0

package printable

import "testing"

func TestLine(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "süß 10 % → █…", "süß 10 % → █…"},
		{"sequences", "a\x1b[31mb\u009b2J\a", "a?[31mb?2J?"},
		{"columns and lines", "a\tb\nc\r", "a?b?c?"},
		{"another order", "exe\u202egnp.\u2066x", "exe?gnp.?x"},
		{"nothing to be seen", "a\u200bb\ufeff", "a?b?"},
		{"no UTF-8", "a\xffb", "a?b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Line(tt.text); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	if got, want := Lines("no object \x1b[2J\a\nof é\u202e"), "no object ?[2J?\nof é?"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
