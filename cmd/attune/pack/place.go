// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/attune-hpc/attune/internal/packfile"
)

// placeFlags says where the program is to be unpacked.
func placeFlags(o packOptions) (packfile.Flags, error) {
	switch o.place {
	case placeMemory:
		return 0, nil
	case placeBeside:
		return packfile.Beside, nil
	}
	origin, err := usesOrigin(o.program)
	if err != nil {
		return 0, err
	}
	if origin {
		return packfile.Beside, nil
	}
	itself, err := mentions(o.program, "/proc/self/exe")
	if err != nil || !itself {
		return 0, err
	}
	return packfile.Beside | packfile.MayMove, nil
}

// usesOrigin tells whether the loader looks for the program's libraries beside
// it: without them it does not start.
func usesOrigin(path string) (bool, error) {
	file, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // read only
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		values, err := file.DynString(tag)
		if err != nil {
			return false, nil // no dynamic section
		}
		for _, v := range values {
			if strings.Contains(v, "$ORIGIN") || strings.Contains(v, "${ORIGIN}") {
				return true, nil
			}
		}
	}
	return false, nil
}

// mentions tells whether a file contains a text.
func mentions(path, text string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // read only
	r := bufio.NewReaderSize(file, 1<<20)
	for {
		window, err := r.Peek(r.Size())
		if bytes.Contains(window, []byte(text)) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if _, err := r.Discard(len(window) - len(text)); err != nil {
			return false, err
		}
	}
}
