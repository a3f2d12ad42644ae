// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/symname"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// suggested is how many names an error lists.
const suggested = 5

// InOneObject returns a point that names a function alone with the object that is
// meant; any other point as it is. That is the program, if it has the function, else
// the only library that has, beside the loader: [objfile.ErrAmbiguous] where there are several, with
// their names, and [objfile.ErrNoSymbol], with close names of the program.
func InOneObject(spec *attunev1.MeasurePoint, mapped func() ([]objfile.Image, error)) (*attunev1.MeasurePoint, error) {
	target := spec.GetFunction()
	if !target.GetOneObject() || target.GetObject() != "" {
		return spec, nil
	}
	images, err := mapped()
	if err != nil {
		return nil, err
	}
	have := slices.DeleteFunc(slices.Clone(images), func(i objfile.Image) bool {
		return !Watched(i, "") || !defines(i, target.GetSymbols())
	})
	if main := slices.IndexFunc(have, objfile.Image.Main); main >= 0 {
		have = have[main : main+1]
	}
	if len(have) > 1 { // the loader has some of the C library's for itself
		have = slices.DeleteFunc(have, func(i objfile.Image) bool { return i.Matches("ld-linux*") })
	}
	switch {
	case len(have) == 0:
		return nil, nowhere(images, target)
	case len(have) > 1:
		return nil, severalObjects(have, target)
	}
	out := proto.CloneOf(spec)
	out.GetFunction().Object = symname.Escape(have[0].Path)
	out.GetFunction().DynamicCallsOnly = !have[0].Main()
	return out, nil
}

// defines says whether an object has a function of these names; an indirect one, and
// one of several of a name, are. So are those of a pattern that matches too many: to place
// the point says why.
func defines(image objfile.Image, patterns []string) bool {
	file, err := image.Open()
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // read only
	functions, err := FunctionsIn(file, patterns)
	return len(functions) > 0 || slices.ContainsFunc([]error{objfile.ErrIndirect, objfile.ErrAmbiguous, objfile.ErrTooManySymbols},
		func(one error) bool { return errors.Is(err, one) })
}

// nowhere is the error of a function that no object has.
func nowhere(images []objfile.Image, target *attunev1.FunctionTarget) error {
	none := fmt.Errorf("%w: no object defines %s", objfile.ErrNoSymbol, TargetName(target))
	main := slices.IndexFunc(images, objfile.Image.Main)
	if main < 0 {
		return none
	}
	file, err := images[main].Open()
	if err != nil {
		return none
	}
	defer func() { _ = file.Close() }() // read only
	return fmt.Errorf("%w; nor has any library of the process", unknownIn(file, target.GetSymbols()))
}

// severalObjects is the error of a function that several libraries have.
func severalObjects(have []objfile.Image, target *attunev1.FunctionTarget) error {
	var choices []string
	for _, image := range have[:min(len(have), suggested)] {
		choices = append(choices, image.Name()+":"+TargetName(target))
	}
	more := ""
	if n := len(have) - len(choices); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w: %d libraries have %s; write %s%s", objfile.ErrAmbiguous, len(have), TargetName(target), strings.Join(choices, " or "), more)
}
