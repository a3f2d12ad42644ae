// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"

	"github.com/attune-hpc/attune/internal/bounded"
)

// maxMiniDebugBytes bounds .gnu_debugdata, packed and not. Distributions pack about a
// twentieth of a file into it.
const maxMiniDebugBytes = 64 << 20

// miniSymbols returns the symbol table of the ELF file within .gnu_debugdata
// (MiniDebugInfo), which distributions leave in stripped programs so that stacks can
// be told: the functions that .dynsym lacks. [ErrNoSection] if there is none.
func (in *symbols) miniSymbols() (*symbolTable, error) {
	return in.kept.mini.get(in.readMiniSymbols)
}

func (in *symbols) readMiniSymbols() (*symbolTable, error) {
	packed, err := in.Section(".gnu_debugdata", maxMiniDebugBytes)
	if err != nil {
		return nil, err
	}
	data, err := bounded.Unxz(".gnu_debugdata", packed, maxMiniDebugBytes)
	if err != nil {
		return nil, unpacking(err)
	}
	inner, err := readLayout(in.name+" (.gnu_debugdata)", reader{at: bytes.NewReader(data), size: uint64(len(data))})
	if err != nil {
		return nil, err
	}
	return (&linking{layout: inner}).readStaticSymbols()
}
