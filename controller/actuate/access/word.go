// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Word is a stretch of a process' memory that a change replaces. It lies in a
// mapped file, so that a later controller can tell whether the address still
// means the same thing.
type Word struct {
	// What names it for people, e.g. "libopen-pal.so.40:opal_progress_yield_when_idle".
	What string `json:"what"`
	// ImagePath, ImageInode and ImageBias identify the mapped object.
	ImagePath  string `json:"image_path"`
	ImageInode uint64 `json:"image_inode"`
	ImageBias  uint64 `json:"image_bias"`
	// Address in the process.
	Address uint64 `json:"address"`
	// Old and New contents; the same length.
	Old []byte `json:"old"`
	New []byte `json:"new"`
	// Slot says that threads jump through it: it changes in one go only. Origin is
	// what makes it one.
	Slot   bool           `json:"slot,omitempty"`
	Origin objfile.Origin `json:"origin,omitzero"`
	// ReadOnly says that the process itself may not write there.
	ReadOnly bool `json:"read_only,omitempty"`
	// Thread whose copy of a thread-local variable it is; nil: no such copy.
	Thread *Thread `json:"thread,omitempty"`
}

// StillMapped reports whether the object of a word is still where it was: its memory
// may be something else's.
func StillMapped(process Process, w Word) bool {
	images, err := process.Images()
	if err != nil || w.ImagePath == "" {
		return false
	}
	return slices.ContainsFunc(images, func(image objfile.Image) bool {
		return image.Path == w.ImagePath && image.Bias == w.ImageBias
	})
}

// RestoreWord puts back what was there before, where the object of a word is still
// mapped and holds what was written. images are those of the process.
func RestoreWord(process Process, images []objfile.Image, w Word) error {
	mapped, err := objectThere(process, images, w)
	if err != nil || !mapped {
		return err // unloaded, or the process has another image by now
	}
	return putBack(process, w)
}

// objectThere says whether the object of a word is where it was. One whose file has
// been replaced is among the mappings, but not among the images of a user who may
// not open it any more.
func objectThere(process Process, images []objfile.Image, w Word) (bool, error) {
	same := func(i objfile.Image) bool { return i.Inode == w.ImageInode }
	if slices.ContainsFunc(images, same) {
		return slices.ContainsFunc(images, func(i objfile.Image) bool { return same(i) && i.Bias == w.ImageBias }), nil
	}
	mappings, err := objfile.Mappings(process.PID())
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(mappings, func(m objfile.Mapping) bool { return m.Exec && m.Inode == w.ImageInode }), nil
}

// putBack restores a word if it still holds what the change wrote: what
// somebody else has changed since is theirs.
func putBack(process Process, w Word) error {
	if w.Thread != nil && !w.Thread.Lives() {
		return nil
	}
	now := make([]byte, len(w.New))
	if err := proc.Read(process, w.Address, now); err != nil {
		return err
	}
	switch {
	case bytes.Equal(now, w.Old):
		return nil
	case !bytes.Equal(now, w.New):
		return fmt.Errorf("%s: %w", w.What, ErrChangedByOthers)
	case w.Slot:
		return putSlotBack(process, w)
	}
	return put(process, w, w.Old)
}

// WordAt reads the present content of an address and encodes the new one.
func WordAt(process Process, image objfile.Image, address uint64, name string, size uint32, value *attunev1.Value) (Word, error) {
	content, err := Encode(value, size)
	if err != nil {
		return Word{}, err
	}
	old := make([]byte, size)
	if err := proc.Read(process, address, old); err != nil {
		return Word{}, err
	}
	return Word{
		What:      image.Name() + ":" + name,
		ImagePath: image.Path, ImageInode: image.Inode, ImageBias: image.Bias,
		Address: address, Old: old, New: content,
	}, nil
}

// AllThere says whether every word holds its new value already.
func AllThere(words []Word) bool {
	return !slices.ContainsFunc(words, func(w Word) bool { return !bytes.Equal(w.Old, w.New) })
}

// WriteWord writes the new content of a word.
func WriteWord(process Process, word Word) error { return put(process, word, word.New) }

// put writes the content of a word.
func put(process Process, word Word, content []byte) error {
	return proc.Write(process, word.Address, content)
}

// ReadBack checks that a word holds what was written.
func ReadBack(process Process, word Word, like *attunev1.Value) (*attunev1.Value, error) {
	now := make([]byte, len(word.New))
	if err := proc.Read(process, word.Address, now); err != nil {
		return nil, fmt.Errorf("read back: %w", err)
	}
	if !bytes.Equal(now, word.New) {
		return nil, fmt.Errorf("%s reads back as %x instead of %x", word.What, now, word.New)
	}
	return Decode(now, like), nil
}

// Thread tells a thread from a later one of the same number.
type Thread struct {
	TID        int    `json:"tid"`
	StartTicks uint64 `json:"start_ticks"`
}

// ThreadNow is the thread that has this number now.
func ThreadNow(tid int) (*Thread, error) {
	stat, err := procid.ReadStat(tid)
	if err != nil {
		return nil, err
	}
	return &Thread{TID: tid, StartTicks: stat.StartTicks}, nil
}

// Lives says whether the thread has not ended. A word of one that has is
// memory of nobody, or of another thread.
func (t *Thread) Lives() bool {
	now, err := ThreadNow(t.TID)
	return err == nil && *now == *t
}

// ErrChangedByOthers means that a value is no longer what Attune made it, so
// that undoing would overwrite somebody else's decision.
const ErrChangedByOthers = Final("value was changed by somebody else since, left as it is")

// Final is the last word on a change: it is of no use to undo it again.
type Final string

func (f Final) Error() string { return string(f) }
