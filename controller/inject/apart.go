// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	"github.com/attune-hpc/attune/internal/loaderlist"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// ofProgram leaves out what a program has loaded into a namespace of the loader's own: memory
// that another C library has given out ends the program there.
func ofProgram(process proc.Holder, images []objfile.Image) ([]objfile.Image, error) {
	program, _, err := loaderlist.Split(process, images)
	if err != nil {
		return nil, fmt.Errorf("%w: which of its C libraries is the program's: %w", ErrUnsuited, err)
	}
	return program, nil
}
