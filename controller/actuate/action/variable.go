// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/threadlocal"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// setKind writes global variables.
func setKind() actuate.Kind {
	return actuate.Kind{
		Route: actuate.Route{
			Action:  "set",
			What:    "variable",
			Command: "attune tune set",
			Ways:    []access.Way{access.WayMemory},
			Remark:  "Exported, static and thread-local variables of 1, 2, 4 or 8 bytes. The size is checked against the symbol table, the type against debug information where there is some. Constants are refused. Thread-local ones need glibc; threads that start later begin with the initial value.",
			Undo:    "the old value, in the threads that still live, unless somebody else has changed it since",
		},
		Plan: planVariable,
	}
}

// planVariable prepares a write to a global variable from outside, without a
// stop. The variable must have exactly the size that the request says, and an
// address that is a multiple of it, so that no other thread reads half of it
// from two cache lines.
func planVariable(_ context.Context, r *actuate.Request) (*actuate.Plan, error) {
	set := r.Change.GetAction().GetSetVariable()
	if err := r.RefuseLater("a variable is written"); err != nil {
		return nil, err
	}
	process := r.Process
	v, err := findVariable(r, set)
	if err != nil {
		return nil, err
	}
	if set, err = v.typed(set); err != nil {
		return nil, err
	}
	words, partial, err := v.words(process, set)
	if err != nil {
		return nil, err
	}
	for _, word := range words {
		if err := checkRequired(word, set); err != nil {
			return nil, err
		}
	}
	return &actuate.Plan{
		Undo: actuate.UndoWords(words), Way: access.WayMemory, Partial: partial,
		Old: access.Decode(words[0].Old, set.GetValue()), Unchanged: access.AllThere(words),
		Run: func(context.Context) (access.Done, error) {
			missed, err := writeCopies(process, words)
			if missed > 0 {
				return access.Done{Where: attunev1.SafePointNow, Partial: fmt.Sprintf("%d threads ended meanwhile", missed)}, err
			}
			return access.DoneNow(err)
		},
		Read: func() (*attunev1.Value, error) { return access.ReadBack(process, words[0], set.GetValue()) },
	}, nil
}

// variable is one that has been found, and checked.
type variable struct {
	objfile.Resolved
	size uint32
}

func findVariable(r *actuate.Request, set *attunev1.SetVariable) (v variable, err error) {
	v.Resolved, err = access.Lookup(r.Process, set.GetObject(), set.GetSymbol(), objfile.Variable)
	if errors.Is(err, objfile.ErrNoSymbol) {
		local, localErr := access.Lookup(r.Process, set.GetObject(), set.GetSymbol(), objfile.ThreadLocal)
		if localErr == nil {
			v.Resolved, err = local, nil
		}
	}
	if err != nil {
		return v, err
	}
	if err := r.Allowed("set", []*attunev1.Value{set.GetValue()}, namesOf(v.Resolved, set.GetObject(), set.GetSymbol())...); err != nil {
		return v, err
	}
	v.size = cmp.Or(set.GetSize(), uint32(min(v.Symbol.Size, 1<<31)))
	return v, v.check(set)
}

// check compares what is asked for with what the file says.
func (v variable) check(set *attunev1.SetVariable) error {
	switch size := v.size; {
	case size != 1 && size != 2 && size != 4 && size != 8:
		return fmt.Errorf("%w: size %d of %s: must be 1, 2, 4 or 8", access.ErrRefused, size, set.GetSymbol())
	case uint64(size) != v.Symbol.Size:
		return fmt.Errorf("%w: %s has %d bytes in %s, the request says %d",
			access.ErrRefused, set.GetSymbol(), v.Symbol.Size, v.Image.Path, size)
	case v.Address%uint64(size) != 0:
		return fmt.Errorf("%w: %s is not aligned", access.ErrRefused, set.GetSymbol())
	case !v.threadLocal() && set.GetThread() != 0:
		return fmt.Errorf("%w: %s is shared by all threads: leave the thread out", access.ErrRefused, set.GetSymbol())
	case !v.threadLocal() && !v.Symbol.Writable:
		return fmt.Errorf("%w: %s is constant: the compiler may have put its value into the code", access.ErrRefused, set.GetSymbol())
	}
	return nil
}

func (v variable) threadLocal() bool { return v.Symbol.Is(objfile.ThreadLocal) }

