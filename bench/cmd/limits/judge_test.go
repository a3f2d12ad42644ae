// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestReadLives(t *testing.T) {
	const second = 1_000_000_000
	for _, tt := range []struct {
		name     string
		exceeded bool
		words    []uint64 // the excess, and of each process its id and its last sign of life
		late     []float64
		failed   int
	}{
		{"late", true, []uint64{second, 0, second + 5e6, 0, second + 2e6}, []float64{5}, 0},
		{"ended at the excess", true, []uint64{second, 0, second}, []float64{0}, 0},
		{"the tree as a whole had exceeded it before", true, []uint64{0, 0, second}, []float64{0}, 0},
		{"ended too early", false, []uint64{0, 0, second}, nil, 1},
		{"one is left", true, []uint64{second, uint64(os.Getpid()), second + 1e6}, []float64{1}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var data []byte
			for _, word := range tt.words {
				data = binary.NativeEndian.AppendUint64(data, word)
			}
			path := filepath.Join(t.TempDir(), "lives")
			files.Write(t, path, data, 0o600)
			var f figures
			if err := f.readLives(path, "wall_seconds", tt.exceeded); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(f.LateMilliseconds, tt.late) || len(f.Failed) != tt.failed {
				t.Errorf("late %v, want %v; failed: %q, want %d", f.LateMilliseconds, tt.late, f.Failed, tt.failed)
			}
		})
	}
}

// Who makes no round keeps no goal of time, and who leaves out a field none of all.
func TestFieldsWithoutARoundMiss(t *testing.T) {
	d := &document{}
	d.Print()
	met := 0
	for _, g := range d.Goals {
		if g.Met() {
			met++
		}
	}
	if met != len(modes) { // no round failed
		t.Errorf("%d goals met: %+v", met, d.Goals)
	}
}
