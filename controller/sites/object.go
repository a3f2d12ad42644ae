// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"errors"
	"fmt"
	"slices"

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

// object is what a file tells of the code around its functions. The caller
// closes it.
type object struct {
	*objfile.File
	outline *objfile.Outline // nil: not read yet
	frames  objfile.Frames   // nil: it has none
	loaded  []flow.Part      // nil: not read yet
	text    []flow.Part      // what of it is code
	aims    *flow.Aims       // of both
}

func openObject(image objfile.Image) (*object, error) {
	file, err := image.Open()
	if err != nil {
		return nil, err
	}
	if file.IsGo() {
		err = fmt.Errorf("%w: %s is Go code, whose stacks have no room", patch.ErrUnpatchable, image.Name())
		return nil, errors.Join(err, file.Close())
	}
	return &object{File: file}, nil
}

// survey reads where functions begin and end.
func (o *object) survey() (err error) {
	if o.outline != nil {
		return nil
	}
	if o.frames, err = o.Frames(); err != nil && !errors.Is(err, objfile.ErrNoSection) {
		return err
	}
	o.outline, err = o.Outline()
	return err
}

// entry examines the entry of a function for a patch of one byte, and returns
// its first bytes.
func (o *object) entry(f Function) (patch.Site, []byte, error) {
	code, err := o.Code(f.Symbol, patch.SiteBytes)
	if err != nil {
		return patch.Site{}, nil, err
	}
	site, err := patch.Examine(f.address(), code)
	return site, code, err
}

