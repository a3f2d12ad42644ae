// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// breakpoint is the instruction that a uprobe or a debugger puts into code.
const breakpoint = 0xcc

// untouched returns the functions whose code in the process is that of the file,
// and why others are refused. At a breakpoint the kernel executes what the file
// says and goes on behind it: that is the middle of a jump which somebody else
// has written there, another controller or tool. Patches of this controller's
// own give way before, and are not looked at while they do.
func (h *host) untouched(image objfile.Image, file io.ReaderAt, symbols []uprobe.Symbol) (good []uprobe.Symbol, refused error) {
	mappings, err := objfile.Mappings(h.process.PID())
	if err != nil {
		return nil, err
	}
	for _, s := range symbols {
		if err := h.compare(mappings, image, file, uprobe.PlaceOf(file, s)); err != nil {
			refused = errors.Join(refused, fmt.Errorf("%s: %w", s.Name, err))
			continue
		}
		good = append(good, s)
	}
	return good, refused
}

// errTouched: the code of the process is not that of its file.
var errTouched = errors.New("its code is not what its file says: another attune, a debugger or another tool has changed it")

// compare compares the code at an offset of a file with that of the process.
// What cannot be read is not compared: it is executed by nobody.
func (h *host) compare(mappings []objfile.Mapping, image objfile.Image, file io.ReaderAt, offset uint64) error {
	there, here := make([]byte, patch.JumpBytes), make([]byte, patch.JumpBytes)
	n, err := file.ReadAt(there, int64(offset))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, m := range mappings {
		length := m.End - m.Start
		if !m.Exec || m.Device != image.Device || m.Inode != image.Inode || offset-m.Offset >= length {
			continue
		}
		n = min(n, int(length-(offset-m.Offset)))
		if proc.Read(h.process, m.Start+offset-m.Offset, here[:n]) != nil {
			continue
		}
		if here[0] == breakpoint {
			here[0] = there[0]
		}
		if !bytes.Equal(here[:n], there[:n]) {
			return errTouched
		}
	}
	return nil
}
