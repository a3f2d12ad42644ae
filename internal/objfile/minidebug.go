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
func (f *File) miniSymbols() (*symbolTable, error) {
	return f.tables.mini.get(f.readMiniSymbols)
}

func (f *File) readMiniSymbols() (*symbolTable, error) {
	packed, err := f.Section(".gnu_debugdata", maxMiniDebugBytes)
	if err != nil {
		return nil, err
	}
	data, err := bounded.Unxz(".gnu_debugdata", packed, maxMiniDebugBytes)
	if err != nil {
		return nil, unpacking(err)
	}
	mini := &File{reader: reader{at: bytes.NewReader(data), size: uint64(len(data))}, name: f.name + " (.gnu_debugdata)"}
	if mini.headers, err = readHeaders(mini.reader); err != nil {
		return nil, err
	}
	return mini.readStaticSymbols()
}
