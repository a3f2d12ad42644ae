// SPDX-License-Identifier: Apache-2.0

package dmlib

import (
	"embed"
	"errors"
)

// ErrNotBuilt says that this Go program was built before the C library was.
var ErrNotBuilt = errors.New("dmlib is not part of this build: run make dmlib, then go build again")

// The folder, not the file: it holds a committed placeholder, so that the
// pattern matches on a checkout where nothing was built yet.
//
//go:embed all:build
var built embed.FS

// Library returns the bytes of the shared library that was embedded when the
// program was built. The caller owns the slice. The error is ErrNotBuilt.
func Library() ([]byte, error) { return readBuilt("libattune-dm.so") }

// LoadProbe returns the bytes of the program by which libraries are probed for
// variables without symbol (probe/load.c). The error is ErrNotBuilt.
func LoadProbe() ([]byte, error) { return readBuilt("probe-load") }

// Entry returns what a running process executes to load the library (entry/),
// in a mapping that begins with it. The error is ErrNotBuilt.
func Entry() ([]byte, error) { return readBuilt("entry.bin") }

// Glue returns the program that packed files start with (glue/). The error is
// ErrNotBuilt.
func Glue() ([]byte, error) { return readBuilt("glue") }

func readBuilt(name string) ([]byte, error) {
	content, err := built.ReadFile("build/" + name)
	if err != nil || len(content) == 0 {
		return nil, ErrNotBuilt
	}
	return content, nil
}
