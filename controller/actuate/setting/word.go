// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// pythonObject stands for the object that holds the CPython interpreter.
const pythonObject = "python"

// inPlace is a setting that is one variable without symbol, read anew by the
// library each time, so that it is written from outside and at once.
type inPlace struct {
	object   string // name of a library, as [isLibrary] has it, or pythonObject
	variable hidden.Variable
	most     uint64 // what the old value may be: more, and it is not the variable
	// doubtful: if the word holds the value already, another one may be what counts.
	doubtful bool
}

func (m inPlace) plan(ctx context.Context, r *settingRequest) (*actuate.Plan, error) {
	if err := r.RefuseLater(r.setting.Name + " is written"); err != nil {
		return nil, err
	}
	image, err := m.image(r.Process)
	if err != nil {
		return nil, err
	}
	w, err := r.hiddenWord(ctx, image, m.variable, r.value)
	if err != nil {
		return nil, err
	}
	like := access.Integer(0)
	if old := word64(w.Old); old > m.most {
		return nil, fmt.Errorf("%s holds %d, which it cannot: it is not what it was found to be", w.What, old)
	}
	if m.doubtful && word64(w.Old) == uint64(r.value) {
		return nil, fmt.Errorf("%w: %s holds %d already; the thread may go by a number of its own", access.ErrRefused, w.What, r.value)
	}
	return &actuate.Plan{
		Undo: actuate.UndoWords([]access.Word{w}), Way: access.WayMemory, Unchanged: access.AllThere([]access.Word{w}),
		Old:  access.Decode(w.Old, like),
		Run:  func(context.Context) (access.Done, error) { return access.DoneNow(access.WriteWord(r.Process, w)) },
		Read: func() (*attunev1.Value, error) { return access.ReadBack(r.Process, w, like) },
	}, nil
}

// image is the object that has the variable. Of two libraries with that name, the
// distribution's and one that a package brought along, nobody knows which is meant.
func (m inPlace) image(process access.Process) (objfile.Image, error) {
	images, err := process.Images()
	if err != nil {
		return objfile.Image{}, fmt.Errorf("mappings of process %d: %w", process.PID(), err)
	}
	found := slices.DeleteFunc(slices.Clone(images), func(image objfile.Image) bool { return !m.in(image) })
	switch {
	case len(found) == 0:
		return objfile.Image{}, fmt.Errorf("%w: no object of process %d is %s", access.ErrAbsent, process.PID(), m.object)
	case len(found) > 1 && m.object != pythonObject:
		return objfile.Image{}, fmt.Errorf("%w: process %d has several: %s, %s", access.ErrRefused, process.PID(), found[0].Path, found[1].Path)
	}
	return found[0], nil
}

// in says whether an object has the variable.
func (m inPlace) in(image objfile.Image) bool {
	if m.object == pythonObject {
		return isPython(image)
	}
	return isLibrary(image, m.object)
}

// isLibrary says whether an object is the library of that name, such as libgomp.
func isLibrary(image objfile.Image, name string) bool {
	return slices.ContainsFunc(attunev1.LibraryPatterns(name), image.Matches)
}

// isPython says whether an object is the interpreter, which programs and
// libraries of that name hold or not.
func isPython(image objfile.Image) bool {
	if !image.Matches("python*") && !image.Matches("libpython*") {
		return false
	}
	_, err := image.Symbol("_PyRuntime", objfile.Variable)
	return err == nil
}

// hiddenWord finds a variable without symbol and reads what it holds.
func (r *settingRequest) hiddenWord(ctx context.Context, image objfile.Image, v hidden.Variable, value int64) (access.Word, error) {
	at, err := r.knowledge.hidden.Find(ctx, r.Process.PID(), image, v)
	if err != nil {
		return access.Word{}, err
	}
	return access.WordAt(r.Process, image, image.Address(at), v.Name, v.Size, access.Integer(value))
}

// word64 is a little-endian word of up to 8 bytes.
func word64(data []byte) (value uint64) {
	for i, b := range data {
		value |= uint64(b) << (8 * i)
	}
	return value
}

// firstOf tries methods until one can serve, and says why none can.
type firstOf []method

func (m firstOf) plan(ctx context.Context, r *settingRequest) (p *actuate.Plan, err error) {
	for _, way := range m {
		p, e := way.plan(ctx, r)
		switch {
		case e == nil:
			return p, nil
		case err == nil || errors.Is(err, errNeedsCall) || errors.Is(e, access.ErrAbsent):
			err = e
		case e.Error() != err.Error():
			err = fmt.Errorf("%w; %w", err, e)
		}
	}
	return nil, err
}

// withDMLib is a method for processes with DMLib only.
type withDMLib struct{ method }

func (m withDMLib) plan(ctx context.Context, r *settingRequest) (*actuate.Plan, error) {
	if r.Process.Mailbox() == nil {
		return nil, errNeedsCall
	}
	return m.method.plan(ctx, r)
}
