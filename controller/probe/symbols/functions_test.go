// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/usdt"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ownImage is this test program, as it is mapped here.
func ownImage(t *testing.T) objfile.Image {
	t.Helper()
	images, err := objfile.Images(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if image.Matches(filepath.Base(os.Args[0])) {
			return image
		}
	}
	t.Fatalf("%s is not among %d images", os.Args[0], len(images))
	return objfile.Image{}
}

//go:noinline
func watchedExample(n int) int {
	if n > len(os.Args) {
		return n * n
	}
	return n
}

const exampleName = "github.com/attune-hpc/attune/controller/probe/symbols.watchedExample"

func TestCheckNames(t *testing.T) {
	if watchedExample(1) != 1 { // keeps it in the program
		t.Fatal("the example is wrong")
	}
	image := ownImage(t)
	tests := map[string]struct {
		object, symbol string
		err            error
		text           string
	}{
		"there":        {image.Name(), exampleName, nil, ""},
		"pattern":      {image.Name(), "*symbols.watched*", nil, ""},
		"any object":   {"", exampleName, nil, ""},
		"typing error": {image.Name(), exampleName + "s", objfile.ErrNoSymbol, "close to it: " + exampleName},
		"no object":    {"libnothing.so", "f", objfile.ErrNoObject, "libnothing.so"},
		"nowhere":      {"", "nothing_of_this_name", objfile.ErrNoSymbol, "no object defines"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := CheckNames([]objfile.Image{image}, &attunev1.FunctionTarget{Object: test.object, Symbols: []string{test.symbol}})
			if !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.text) {
				t.Error(err)
			}
		})
	}
}

func TestSpots(t *testing.T) {
	image := ownImage(t)
	function := &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{Symbols: []string{exampleName}}}
	entry, err := SpotsOf(image, &attunev1.MeasurePoint{Target: function})
	if err != nil || len(entry) != 1 || entry[0].Return {
		t.Fatalf("entry: %+v, %v", entry, err)
	}
	exits, err := SpotsOf(image, &attunev1.MeasurePoint{Target: function, Place: attunev1.Place_PLACE_EXIT})
	if err != nil || len(exits) < 2 {
		t.Fatalf("exits: %+v, %v", exits, err)
	}
	for _, exit := range exits {
		if !exit.Return || exit.Offset <= entry[0].Offset {
			t.Errorf("exit %+v of %+v", exit, entry[0])
		}
	}
	static := &attunev1.MeasurePoint_Usdt{Usdt: &attunev1.UsdtTarget{Object: image.Name(), Provider: "a", Name: "b"}}
	if _, err := SpotsOf(image, &attunev1.MeasurePoint{Target: static}); !errors.Is(err, usdt.ErrNone) {
		t.Error(err)
	}
	if _, err := SpotsOf(image, &attunev1.MeasurePoint{Target: static, Place: attunev1.Place_PLACE_EXIT}); !errors.Is(err, errStaticProbe) {
		t.Error(err)
	}
}
