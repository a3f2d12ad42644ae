// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestExports: what is remembered is what the object says.
func TestExports(t *testing.T) {
	target := targets.Start(t, targets.Program(t, "spawns"))
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	var e Exports
	names := []string{"malloc", "free", "pthread_create", "memcpy", "main", "environ", "no_such_function", ""}
	found := 0
	for range 2 {
		for _, image := range images {
			for _, name := range names {
				want := image.Exports(name)
				if got := e.Has(image, name); got != want {
					t.Errorf("%s: %s %t, want %t", image.Name(), name, got, want)
				}
				if want {
					found++
				}
			}
		}
	}
	if found < 2*3 {
		t.Errorf("%d found in %d objects", found, len(images))
	}
}