// beside says, as its first result, what is wrong about a site whose jump
// reaches into another function: a breakpoint at the entry of that one, of a
// debugger or of another tool's uprobe, changes where the jump leads.
func (o *object) beside(f Function, site patch.Site) (reached, err error) {
	address := site.Address - f.Image.Bias
	if site.Wide() || address >= f.Symbol.Value && address+patch.JumpBytes <= f.Symbol.Value+f.Symbol.Size {
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

// function reads the code of a symbol.
func (o *object) function(s objfile.Symbol) (flow.Part, error) {
	if s.Size == 0 || s.Size > maxCode {
		return flow.Part{}, fmt.Errorf("%w: its file says that it has %d bytes of code", patch.ErrUnpatchable, s.Size)
	}
	code, err := o.Code(s, int(s.Size))
	return flow.Part{Address: s.Value, Code: code}, err
}

// stretch reads all code between two addresses, of any function.
func (o *object) stretch(start, end uint64) (flow.Part, error) {
	if end-start > maxCode {
		return flow.Part{}, fmt.Errorf("%w: %d bytes of code at %#x: too many to look at", patch.ErrUnpatchable, end-start, start)
	}
	code, err := o.CodeAt(start, int(end-start))
	if err == nil && uint64(len(code)) < end-start {
		err = fmt.Errorf("%w: the code at %#x ends after %d bytes", patch.ErrUnpatchable, start, len(code))
	}
	return flow.Part{Address: start, Code: code}, err
}

// exits finds the exits of a function, and all the code that is its own.
func (o *object) exits(s objfile.Symbol) ([]flow.Exit, []flow.Part, error) {
	if err := o.survey(); err != nil {
		return nil, nil, err
	}
	function, err := o.function(s)
	if err != nil {
		return nil, nil, err
	}
	exits, parts, err := flow.Exits(function, func(address uint64, parts []flow.Part) (*flow.Part, error) {
		return o.partAt(s, address, parts)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", patch.ErrUnpatchable, err)
	}
	return exits, parts, nil
}

// straight refuses a function that goes back to its first instruction, for what
// is to be done once a call.
func (fn *function) straight(w writer) error {
	o, done, err := w.object(fn.Image)
	if err != nil {
		return err
	}
	defer done()
	code, err := o.function(fn.Symbol)
	if err != nil {
		return nil //nolint:nilerr // its size is not known, as that of some written in assembly language
	}
	if at, ok := flow.LoopsBack(code, fn.entry.site.Address-fn.Image.Bias); ok {
		return fmt.Errorf("%w: a branch at %#x leads back to its entry: each turn of that loop would be taken for a call", patch.ErrUnpatchable, at)
	}
	return nil
}

// errForeign: code that may be anybody's.
var errForeign = errors.New("leads to code that no symbol names: the seldom executed part of this function, or another function")

// partAt implements [flow.Layout] for a function.
func (o *object) partAt(s objfile.Symbol, address uint64, parts []flow.Part) (*flow.Part, error) {
	if o.outline.Begins(address) {
		return nil, nil //nolint:nilnil // another function, says Layout
	}
	for _, cold := range o.outline.Cold(s) {
		if address >= cold.Value && address-cold.Value < cold.Size {
			part, err := o.function(cold)
			return &part, err
		}
	}
	frame, ok := o.frames.Holding(address)
	if !ok || o.outline.BeginsIn(frame.Start, frame.End) {
		return nil, errForeign
	}
	return o.unnamed(frame, address, parts)
}

// unnamed tells what code is of which only .eh_frame knows. It is the
// function's own if the stack is not as a call leaves it, so that nobody else
// can have come there, or if nothing else leads to it; a function that others
// call as well is one.
func (o *object) unnamed(frame objfile.Frame, address uint64, parts []flow.Part) (*flow.Part, error) {
	if frame.Entry {
		if err := o.load(); err != nil {
			return nil, err
		}
		led := flow.Surroundings{Loaded: o.loaded, Text: o.text, Aims: o.aims}.LedTo(frame.Start, parts)
		switch {
		case led && address == frame.Start:
			return nil, nil //nolint:nilnil // another function, says Layout
		case led:
			return nil, errForeign
		}
	}
	part, err := o.stretch(frame.Start, frame.End)
	return &part, err
}

// load reads all that the loader maps.
func (o *object) load() error {
	if o.loaded != nil {
		return nil
	}
	contents, err := o.Loaded(maxLoaded)
	if err != nil {
		return fmt.Errorf("%w: %w", patch.ErrUnpatchable, err)
	}
	for _, c := range contents {
		part := flow.Part{Address: c.Address, Code: c.Bytes}
		o.loaded = append(o.loaded, part)
		if c.Executable {
			o.text = append(o.text, part)
		}
	}
	o.aims = flow.NewAims(o.loaded, o.text)
	return nil
}

// around is what must be known to write a whole jump into a function at an
// address.
func (o *object) around(s objfile.Symbol, at uint64) (around flow.Surroundings, err error) {
	if err := errors.Join(o.survey(), o.load()); err != nil {
		return around, err
	}
	around = flow.Surroundings{Loaded: o.loaded, Text: o.text, Aims: o.aims, Begins: o.outline.Begins, Holding: o.holding}
	if _, around.Function, err = o.exits(s); err != nil {
		if around.Function, err = o.named(s); err != nil { // what is known of it
			return around, err
		}
	}
	start := at - min(at, flow.ShortReach)
	end := at + flow.ShortReach + patch.SiteBytes
	for _, near := range slices.Concat(o.frames.Between(start, end), o.outline.Between(start, end)) {
		holds := func(p flow.Part) bool { return near.Start >= p.Address && near.End <= p.Address+uint64(len(p.Code)) }
		if slices.ContainsFunc(around.Function, holds) || slices.ContainsFunc(around.Near, holds) {
			continue
		}
		part, err := o.stretch(near.Start, near.End)
		if err != nil {
			return around, err
		}
		around.Near = append(around.Near, part)
	}
	return around, nil
}

// holding finds the function that an address is in. The caller has called
// survey.
func (o *object) holding(address uint64) (flow.Part, bool) {
	for _, f := range slices.Concat(o.frames.Between(address, address+1), o.outline.Between(address, address+1)) {
		if part, err := o.stretch(f.Start, f.End); err == nil {
			return part, true
		}
	}
	return flow.Part{}, false
}

// named are the parts of a function that have symbols.
func (o *object) named(s objfile.Symbol) (parts []flow.Part, err error) {
	for _, s := range append([]objfile.Symbol{s}, o.outline.Cold(s)...) {
		part, err := o.function(s)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}
