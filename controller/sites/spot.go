// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"context"
	"fmt"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/proc"
)

// spot is one place whose code is or was patched. What it leads to stays when
// the patch is taken out: a thread may be in it. Its [Sites] locks it.
//
//	the code      e9 ....            one byte is changed, to this jump and back,
//	                                 or all five (a wide site)
//	the landing   jmp *pointer       in an arena or window, for good
//	the pointer   address            its second byte chooses
//	programs      what is done       in a window, each for good
type spot struct {
	site     patch.Site
	hook     uint64            // of DMLib, for measuring
	pointer  uint64            // where the pointer stands
	window   *patch.Window     // nil: inherited, and nobody knows what is free in it
	spare    uint64            // a slot of the window, to go on in another
	programs map[string]uint64 // by what they do; those in the window
	now      patch.Program     // where the pointer leads
	active   bool              // the jump stands in the code
	beside   error             // that the jump reaches into another function; nil: it does not
}

// activate makes the code begin with the jump, deactivate as it was. A library
// that is not mapped any more, or anew, is so already.
func (p *spot) activate(ctx context.Context, w writer) error {
	err := w.exchange(ctx, p.site.Address, p.site.Original, p.site.Patched())
	p.active = p.active || err == nil
	return err
}

func (p *spot) deactivate(ctx context.Context, w writer) error {
	if !p.active {
		return nil
	}
	err := w.exchange(ctx, p.site.Address, p.site.Patched(), p.site.Original)
	p.active = err != nil
	return err
}

// rehearse finds out whether a place can be patched that needs all threads to be
// stopped.
func (p *spot) rehearse(ctx context.Context, w writer) error {
	if !p.site.Wide() || p.active {
		return nil
	}
	if err := w.process.Rewrite(ctx, proc.Change{Address: p.site.Address, From: p.site.Original, To: p.site.Original}); err != nil {
		return fmt.Errorf("%w: %w", errStopping, err)
	}
	return nil
}

// exchangeAll writes the whole jumps of places, or takes them out, in one stop, and
// notes what stands there then.
func exchangeAll(ctx context.Context, w writer, places []*spot, in bool) {
	changes := make([]proc.Change, 0, len(places))
	for _, p := range places {
		from, to := p.site.Original, p.site.Patched()
		if !in {
			from, to = to, from
		}
		_, last := differences(from, to)
		changes = append(changes, proc.Change{Address: p.site.Address, From: from[:last+1], To: to[:last+1]})
	}
	_ = w.process.Rewrite(ctx, changes...) // what stands there says more
	for _, p := range places {
		code, err := w.read(p.site.Address, len(p.site.Original))
		switch {
		case err != nil:
		case bytes.Equal(code, p.site.Original):
			p.active = false
		case bytes.Equal(code, p.site.Patched()):
			p.active = true
		}
	}
}

// distinct refuses a place whose patch would change the jump of another one.
func distinct(site patch.Site, others []*spot) error {
	for _, other := range others {
		if other != nil && site.Overlaps(other.site) {
			return fmt.Errorf("%w: it is %d bytes from what else is patched",
				patch.ErrUnpatchable, int64(other.site.Address-site.Address))
		}
	}
	return nil
}

// Bytes is code that a patch changes: one byte of it, or a few (see
// [patch.Wide]). It is all that a journal has to know: writing Old back where
// New stands undoes everything that was done at that place, see [Restore].
type Bytes struct {
	// Address in the process.
	Address uint64 `json:"address"`
	// Device and Inode of the file that is mapped there, and which byte of it
	// stands at Address.
	Device     uint64 `json:"device"`
	Inode      uint64 `json:"inode"`
	FileOffset uint64 `json:"file_offset"`
	// Old is the code without the patch, New that with it, equally long.
	Old []byte `json:"old"`
	New []byte `json:"new"`
}

// bytes are what the journal keeps of a place of a function.
func (p *spot) bytes(f Function) Bytes {
	return Bytes{
		Address: p.site.Address, Device: f.Image.Device, Inode: f.Image.Inode,
		FileOffset: f.Symbol.FileOffset + p.site.Address - f.address(),
		Old:        p.site.Original, New: p.site.Patched(),
	}
}
