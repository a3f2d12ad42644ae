// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/internal/loaderlist"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// ofProgram leaves out what a program has loaded into a namespace of the loader's own
// (dlmopen): that has a C library of its own, and memory that another one has given out
// ends the program there. Where there is one C library only nothing is.
func ofProgram(process proc.Holder, images []objfile.Image) ([]objfile.Image, error) {
	count := 0
	for _, image := range images {
		if image.Matches("libc.so.6") || image.Matches("libc-*.so") {
			count++
		}
	}
	if count <= 1 {
		return images, nil
	}
	list, err := loaderlist.Read(images, func(address uint64, buf []byte) error {
		return proc.Read(process, address, buf)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: which of its C libraries is the program's: %w", ErrUnsuited, err)
	}
	return slices.DeleteFunc(slices.Clone(images), func(image objfile.Image) bool {
		return !slices.ContainsFunc(list, func(e loaderlist.Entry) bool { return e.Is(image) })
	}), nil
}
