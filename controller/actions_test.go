// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestActions(t *testing.T) {
	real := math.Float64bits
	tests := []struct {
		name     string
		function string
		action   func(a *acted) patch.Step
		want     string // in place of the plain answer
	}{
		{"replace", "a_target", func(a *acted) patch.Step { return patch.Step{Replace: &patch.Replace{Target: a.address(t, "a_other")}} },
			"target 31 real 5 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"},
		{"remove", "a_target", func(*acted) patch.Step { return patch.Step{Remove: &patch.Remove{Result: patch.Value{Bits: 42}}} },
			"target 42 real 5 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"},
		{"remove a double", "a_real", func(*acted) patch.Step {
			return patch.Step{Remove: &patch.Remove{Result: patch.Value{Class: patch.Real, Bits: real(0.25)}}}
		}, "target 21 real 0.25 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"},
		{"remove from one caller", "a_callee", func(a *acted) patch.Step {
			f := a.function(t, "a_caller_one")
			start := f.Image.Address(f.Symbol.Value)
			return patch.Step{Remove: &patch.Remove{Result: patch.Value{Bits: 4}, Callers: []patch.Range{{Start: 1, End: 2}, {Start: start, End: start + f.Symbol.Size}}}}
		}, "target 21 real 5 one 40 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"},
		{"parameter", "a_target", func(*acted) patch.Step {
			return patch.Step{Parameter: &patch.Parameter{Number: 0, Value: patch.Value{Bits: 100}}}
		},
			"target 201 real 5 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"},
		{"parameter, old value", "a_target", func(*acted) patch.Step {
			return patch.Step{Parameter: &patch.Parameter{Number: 1, Value: patch.Value{Bits: 5}, Old: old(1), Width: 4}}
		}, "target 25 real 5 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"},
		{"parameter, another old value", "a_target", func(*acted) patch.Step {
			return patch.Step{Parameter: &patch.Parameter{Number: 1, Value: patch.Value{Bits: 5}, Old: old(2), Width: 4}}
		}, plainAnswer},
		{"double", "a_real", func(*acted) patch.Step {
			return patch.Step{Parameter: &patch.Parameter{Value: patch.Value{Class: patch.Real, Bits: real(10)}}}
		}, "target 21 real 22 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"},
		{"float, old value", "a_real", func(*acted) patch.Step {
			return patch.Step{Parameter: &patch.Parameter{Number: 1, Value: patch.Value{Class: patch.Real, Bits: uint64(math.Float32bits(3))}, Old: old(uint64(math.Float32bits(2))), Width: 4}}
		}, "target 21 real 6 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"},
		{"double, old value", "a_real", func(*acted) patch.Step {
			return patch.Step{Parameter: &patch.Parameter{Value: patch.Value{Class: patch.Real, Bits: real(2)}, Old: old(real(1.5)), Width: 8}}
		}, "target 21 real 6 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"},
		{"call at the entry", "a_many", func(a *acted) patch.Step {
			return patch.Step{Call: &patch.Call{Target: a.address(t, "a_log"), Arguments: []patch.Argument{
				{Source: patch.FromParameter, Number: 5}, {Source: patch.Text, Text: "hello"},
				{Source: patch.FromParameter, Class: patch.Real, Number: 0},
			}}}
		}, "target 21 real 5 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 6 hello 3.0 errno 1"},
		{"call keeps errno", "a_target", func(a *acted) patch.Step {
			return patch.Step{Call: &patch.Call{Target: a.address(t, "a_log"), Arguments: []patch.Argument{
				{Bits: 3}, {Source: patch.Text, Text: "constants"}, {Class: patch.Real, Bits: real(2)},
			}}}
		}, "target 21 real 5 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 9 constants 4.0 errno 1"},
	}
	program := targets.Build(t, "testdata/acted.c", "-O2")
	a := startActed(t, program, "a_target", "a_real", "a_callee", "a_many")
	before := a.text(t)
	if got := a.Ask(t, "call"); got != plainAnswer {
		t.Errorf("before: %s", got)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a.add(t, "action", test.function, test.action(a))
			if got := a.Ask(t, "call"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			a.drop(t, "action")
			if !bytes.Equal(a.text(t), before) {
				t.Error("the code is not what it was")
			}
			results, _, _ := strings.Cut(plainAnswer, "logged")
			if after := a.Ask(t, "call"); !strings.HasPrefix(after, results) {
				t.Errorf("after: %s", after)
			}
		})
	}
	a.EndWell(t)
}

// Every register that a parameter can be in, each with a condition that holds
// and one that does not.
func TestEveryParameter(t *testing.T) {
	program := targets.Build(t, "testdata/acted.c", "-O2")
	a := startActed(t, program, "a_integers", "a_reals", "a_narrow")
	add := func(function string, class patch.Class, number int, old, value uint64, width int) {
		a.add(t, fmt.Sprintf("%s %d", function, number), function, patch.Step{Parameter: &patch.Parameter{
			Number: number, Value: patch.Value{Class: class, Bits: value}, Old: &old, Width: width,
		}})
	}
	for i := range 6 {
		add("a_integers", patch.Integer, i, uint64(i+1), uint64(9-i), 8)
	}
	for i := range 8 {
		add("a_reals", patch.Real, i, math.Float64bits(float64(i+1)), math.Float64bits(float64(9-i)), 8)
	}
	for i, p := range []struct {
		old   int64
		width int
	}{{-1, 4}, {-2, 2}, {3, 1}, {5, 2}} { // the last is not what is passed
		add("a_narrow", patch.Integer, i, uint64(p.old), uint64(2), p.width)
	}
	want := "target 21 real 5 one 70 two 700 integers 456789 narrow 226 reals 2.34568e+07 many 295.5 logged 0  errno 1"
	if got := a.Ask(t, "call"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
