// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/pointtext"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A static probe says which of its arguments are signed: the value -1 of an int is no
// 18446744073709551615.
func TestTyped(t *testing.T) {
	program := targets.Build(t, "../../../internal/objfile/usdt/testdata/probes.c")
	target := targets.Launch(t, exec.Command(program))
	images := func() ([]objfile.Image, error) { return objfile.Images(target.PID) }
	const (
		open = attunev1.CaptureType_CAPTURE_TYPE_UNSPECIFIED
		i64  = attunev1.CaptureType_CAPTURE_TYPE_I64
	)
	for text, want := range map[string]attunev1.CaptureType{
		"usdt:probes:attune:work take arg0":        i64, // -4@
		"usdt:probes:attune:w* take arg0":          i64,
		"usdt:probes:attune:work take arg1":        open, // 8@
		"usdt:probes:attune:work take arg2":        open, // there is none
		"usdt:probes:attune:nothing take arg0":     open,
		"usdt:probes:attune:work take arg0:u32":    attunev1.CaptureType_CAPTURE_TYPE_U32,
		"usdt:probes:attune:work take arg0->8":     open,
		"usdt:probes:attune:work by arg0":          i64,
		"usdt:probes:attune:work if arg0 < 0 each": i64,
		"probes:main take arg0, arg1":              open,
	} {
		t.Run(text, func(t *testing.T) {
			point, err := pointtext.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			typed, err := Typed(point.Spec, images)
			if err != nil {
				t.Fatal(err)
			}
			if got := typed.GetCaptures()[0].GetType(); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
