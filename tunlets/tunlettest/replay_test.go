// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"strings"
	"testing"
)

func TestReadRecording(t *testing.T) {
	const line = " 0 1 2 3 4 5 6 7 8 9\n"
	for _, tt := range []struct {
		name, text, want string
		rounds           int
	}{
		{"empty", "", "", 0},
		{"comments", "# of nothing\n\n", "", 0},
		{"two rounds of two", "5 0 1 2 3 4 5 6 7 8 9\n5 1 1 2 3 4 5 6 7 8 9\n9" + line + "9 1 1 2 3 4 5 6 7 8 9\n", "", 2},
		{"column missing", "5 0 1 2 3\n", "line 1: 5 columns, want 11", 0},
		{"bad time", "x" + line, "time", 0},
		{"bad process", "5 x 1 2 3 4 5 6 7 8 9\n", "process", 0},
		{"bad value", "# c\n5 0 1 2 x 4 5 6 7 8 9\n", "line 2: column 5", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ReadRecording(strings.NewReader(tt.text))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil || len(r.rounds) != tt.rounds {
				t.Errorf("%d rounds, error %v, want %d", len(r.rounds), err, tt.rounds)
			}
		})
	}
}
