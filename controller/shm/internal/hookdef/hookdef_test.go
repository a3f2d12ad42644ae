// SPDX-License-Identifier: Apache-2.0

package hookdef

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, def string
		want      []Hook
		err       string
	}{
		{
			name: "comments and gaps",
			def:  "/* HOOK(index) */\nHOOK(0, malloc, ALLOC, \"bytes\", \"address\")\nHOOK(16, lock, LOCK, \"mutex\", \"0\")\n",
			want: []Hook{{0, "malloc", "ALLOC", "bytes", "address"}, {16, "lock", "LOCK", "mutex", "0"}},
		},
		{name: "other form", def: "HOOK(0,malloc,ALLOC,\"a\",\"b\")\n", err: "well formed"},
		{name: "index twice", def: "HOOK(1, a, IO, \"\", \"\")\nHOOK(1, b, IO, \"\", \"\")\n", err: "does not rise"},
		{name: "family", def: "HOOK(1, a, NET, \"\", \"\")\n", err: "unknown family NET"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.def))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
