// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// planMalloc prepares a change of one of glibc's malloc parameters.
//
// mallopt takes the lock of the main arena, so it is called where the thread
// could legally call malloc: at the entry of an allocation hook. Where the
// layout of malloc's parameters is known the old value is read, the new one
// read back, and undoing puts the very words back, the dynamic threshold
// included; where it is not, undoing sets glibc's documented default.
func (a *Actuator) planMalloc(ctx context.Context, process Process, at *attunev1.SafePoint, s Setting, value *attunev1.Value) (*plan, error) {
	amount, ok := whole(value)
	if !ok {
		return nil, fmt.Errorf("%w: %s takes a whole number", ErrRefused, s.Name)
	}
	if amount < s.Min || amount > s.Max {
		return nil, fmt.Errorf("%w: %s = %d is outside %d..%d", ErrRefused, s.Name, amount, s.Min, s.Max)
	}
	mallopt, err := resolveMallopt(process)
	if err != nil {
		return nil, err
	}
	words, layoutErr := a.mallocWords(ctx, process, mallopt.Image, s, amount)
	p := &plan{words: words, read: func() (*attunev1.Value, error) { return integer(amount), nil }}
	if layoutErr == nil {
		p.old = decode(words[0].Old, integer(0))
		p.read = func() (*attunev1.Value, error) { return readBack(process, words[0], integer(0)) }
	}
	mailbox := process.Mailbox()
	switch {
	case mailbox != nil:
		p.run = func(ctx context.Context) (string, error) {
			return callMallopt(ctx, mailbox, at, mallopt.Address, s, amount)
		}
		if layoutErr != nil {
			a.log.Warn("malloc parameters cannot be read; undo will set glibc's default", "error", layoutErr)
			p.undo = func(ctx context.Context) error {
				_, err := callMallopt(ctx, mailbox, at, mallopt.Address, s, s.Default)
				return err
			}
		}
	case layoutErr == nil:
		p.run = func(context.Context) (string, error) { return "now", writeWords(process, words) }
	default:
		return nil, fmt.Errorf("%w: no DMLib in the process, and its malloc parameters are not found: %w", ErrRefused, layoutErr)
	}
	return p, nil
}

func callMallopt(ctx context.Context, mailbox Mailbox, at *attunev1.SafePoint, address uint64, s Setting, amount int64) (string, error) {
	ctx, cancel := safePointContext(ctx, at)
	defer cancel()
	ok, where, err := mailbox.Call(ctx, Call{Function: address, Arguments: []uint64{uint64(int64(s.option)), uint64(amount)}})
	if err == nil && ok&0xffffffff != 1 {
		err = fmt.Errorf("mallopt refused %s = %d", s.Name, amount)
	}
	return where, err
}

// mallocWords are the words that mallopt will change: the parameter, and the
// flag that ends glibc's own adjustment of the thresholds.
func (a *Actuator) mallocWords(ctx context.Context, process Process, libc objfile.Image, s Setting, amount int64) ([]Word, error) {
	if a.options.MallocLayout == nil {
		return nil, errors.New("no layout known")
	}
	layout, err := a.options.MallocLayout(ctx, libc)
	if err != nil {
		return nil, err
	}
	parameter, err := wordAt(process, libc, libc.Bias+s.field(layout), s.Name, 8, integer(amount))
	if err != nil {
		return nil, err
	}
	fixed, err := wordAt(process, libc, libc.Bias+layout.NoDynThreshold, "no_dyn_threshold", 4, integer(1))
	if err != nil {
		return nil, err
	}
	return []Word{parameter, fixed}, nil
}

// writeWords changes the words one after the other. Each is read by malloc on
// its own, and any mixture of old and new bytes is a valid size.
func writeWords(process Process, words []Word) error {
	for _, w := range words {
		if err := writeWord(process, w); err != nil {
			return err
		}
	}
	return nil
}

// resolveMallopt finds mallopt, and refuses where glibc's malloc is not the
// one that the program uses.
func resolveMallopt(process Process) (objfile.Resolved, error) {
	images, err := process.Images()
	if err != nil {
		return objfile.Resolved{}, err
	}
	for _, image := range images {
		if image.Matches("libc.so*") || image.Matches("ld-linux*") || image.Matches("libattune-dm*") {
			continue
		}
		if _, err := image.Symbol("malloc", objfile.Function); err == nil {
			return objfile.Resolved{}, fmt.Errorf("%w: the program's allocator is %s, not glibc", ErrRefused, image.Path)
		}
	}
	return resolve(process, "libc.so*", "mallopt", objfile.Function)
}
