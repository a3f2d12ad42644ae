// SPDX-License-Identifier: Apache-2.0

package loaderlist

import (
	"slices"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// Split tells the objects of a process that are the program's from those that it has loaded
// into a namespace of the loader's own (dlmopen, LD_AUDIT), with a C library of their own.
// Where there is one C library only all are the program's; with an error nobody knows.
func Split(process proc.Holder, images []objfile.Image) (program, apart []objfile.Image, err error) {
	count := 0
	for _, image := range images {
		if image.Matches("libc.so.6") || image.Matches("libc-*.so") {
			count++
		}
	}
	if count <= 1 {
		return images, nil, nil
	}
	list, err := Read(images, func(address uint64, buf []byte) error { return proc.Read(process, address, buf) })
	if err != nil {
		return images, nil, err
	}
	for _, image := range images {
		if slices.ContainsFunc(list, func(e Entry) bool { return e.Is(image) }) {
			program = append(program, image)
		} else {
			apart = append(apart, image)
		}
	}
	return program, apart, nil
}

// ProgramFirst returns the objects of a process with those of the program before all others,
// so that a name which both have is found there; as they are where nobody knows.
func ProgramFirst(process proc.Holder, images []objfile.Image) []objfile.Image {
	program, apart, err := Split(process, images)
	if err != nil {
		return images
	}
	return slices.Concat(program, apart)
}
