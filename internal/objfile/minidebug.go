// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"fmt"
	"io"

	"github.com/xi2/xz"
)

// Bounds of .gnu_debugdata. Distributions pack about a twentieth of a file
// into it.
const (
	maxMiniDebugBytes = 64 << 20
	// maxDictionaryBytes is what the decompressor may allocate; xz -9 uses all
	// of it.
	maxDictionaryBytes = 64 << 20
)

// miniDebug returns the ELF file within .gnu_debugdata (MiniDebugInfo), which
// distributions leave in stripped programs so that stacks can be told: a
// symbol table of the functions that .dynsym lacks. [ErrNoSection] if there is
// none. It lives in memory and need not be closed.
func (f *File) miniDebug() (*File, error) {
	packed, err := f.Section(".gnu_debugdata", maxMiniDebugBytes)
	if err != nil {
		return nil, err
	}
	stream, err := xz.NewReader(bytes.NewReader(packed), maxDictionaryBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: .gnu_debugdata: %w", ErrCorrupt, err)
	}
	data, err := io.ReadAll(io.LimitReader(stream, maxMiniDebugBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: .gnu_debugdata: %w", ErrCorrupt, err)
	case len(data) > maxMiniDebugBytes:
		return nil, fmt.Errorf("%w: .gnu_debugdata exceeds %d bytes", ErrUnsupported, maxMiniDebugBytes)
	}
	mini := &File{reader: reader{at: bytes.NewReader(data), size: uint64(len(data))}, name: f.name + " (.gnu_debugdata)"}
	mini.headers, err = readHeaders(mini.reader)
	return mini, err
}
