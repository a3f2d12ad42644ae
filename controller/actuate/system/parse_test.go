// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/objfile"
)

func TestRegions(t *testing.T) {
	const maps = `1000-3000 r-xp 00000000 08:01 7 /bin/x y
3000-4000 rw-p 00000000 00:00 0
4000-6000 rw-p 00000000 00:00 0 [heap]
7000-8000 rw-s 00000000 00:00 0
8000-9000 rw-p 00000000 00:00 0 [anon:glibc: malloc arena]
9000-a000 rw-p 00000000 00:00 0 [stack]
`
	mappings, err := objfile.ParseMaps([]byte(maps))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		region string
		want   []span
	}{
		{"heap", []span{{0x4000, 0x6000}}},
		{"stack", []span{{0x9000, 0xa000}}},
		{"anonymous", []span{{0x3000, 0x4000}, {0x4000, 0x6000}, {0x8000, 0x9000}}},
		{"2000-5000", []span{{0x2000, 0x3000}, {0x3000, 0x4000}, {0x4000, 0x5000}}},
		{"b000-c000", nil},
	}
	for _, tt := range tests {
		t.Run(tt.region, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, spansOf(mappings, tt.region), cmp.AllowUnexported(span{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValues(t *testing.T) {
	tests := []struct {
		name  string
		parse func(string) (string, error)
		in    string
		want  string // empty: refused
	}{
		{"CPUs are sorted and joined", cpuList, "3,1-2,2,7", "1-3,7"},
		{"limit", parseLimit, "1k:Unlimited", "1024:unlimited"},
		{"negative limit", parseLimit, "-1", ""},
		{"pipe", wholePipe, "65537", "131072"},
		{"no pipe", wholePipe, "0", ""},
		{"quota", parseCPUMax, "50000", "50000"},
		{"quota and period", parseCPUMax, "max 100000", "max 100000"},
		{"short period", parseCPUMax, "max 10", ""},
		{"memory", parseMemory, "5000", "4096"},
		{"no limit in version 1", parseMemory1, "MAX", "-1"},
		{"region", parseRegion, "0x1000-2000", "1000-2000"},
		{"empty region", parseRegion, "2000-2000", ""},
		{"policy", parsePolicy, "RR:01", "rr:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.parse(tt.in)
			if got != tt.want && err == nil || (err == nil) != (tt.want != "") {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
			if err != nil && !errors.Is(err, ErrBadValue) {
				t.Errorf("%v is no ErrBadValue", err)
			}
		})
	}
}

// A canonical value is a value, and its own canonical form; whatever comes in.
func FuzzParse(f *testing.F) {
	for _, k := range Knobs() {
		for _, example := range k.Examples {
			f.Add(k.Name, example)
		}
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		k, err := find(name)
		if err != nil {
			return
		}
		value, err := k.parse(text)
		if err != nil {
			return
		}
		again, err := k.parse(value)
		if err != nil || again != value || strings.ContainsAny(value, "\n\x00") {
			t.Errorf("%s: %q is %q, which is %q, %v", name, text, value, again, err)
		}
	})
}

// Whatever the shell offers is a value.
func TestExamples(t *testing.T) {
	for _, k := range Knobs() {
		for _, example := range k.Examples {
			if _, err := Validate(Request{Knob: k.Name, Value: example, On: Everywhere}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestSummary(t *testing.T) {
	state := func(fd int, value string) State {
		return State{Place: Place{Scope: OnPipes, Number: fd}, Old: value}
	}
	tests := []struct {
		name   string
		states []State
		want   string
	}{
		{"none", nil, ""},
		{"all agree", []State{state(1, "5"), state(2, "5")}, "5"},
		{"one differs", []State{state(1, "5"), state(2, "5"), state(3, "7")}, "5 (2 pipes), 7 (fd 3)"},
		{"many", []State{state(1, "1"), state(2, "2"), state(3, "3"), state(4, "4"), state(5, "5")}, "1 (fd 1), 2 (fd 2), 3 (fd 3), 4 (fd 4), and 1 more"},
		{"what comes later is no place", []State{state(1, "5"), {Place: Place{Scope: OnThreads, Later: true}, Old: "6"}}, "5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := summary(tt.states, func(s State) string { return s.Old }); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
