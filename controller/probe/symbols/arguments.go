// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Typed returns a point at a static probe with every argument that is captured without a
// type as a signed integer where the probe says that it is one; the point itself if there is
// none. What cannot be read stays as it is: placing the point says why.
func Typed(spec *attunev1.MeasurePoint, mapped func() ([]objfile.Image, error)) (*attunev1.MeasurePoint, error) {
	untyped := func(c *attunev1.Capture) bool { return attunev1.UntypedArgument(spec, c) }
	if !slices.ContainsFunc(spec.GetCaptures(), untyped) {
		return spec, nil
	}
	images, err := mapped()
	if err != nil {
		return nil, err
	}
	var spots []uprobe.Symbol
	for _, image := range images {
		if Watched(image, spec.GetUsdt().GetObject()) {
			found, _ := SpotsOf(image, spec)
			spots = append(spots, found...)
		}
	}
	out := proto.CloneOf(spec)
	for _, c := range out.GetCaptures() {
		if untyped(c) && slices.ContainsFunc(spots, func(s uprobe.Symbol) bool { return signed(s, c.GetParameter()) }) {
			c.Type = attunev1.CaptureType_CAPTURE_TYPE_I64
		}
	}
	return out, nil
}

// signed says whether an argument is a signed integer.
func signed(s uprobe.Symbol, argument uint32) bool {
	return uint64(argument) < uint64(len(s.Arguments)) && s.Arguments[argument].Signed && !s.Arguments[argument].Float
}
