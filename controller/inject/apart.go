// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	"github.com/attune-hpc/attune/internal/loaderlist"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// ofProgram tells apart what a program has, or an auditor of its (LD_AUDIT), loaded into a
// namespace of the loader's own: memory that another C library has given out ends the
// program there, and a lock of that library is none of the program's.
func ofProgram(process proc.Holder, images []objfile.Image) (program, apart []objfile.Image, err error) {
	program, apart, err = loaderlist.Split(process, images)
	if err != nil {
		err = fmt.Errorf("%w: which of its C libraries is the program's: %w", ErrUnsuited, err)
	}
	return program, apart, err
}

// isLibc says whether an image is the C library.
func isLibc(image objfile.Image) bool {
	return image.Matches("libc.so.6") || image.Matches("libc-*.so")
}
