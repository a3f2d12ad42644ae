// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func take(function string, paths ...string) *attunev1.MeasurePoint {
	spec := &attunev1.MeasurePoint{Id: "x", Target: &attunev1.MeasurePoint_Function{
		Function: &attunev1.FunctionTarget{Object: "named", Symbols: []string{function}},
	}}
	for _, path := range paths {
		spec.Captures = append(spec.Captures, &attunev1.Capture{Name: path, Source: &attunev1.Capture_Path{Path: path}})
	}
	return spec
}

func TestNames(t *testing.T) {
	program := targets.Build(t, "testdata/named.c", "-g", "-O1")
	target := targets.Start(t, program)
	var names Names
	images := func() ([]objfile.Image, error) { return objfile.Images(target.PID) }
	tests := []struct{ function, path, want string }{
		{"handle", "n", `parameter: 0 type: CAPTURE_TYPE_I32`},
		{"handle", "request", `parameter: 1 type: CAPTURE_TYPE_POINTER`},
		{"handle", "request->size", `parameter: 1 type: CAPTURE_TYPE_I64 dereference: 0`},
		{"handle", "request.flags", `parameter: 1 type: CAPTURE_TYPE_U16 dereference: 8`},
		{"handle", "request->weight", `parameter: 1 type: CAPTURE_TYPE_F64 dereference: 16`},
		{"handle", "request->tag", `parameter: 1 type: CAPTURE_TYPE_STRING dereference: 24`},
		{"handle", "request->first->id", `parameter: 1 type: CAPTURE_TYPE_I32 dereference: [32, 0]`},
		{"handle", "request->first->label", `parameter: 1 type: CAPTURE_TYPE_STRING dereference: [32, 8, 0]`},
		{"handle", "request->parts[2].id", `parameter: 1 type: CAPTURE_TYPE_I32 dereference: 72`},
		{"handle", "factor", `parameter: 0 type: CAPTURE_TYPE_F64`},
		{"handle", "path", `parameter: 2 type: CAPTURE_TYPE_STRING dereference: 0`},
		{"handle", "byte", `parameter: 3 type: CAPTURE_TYPE_U8`},
		{"handle", "global_request.flags", `global {symbol: "global_request"} type: CAPTURE_TYPE_U16 dereference: 8`},
		{"handle", "calls", `global {symbol: "calls"} type: CAPTURE_TYPE_I32 dereference: 0`},
		{"handle*", "calls", `global {symbol: "calls"} type: CAPTURE_TYPE_I32 dereference: 0`},
	}
	for _, test := range tests {
		t.Run(test.function+" "+test.path, func(t *testing.T) {
			var want attunev1.Capture
			if err := prototext.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			want.Name = test.path
			if want.GetGlobal() != nil {
				want.GetGlobal().Object = program
			}
			got, err := names.Named(take(test.function, test.path), images)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got.GetCaptures()[0], protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
	refused := map[string]struct{ function, path, want string }{
		"unknown name":          {"handle", "m", "it has: n, request, factor"},
		"unknown member":        {"handle", "request->length", "field length"},
		"structure by value":    {"handle", "two", "structure"},
		"member of it":          {"handle", "two.a", "by value"},
		"on the stack":          {"handle", "seven", "on the stack"},
		"whole structure":       {"handle", "global_request", "name a member"},
		"one for each thread":   {"handle", "per_thread", "each thread"},
		"functions that differ": {"handle*", "n", "do not agree"},
		"no such function":      {"nothing", "n", "no object defines"},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			if _, err := names.Named(take(test.function, test.path), images); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestNamesWithoutDebugInformation(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/named.c", "-g0"))
	var names Names
	images := func() ([]objfile.Image, error) { return objfile.Images(target.PID) }
	if _, err := names.Named(take("handle", "n"), images); err == nil || !strings.Contains(err.Error(), "arg0") {
		t.Errorf("%v", err)
	}
	plain := take("handle")
	if got, err := names.Named(plain, images); err != nil || got != plain {
		t.Errorf("%v, %v", got, err)
	}
}

// TestNamesOfNamesakes: a variable is that of the library that was asked for, whatever
// others have its base name.
func TestNamesOfNamesakes(t *testing.T) {
	plugin := func(value string) string {
		return targets.BuildText(t, "plugin.so", "int counter = "+value+"; int f(void) { return counter; }\n", "-shared", "-fPIC", "-g")
	}
	one, two := plugin("1"), plugin("2")
	target := targets.Start(t, targets.BuildText(t, "loads", `#include <dlfcn.h>
#include <stdio.h>
int main(void) {
	if (!dlopen("`+one+`", RTLD_NOW) || !dlopen("`+two+`", RTLD_NOW)) return 1;
	puts("ready"); fflush(stdout);
	return getchar() == 0;
}
`))
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	var names Names
	for _, path := range []string{one, two} {
		spec := take("f", "counter")
		spec.GetFunction().Object = path
		got, err := names.Named(spec, func() ([]objfile.Image, error) { return images, nil })
		if err != nil {
			t.Fatal(err)
		}
		global := got.GetCaptures()[0].GetGlobal()
		found, err := objfile.LookupIn(images, global.GetObject(), global.GetSymbol(), objfile.Variable)
		if err != nil || found.Image.Path != path {
			t.Errorf("%s: %v in %s, %v", path, global, found.Image.Path, err)
		}
	}
}
