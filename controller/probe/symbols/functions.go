// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/patch/flow"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/gocode"
	"github.com/attune-hpc/attune/internal/objfile/usdt"
	"github.com/attune-hpc/attune/internal/symname"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TargetOf names what a point watches: a pattern for the object, and what is
// looked for in it, for people.
func TargetOf(spec *attunev1.MeasurePoint) (object, what string) {
	if u := spec.GetUsdt(); u != nil {
		return u.GetObject(), fmt.Sprintf("static probe %s:%s:%s", u.GetObject(), u.GetProvider(), u.GetName())
	}
	return spec.GetFunction().GetObject(), TargetName(spec.GetFunction())
}

// Watched says whether an object of the process is one that a point means.
func Watched(image objfile.Image, object string) bool {
	return image.Matches(object) && !image.Matches("libattune-dm*")
}

// NoObject is the error of an object that a process has not mapped.
func NoObject(images []objfile.Image, object string) error {
	return objfile.NoObject(slices.DeleteFunc(slices.Clone(images), func(i objfile.Image) bool { return !Watched(i, "") }), object)
}

// FunctionsIn lists the functions of a file that match, each address once:
// aliases would count a call twice. Indirect functions are left out: their
// resolver runs once, and what it chooses has a symbol of its own.
func FunctionsIn(file *objfile.File, patterns []string) (found []objfile.Symbol, err error) {
	seen := make(map[uint64]bool)
	for _, pattern := range patterns {
		functions, err := file.Functions(pattern)
		if err != nil {
			return nil, err
		}
		for _, f := range functions {
			if !seen[f.FileOffset] {
				seen[f.FileOffset] = true
				found = append(found, f)
			}
		}
	}
	return found, nil
}

// CheckNames looks whether some object has a function of the target, so that
// the answer to a wrong name is about the name and not about mechanisms. An
// object that is not there yet may come.
func CheckNames(images []objfile.Image, target *attunev1.FunctionTarget) error {
	var errs []error
	known := false
	for _, image := range images {
		if !Watched(image, target.GetObject()) {
			continue
		}
		file, err := image.Open()
		if err != nil {
			continue // the mechanisms will say so
		}
		known = true
		functions, err := FunctionsIn(file, target.GetSymbols())
		if err == nil && len(functions) == 0 && target.GetObject() != "" {
			err = unknownIn(file, target.GetSymbols())
		}
		_ = file.Close() // read only
		if len(functions) > 0 {
			return nil
		}
		errs = append(errs, err)
	}
	switch err := errors.Join(errs...); {
	case !known:
		return NoObject(images, target.GetObject())
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: no object defines %s", objfile.ErrNoSymbol, TargetName(target))
}

// unknownIn is the error of a name that a file does not have, with names that
// are close to it.
func unknownIn(file *objfile.File, patterns []string) error {
	var errs []error
	for _, pattern := range patterns {
		_, err := file.Lookup(pattern, objfile.LookupOptions{Kind: objfile.Function, Suggest: true})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// SpotsOf lists where the kernel is to probe for a point in an image. The error
// says why some functions are left out, or all.
func SpotsOf(image objfile.Image, spec *attunev1.MeasurePoint) ([]uprobe.Symbol, error) {
	file, err := image.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	if spec.GetUsdt() != nil {
		return staticProbes(file, spec)
	}
	functions, err := FunctionsIn(file, spec.GetFunction().GetSymbols())
	if err != nil {
		return nil, err
	}
	if spec.GetPlace() == attunev1.Place_PLACE_EXIT && len(functions) > 0 && file.IsGo() {
		return returnsOf(file, functions)
	}
	out, refused := make([]uprobe.Symbol, 0, len(functions)), error(nil)
	for _, f := range functions {
		spot := uprobe.Symbol{Name: symname.Demangle(f.Name), Offset: f.FileOffset}
		if spec.GetPlace() == attunev1.Place_PLACE_BOTH && !file.IsGo() { // which is refused anyway
			if err := beginsOnce(file, f, spot); err != nil {
				refused = errors.Join(refused, err)
				continue
			}
		}
		out = append(out, spot)
	}
	return out, refused
}

// beginsOnce refuses a function that goes back to its entry: the probe there
// would begin the duration anew with each turn of that loop.
func beginsOnce(file *objfile.File, f objfile.Symbol, spot uprobe.Symbol) error {
	code, err := file.Code(f, int(f.Size))
	if err != nil {
		return nil //nolint:nilerr // the probe itself is refused, then
	}
	entry := f.Value + uprobe.PlaceOf(file, spot) - f.FileOffset
	if at, ok := flow.LoopsBack(flow.Part{Address: f.Value, Code: code}, entry); ok {
		return fmt.Errorf("%s: a branch at %#x leads back to its entry: its duration would begin anew with each turn of that loop; time what calls it", spot.Name, at)
	}
	return nil
}

// returnsOf lists the return instructions of Go functions. The error names those
// of which the exits are not all known.
func returnsOf(file *objfile.File, functions []objfile.Symbol) (out []uprobe.Symbol, refused error) {
	for _, f := range functions {
		returns, err := gocode.Returns(file, f)
		if err != nil {
			refused = errors.Join(refused, err)
		}
		for _, offset := range returns {
			out = append(out, uprobe.Symbol{Name: f.Name, Offset: offset, Return: true})
		}
	}
	return out, refused
}

// errStaticProbe: what is asked of a place that is no function.
var errStaticProbe = errors.New("a static probe is counted when it is hit: it has no exit")

func staticProbes(file *objfile.File, spec *attunev1.MeasurePoint) ([]uprobe.Symbol, error) {
	atEntry := spec.GetPlace() == attunev1.Place_PLACE_ENTRY || spec.GetPlace() == attunev1.Place_PLACE_UNSPECIFIED
	if !atEntry {
		return nil, errStaticProbe
	}
	probes, err := usdt.Find(file, spec.GetUsdt().GetProvider(), spec.GetUsdt().GetName())
	if errors.Is(err, usdt.ErrNone) && spec.GetUsdt().GetObject() == "" {
		return nil, nil // most objects have none
	}
	var out []uprobe.Symbol
	for _, p := range probes {
		out = append(out, uprobe.Symbol{
			Name: p.Provider + ":" + p.Name, Offset: p.FileOffset, Counter: p.SemaphoreOffset,
			Static: true, Arguments: p.Arguments, ArgumentError: p.ArgumentError,
		})
	}
	return out, err
}

// TargetName is what people call a target.
func TargetName(target *attunev1.FunctionTarget) string {
	symbols := strings.Join(target.GetSymbols(), ", ")
	if target.GetObject() == "" {
		return symbols
	}
	return target.GetObject() + ":" + symbols
}
