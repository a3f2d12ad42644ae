// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/patch/flow"
	"github.com/attune-hpc/attune/internal/objfile"
)

const (
	// maxCode is the largest function whose exits are looked for, bytes.
	maxCode = 1 << 20
	// maxLoaded is the largest object that is searched for what leads into a
	// function, bytes.
	maxLoaded = 256 << 20
)

// Object is a file of code. The caller closes it. It is for one goroutine.
type Object struct {
	*objfile.File
	outline   *objfile.Outline // nil: not read yet
	frames    objfile.Frames   // nil: it has none
	*contents                  // nil: not read yet
}

// contents is what the loader maps of a file. It is shared, and never modified.
type contents struct {
	loaded, text []flow.Part // text is what of it is code
	aims         *flow.Aims
}

// Open opens the file of an image. The error wraps [patch.ErrUnpatchable] where
// nothing in such a file can be patched.
func Open(image objfile.Image) (*Object, error) {
	file, err := image.Open()
	if err != nil {
		return nil, err
	}
	if file.IsGo() {
		err = fmt.Errorf("%w: %s is Go code, whose stacks have no room", patch.ErrUnpatchable, image.Name())
		return nil, errors.Join(err, file.Close())
	}
	return &Object{File: file}, nil
}

// survey reads where functions begin and end.
func (o *Object) survey() (err error) {
	if o.outline != nil {
		return nil
	}
	if o.frames, err = o.Frames(); err != nil && !errors.Is(err, objfile.ErrNoSection) {
		return err
	}
	o.outline, err = o.Outline()
	return err
}

// Entry examines the entry of a function for a patch of one byte where the file
// is mapped with a bias, and returns its first bytes.
func (o *Object) Entry(s objfile.Symbol, bias uint64) (patch.Site, []byte, error) {
	code, err := o.Code(s, patch.SiteBytes)
	if err != nil {
		return patch.Site{}, nil, err
	}
	site, err := patch.Examine(s.Value+bias, code)
	return site, code, err
}

// Beside says, as its first result, what is wrong about a site whose jump
// reaches into another function: a breakpoint at the entry of that one, of a
// debugger or of another tool's uprobe, changes where the jump leads.
func (o *Object) Beside(s objfile.Symbol, site patch.Site, bias uint64) (reached, err error) {
	address := site.Address - bias
	if site.Wide() || address >= s.Value && address+patch.JumpBytes <= s.Value+s.Size {
		return nil, nil
	}
	if err := o.survey(); err != nil {
		return nil, err
	}
	for i := uint64(1); i < patch.JumpBytes; i++ {
		if o.outline.Begins(address + i) {
			return fmt.Errorf("%w: another function begins %d bytes behind %#x, where a breakpoint would change the jump",
				patch.ErrUnpatchable, i, address), nil
		}
	}
	return nil, nil
}

// Function reads the code of a symbol.
func (o *Object) Function(s objfile.Symbol) (flow.Part, error) {
	if s.Size == 0 || s.Size > maxCode {
		return flow.Part{}, fmt.Errorf("%w: its file says that it has %d bytes of code", patch.ErrUnpatchable, s.Size)
	}
	code, err := o.Code(s, int(s.Size))
	return flow.Part{Address: s.Value, Code: code}, err
}

// stretch reads all code between two addresses, of any function.
func (o *Object) stretch(start, end uint64) (flow.Part, error) {
	if end-start > maxCode {
		return flow.Part{}, fmt.Errorf("%w: %d bytes of code at %#x: too many to look at", patch.ErrUnpatchable, end-start, start)
	}
	if o.contents != nil {
		if code := flow.CodeAt(o.text, start); uint64(len(code)) >= end-start {
			return flow.Part{Address: start, Code: code[:end-start]}, nil
		}
	}
	code, err := o.CodeAt(start, int(end-start))
	if err == nil && uint64(len(code)) < end-start {
		err = fmt.Errorf("%w: the code at %#x ends after %d bytes", patch.ErrUnpatchable, start, len(code))
	}
	return flow.Part{Address: start, Code: code}, err
}

// load reads all that the loader maps.
func (o *Object) load() (err error) {
	if o.contents == nil {
		o.contents, err = objfile.Kept(o.File, o.read)
	}
	return err
}

func (o *Object) read() (*contents, error) {
	loaded, err := o.Loaded(maxLoaded)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", patch.ErrUnpatchable, err)
	}
	c := new(contents)
	for _, segment := range loaded {
		part := flow.Part{Address: segment.Address, Code: segment.Bytes}
		c.loaded = append(c.loaded, part)
		if segment.Executable {
			c.text = append(c.text, part)
		}
	}
	if c.aims, err = flow.NewAims(c.loaded, c.text); err != nil {
		return nil, fmt.Errorf("%w: %w: %w", patch.ErrUnpatchable, objfile.ErrUnsupported, err)
	}
	return c, nil
}

// Cache keeps files open, by device and inode. It is for one goroutine, and its
// owner closes it; nil keeps none.
type Cache map[file]*Object

// file tells files apart.
type file struct{ device, inode uint64 }

// Open opens the file of an image, unless it is open. The caller calls done when
// it needs it no more.
func (c Cache) Open(image objfile.Image) (o *Object, done func(), err error) {
	key := file{image.Device, image.Inode}
	if o := c[key]; o != nil {
		return o, func() {}, nil
	}
	if o, err = Open(image); err != nil {
		return nil, nil, err
	}
	if c == nil {
		return o, func() { _ = o.Close() }, nil // read only
	}
	c[key] = o
	return o, func() {}, nil
}

// Close closes all files.
func (c Cache) Close() {
	for _, o := range c {
		_ = o.Close() // read only
	}
}
