// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"os"
	"path/filepath"
	"testing"
)

// Packages are tested beside each other, and share what they have compiled.
func TestProgramsAreKeptWhole(t *testing.T) {
	folder, program := t.TempDir(), make([]byte, 1<<20)
	if err := keep(folder, "key", program); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		var err error
		for range 200 {
			if err = keep(folder, "key", program); err != nil {
				break
			}
		}
		written <- err
	}()
	for {
		got, err := os.ReadFile(filepath.Join(folder, "key"))
		if err != nil || len(got) != len(program) {
			t.Fatalf("%d bytes of %d, %v", len(got), len(program), err)
		}
		select {
		case err := <-written:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}
