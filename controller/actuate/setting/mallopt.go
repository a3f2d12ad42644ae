// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/action"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mallopt is one of glibc's malloc parameters.
//
// mallopt takes the lock of the main arena, so it is called where the thread
// could legally call malloc: at the entry of an allocation hook. Where malloc's
// parameters are found the old value is read, the new one read back, and
// undoing puts the very words back, the dynamic threshold included; where they
// are not, undoing sets glibc's documented default.
type mallopt struct {
	option    int // mallopt(3)
	parameter hidden.Variable
	standard  int64 // what glibc documents as the default
}

func (m mallopt) plan(ctx context.Context, r *settingRequest) (*actuate.Plan, error) {
	function, err := resolveMallopt(r.Process)
	if err != nil {
		return nil, err
	}
	words, notFound := m.words(ctx, r, function.Image)
	p := &actuate.Plan{Undo: actuate.UndoWords(words), Read: func() (*attunev1.Value, error) { return access.Integer(r.value), nil }}
	if notFound == nil {
		p.Old = access.Decode(words[0].Old, access.Integer(0))
		p.Read = func() (*attunev1.Value, error) { return access.ReadBack(r.Process, words[0], access.Integer(0)) }
	}
	mailbox := r.Process.Mailbox()
	switch {
	case mailbox != nil:
		p.Way = access.WayMailbox
		p.Run = func(ctx context.Context) (access.Done, error) {
			where, err := m.call(ctx, r, mailbox, function.Address, r.value)
			return access.Done{Where: where}, err
		}
		if notFound != nil {
			r.Log().Warn("malloc parameters cannot be read; undo will set glibc's default", "error", notFound)
			p.Undo = actuate.Undos{&standardMallopt{Setting: r.setting.Name}}
		}
	case notFound == nil:
		p.Way = access.WayMemory
		p.Run = func(context.Context) (access.Done, error) { return access.DoneNow(writeWords(r.Process, words)) }
	default:
		return nil, fmt.Errorf("%w: no DMLib in the process, and its malloc parameters are not found: %w", access.ErrRefused, notFound)
	}
	return p, nil
}

func (m mallopt) call(ctx context.Context, r *settingRequest, mailbox access.Mailbox, function uint64, value int64) (string, error) {
	ctx, cancel := access.SafePointContext(ctx, r.Change.GetSafePoint())
	defer cancel()
	ok, where, err := mailbox.Call(ctx, access.Call{Function: function, Arguments: []uint64{uint64(int64(m.option)), uint64(value)}})
	if err == nil && ok&0xffffffff != 1 {
		err = fmt.Errorf("mallopt refused %s = %d", r.setting.Name, value)
	}
	return where, err
}

// standardMallopt is the undo of a parameter whose old value could not be read: it
// gets what glibc documents. Only DMLib does that.
type standardMallopt struct {
	Setting string `json:"setting"`
}

func (u *standardMallopt) Kind() string { return "mallopt" }

func (u *standardMallopt) TakeBack(ctx context.Context, in actuate.Changed) error {
	if !in.Process.Alive() {
		return nil
	}
	setting, _ := Lookup(u.Setting)
	m, known := setting.method.(mallopt)
	mailbox := in.Process.Mailbox()
	if !known || mailbox == nil {
		return action.ErrCallNotUndoable
	}
	function, err := resolveMallopt(in.Process)
	if err == nil {
		_, err = m.call(ctx, &settingRequest{Request: &actuate.Request{Process: in.Process}, setting: setting}, mailbox, function.Address, m.standard)
	}
	return err
}

// InFork implements [copied] of package actuate.
func (u *standardMallopt) InFork() actuate.Undo { return u }

func (u *standardMallopt) Overlaps(other actuate.Undo, sameProcess bool) bool {
	o, ok := other.(*standardMallopt)
	return ok && sameProcess && *u == *o
}

func (*standardMallopt) About(actuate.Changed) actuate.About { return actuate.About{} }

// words are those that mallopt will change: the parameter, and the flag that
// ends glibc's own adjustment of the thresholds.
func (m mallopt) words(ctx context.Context, r *settingRequest, libc objfile.Image) ([]access.Word, error) {
	parameter, err := r.hiddenWord(ctx, libc, m.parameter, r.value)
	if err != nil {
		return nil, err
	}
	fixed, err := r.hiddenWord(ctx, libc, hidden.MallocNoDynThreshold(), 1)
	if err != nil {
		return nil, err
	}
	if old := word64(fixed.Old); old > 1 {
		return nil, errors.New("the dynamic threshold's flag is neither set nor clear: it is not what it was found to be")
	}
	return []access.Word{parameter, fixed}, nil
}

// writeWords changes the words one after the other. Each is read by malloc on
// its own, and any mixture of old and new bytes is a valid size.
func writeWords(process access.Process, words []access.Word) error {
	for _, w := range words {
		if err := access.WriteWord(process, w); err != nil {
			return err
		}
	}
	return nil
}

// resolveMallopt finds mallopt, and refuses where glibc's malloc is not the
// one that the program uses.
func resolveMallopt(process access.Process) (objfile.Resolved, error) {
	malloc, err := allocatorOf(process)
	if err != nil {
		return objfile.Resolved{}, err
	}
	if !malloc.Image.Matches("libc.so*") {
		return objfile.Resolved{}, fmt.Errorf("%w: the program's allocator is %s, not glibc", access.ErrRefused, malloc.Image.Path)
	}
	return access.Resolve(process, "libc.so*", "mallopt", objfile.Function)
}
