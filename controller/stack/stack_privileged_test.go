// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/pointtext"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestKeysThatAreNoNumbers: strings and stacks keep hits apart, whatever they hold, and
// what finds no room is counted with the others.
func TestKeysThatAreNoNumbers(t *testing.T) {
	binary := targets.BuildText(t, "stacked", program, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-ipa-ra")
	const begin = "stacked:main < "
	for name, test := range map[string]struct {
		point      string
		want       map[string]uint64
		others     uint64
		unreadable uint64
	}{
		"strings": {"stacked:seen sum arg1 by arg0:str(8)", map[string]uint64{
			`"GET"`: 6, `"\x1b[31m\xff"`: 4, `""`: 4, `"xxxxxxxx"…`: 4,
		}, 0, 4},
		"too many strings":              {"stacked:seen by arg0:str(8) keys 1", map[string]uint64{`"GET"`: 6}, 12, 4},
		"strings with a length":         {"stacked:seen by arg0:gostr keys 1", map[string]uint64{`"GET"`: 6}, 12, 4},
		"strings with a length, memory": {"stacked:seen by arg2->0:gostr", map[string]uint64{`"abcd"`: 22}, 0, 0},
		"stacks": {"stacked:seen by stack", map[string]uint64{
			begin + "stacked:left < stacked:inner < stacked:seen": 10, begin + "stacked:right < stacked:seen": 10,
			"[deeper] < " + strings.Repeat("stacked:deep < ", 63) + "stacked:seen": 2,
		}, 0, 0},
		"stacks at returns": {"stacked:seen%return by stack", map[string]uint64{
			begin + "stacked:left < stacked:inner": 10, begin + "stacked:right": 10,
			"[deeper] < " + strings.TrimSuffix(strings.Repeat("stacked:deep < ", 64), " < "): 2,
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			target := targets.Start(t, binary)
			u, err := uprobe.New(uprobe.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			watch(t, u, test.point, binary, target.PID)
			for range 2 {
				target.Ask(t, "go")
			}
			got, all := make(map[string]uint64), uprobe.Aggregate{}
			u.ReadKeys(target.PID, 1, uprobe.Running, func(key hits.Key, a *uprobe.Aggregate) {
				text := strings.Join(key.Calls(), " < ")
				if at := strings.Index(text, begin); at >= 0 {
					text = text[at:] // what calls main is the C library's
				}
				if key.Kind == hits.KeyString {
					text = key.Show(false)
				}
				got[text] += a.Count
			})
			if u.ReadAggregate(target.PID, 1, uprobe.Running, &all); !maps.Equal(got, test.want) || all.Count != test.others || all.Unreadable != test.unreadable {
				t.Errorf("%d others, %d unreadable, and %s", all.Count, all.Unreadable, listed(got))
			}
		})
	}
}

func listed(keys map[string]uint64) string {
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&out, "\n%d %s", keys[key], key)
	}
	return out.String()
}

// watch watches a process at a point of its program.
func watch(t *testing.T, u *uprobe.Uprobes, text, binary string, pid int) {
	t.Helper()
	w := uprobe.Watch{PID: pid, Point: 1}
	if attach(t, u, text, binary).KeyStack() {
		space, err := NewSpace(func() ([]objfile.Image, error) { return objfile.Images(pid) })
		if err != nil {
			t.Fatal(err)
		}
		w.Space = space
	}
	if err := u.Watch(w); err != nil {
		t.Fatal(err)
	}
}

// attach attaches a point to the function of a program, and returns what it captures.
func attach(t *testing.T, u *uprobe.Uprobes, text, binary string) capture.Program {
	t.Helper()
	point, err := pointtext.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	program, err := capture.Compile(point.Spec)
	if err != nil {
		t.Fatal(err)
	}
	file, err := objfile.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbol, err := file.Symbol("seen")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Attach(uprobe.Spec{
		Path: binary, Symbols: []uprobe.Symbol{{Name: "seen", Offset: symbol.FileOffset}}, Point: 1, Place: point.Spec.GetPlace(), Program: program,
	}); err != nil {
		t.Fatal(err)
	}
	return program
}
