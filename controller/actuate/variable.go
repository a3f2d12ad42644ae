// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"context"
	"fmt"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// planVariable prepares a write to a global variable from outside, without a
// stop. The variable must have exactly the size that the request says, and an
// address that is a multiple of it, so that no other thread reads half of it
// from two cache lines.
func planVariable(process Process, at *attunev1.SafePoint, set *attunev1.SetVariable) (*plan, error) {
	if kind := at.GetKind(); kind != attunev1.SafePoint_KIND_UNSPECIFIED && kind != attunev1.SafePoint_KIND_NOW {
		return nil, fmt.Errorf("%w: a variable is written at safe point \"now\" only", ErrRefused)
	}
	found, err := resolve(process, set.GetObject(), set.GetSymbol(), objfile.Variable)
	if err != nil {
		return nil, err
	}
	switch size := set.GetSize(); {
	case size != 1 && size != 2 && size != 4 && size != 8:
		return nil, fmt.Errorf("%w: size %d of %s: must be 1, 2, 4 or 8", ErrRefused, size, set.GetSymbol())
	case uint64(size) != found.Symbol.Size:
		return nil, fmt.Errorf("%w: %s has %d bytes in %s, the request says %d",
			ErrRefused, set.GetSymbol(), found.Symbol.Size, found.Image.Path, size)
	case found.Address%uint64(size) != 0:
		return nil, fmt.Errorf("%w: %s is not aligned", ErrRefused, set.GetSymbol())
	}
	word, err := wordAt(process, found.Image, found.Address, set.GetSymbol(), set.GetSize(), set.GetValue())
	if err != nil {
		return nil, err
	}
	if err := checkRequired(word, set); err != nil {
		return nil, err
	}
	return &plan{
		words: []Word{word},
		old:   decode(word.Old, set.GetValue()),
		run:   func(context.Context) (string, error) { return "now", writeWord(process, word) },
		read:  func() (*attunev1.Value, error) { return readBack(process, word, set.GetValue()) },
	}, nil
}

// wordAt reads the present content of an address and encodes the new one.
func wordAt(process Process, image objfile.Image, address uint64, name string, size uint32, value *attunev1.Value) (Word, error) {
	content, err := encode(value, size)
	if err != nil {
		return Word{}, err
	}
	old := make([]byte, size)
	if err := procmem.Read(process.PID(), address, old); err != nil {
		return Word{}, err
	}
	return Word{
		What:      image.Name() + ":" + name,
		ImagePath: image.Path, ImageInode: image.Inode, ImageBias: image.Bias,
		Address: address, Old: old, New: content,
	}, nil
}

func checkRequired(word Word, set *attunev1.SetVariable) error {
	if set.GetRequiredOld() == nil {
		return nil
	}
	required, err := encode(set.GetRequiredOld(), set.GetSize())
	if err != nil {
		return err
	}
	if !bytes.Equal(required, word.Old) {
		return fmt.Errorf("%w: %s is %x, not %x as the change requires", ErrRefused, word.What, word.Old, required)
	}
	return nil
}

func writeWord(process Process, word Word) error {
	return procmem.Write(process.PID(), word.Address, word.New)
}

// readBack checks that a word holds what was written.
func readBack(process Process, word Word, like *attunev1.Value) (*attunev1.Value, error) {
	now := make([]byte, len(word.New))
	if err := procmem.Read(process.PID(), word.Address, now); err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	if !bytes.Equal(now, word.New) {
		return nil, fmt.Errorf("%s reads back as %x instead of %x", word.What, now, word.New)
	}
	return decode(now, like), nil
}