// typed makes the values what the variable's type wants, where debug
// information tells: the same bytes mean something else to a double.
func (v variable) typed(set *attunev1.SetVariable) (*attunev1.SetVariable, error) {
	t, known := dwarfinfo.TypeOfVariable(v.Image, v.Symbol)
	if !known {
		return set, nil
	}
	set = proto.CloneOf(set)
	for _, value := range []**attunev1.Value{&set.Value, &set.RequiredOld} {
		_, real := (*value).GetKind().(*attunev1.Value_Real)
		switch n, ok := access.Whole(*value); {
		case t.Kind == dwarfinfo.Float && ok:
			*value = access.Real(float64(n))
		case t.Kind != dwarfinfo.Float && real:
			return nil, fmt.Errorf("%w: %s is a %s: it takes no real number", access.ErrRefused, v.Symbol.Name, t.Name)
		}
	}
	return set, nil
}

// words are the places to write: one, or a copy in each thread.
func (v variable) words(process access.Process, set *attunev1.SetVariable) (words []access.Word, partial string, err error) {
	if v.threadLocal() {
		return v.copies(process, set)
	}
	word, err := access.WordAt(process, v.Image, v.Address, set.GetSymbol(), v.size, set.GetValue())
	word.ReadOnly = v.Symbol.RELRO
	return []access.Word{word}, "", err
}

func checkRequired(word access.Word, set *attunev1.SetVariable) error {
	if set.GetRequiredOld() == nil {
		return nil
	}
	required, err := access.Encode(set.GetRequiredOld(), uint32(len(word.Old)))
	if err != nil {
		return err
	}
	if !bytes.Equal(required, word.Old) {
		return fmt.Errorf("%w: %s is %s, not %s as the change requires", access.ErrRefused, word.What,
			attunev1.ValueLiteral(access.Decode(word.Old, set.GetRequiredOld())), attunev1.ValueLiteral(set.GetRequiredOld()))
	}
	return nil
}

// copies finds those of a thread-local variable, in one thread or in all.
func (v variable) copies(process access.Process, set *attunev1.SetVariable) (words []access.Word, partial string, err error) {
	images, err := process.Images()
	if err != nil {
		return nil, "", err
	}
	held, err := process.Hold()
	if err != nil {
		return nil, "", err
	}
	block, err := threadlocal.Open(held, images, v.Image)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", access.ErrRefused, err)
	}
	tids, err := threadsMeant(process.PID(), set)
	if err != nil {
		return nil, "", err
	}
	unused := 0
	for _, tid := range tids {
		word, err := v.copyOf(process, block, tid, set)
		switch {
		case err == nil:
			words = append(words, word)
		case set.GetThread() != 0:
			return nil, "", fmt.Errorf("%w: thread %d: %w", access.ErrRefused, tid, err)
		case errors.Is(err, threadlocal.ErrNoCopy):
			unused++
		case !errors.Is(err, procid.ErrGone):
			return nil, "", err
		}
	}
	if len(words) == 0 {
		return nil, "", fmt.Errorf("%w: no thread has used %s yet", access.ErrRefused, set.GetSymbol())
	}
	if set.GetThread() == 0 {
		partial = "threads that start later begin with the initial value"
	}
	if unused > 0 {
		partial += fmt.Sprintf(", so do %d that have not used it yet", unused)
	}
	return words, partial, nil
}

// threadsMeant returns the thread whose copy is meant, or all.
func threadsMeant(pid int, set *attunev1.SetVariable) ([]int, error) {
	if set.GetThread() == 0 {
		tids, _, err := procid.AllThreads(pid)
		return tids, err
	}
	tid, err := access.OuterThread(pid, int(set.GetThread()))
	return []int{tid}, err
}

func (v variable) copyOf(process access.Process, block *threadlocal.Block, tid int, set *attunev1.SetVariable) (access.Word, error) {
	thread, err := access.ThreadNow(tid)
	if err != nil {
		return access.Word{}, err
	}
	address, err := block.Address(tid, v.Symbol.Value)
	if err != nil {
		return access.Word{}, err
	}
	name := fmt.Sprintf("%s of thread %d", set.GetSymbol(), tid)
	word, err := access.WordAt(process, v.Image, address, name, v.size, set.GetValue())
	word.Thread = thread
	return word, err
}

// writeCopies writes all words, and counts those whose thread has ended.
func writeCopies(process access.Process, words []access.Word) (missed int, err error) {
	for i, word := range words {
		if word.Thread != nil && i > 0 && !word.Thread.Lives() {
			missed++
			continue
		}
		if err := access.WriteWord(process, word); err != nil {
			return missed, err
		}
	}
	return missed, nil
}
