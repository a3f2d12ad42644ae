// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/symname"
)

// Space is the code of a process. The caller closes it.
type Space struct {
	images func() ([]objfile.Image, error)

	mu      sync.Mutex // guards what follows; held while a file is read
	objects []*object
	closed  bool

	allowance // for rows
}

// mostObjects bounds the objects, each an open file, with those that were mapped before: a
// process can map new ones without end.
const mostObjects = 8192

// object is a file in the process.
type object struct {
	image objfile.Image
	file  *objfile.File
	names *objfile.Addresses // nil: not read, or not to be had
	tried bool
	name  string
}

// place is of a file where it is mapped.
type place struct{ device, inode, bias uint64 }

func placeOf(i objfile.Image) place { return place{i.Device, i.Inode, i.Bias} }

func byAddress(a, b *object) int { return cmp.Compare(a.image.Start, b.image.Start) }

// overlaps says whether an object has addresses in common with one of those that are
// mapped, in the order of addresses.
func (o *object) overlaps(mapped []*object) bool {
	after := sort.Search(len(mapped), func(i int) bool { return mapped[i].image.End > o.image.Start })
	return after < len(mapped) && mapped[after].image.Start < o.image.End
}

// NewSpace returns the code of a process whose images, in the order of addresses, the
// function lists.
func NewSpace(images func() ([]objfile.Image, error)) (*Space, error) {
	s := &Space{images: images}
	s.open()
	_, err := s.look()
	return s, err
}

// Close closes the files. It is idempotent.
func (s *Space) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return closeAll(s.objects)
}

func closeAll(objects []*object) error {
	var errs []error
	for _, o := range objects {
		errs = append(errs, o.file.Close())
	}
	return errors.Join(errs...)
}

// look lists what is mapped, and says whether that is something else than before. The
// caller holds mu, or has made s just now.
func (s *Space) look() (changed bool, err error) {
	images, err := s.images()
	if err != nil {
		return false, err
	}
	known, stays := make(map[place]*object, len(s.objects)), make(map[*object]bool)
	for _, o := range s.objects {
		known[placeOf(o.image)] = o
	}
	var now, opened []*object
	for _, image := range images {
		if o := known[placeOf(image)]; o != nil {
			now, stays[o] = append(now, o), true
			continue
		}
		file, err := image.Open()
		if err != nil {
			continue // its frames get no names
		}
		one := &object{image: image, file: file, name: image.ProgramName()}
		now, opened = append(now, one), append(opened, one)
	}
	if len(opened) == 0 {
		return false, nil // what went stays: stacks from before may lead there
	}
	// What is not mapped any more keeps its names as long as nothing took its place.
	mapped := slices.SortedFunc(slices.Values(now), byAddress)
	for _, o := range s.objects {
		switch {
		case stays[o]:
		case len(now) < mostObjects && !o.overlaps(mapped):
			now = append(now, o)
		default:
			_ = o.file.Close() // read only
		}
	}
	slices.SortFunc(now, byAddress)
	s.objects = now
	return true, nil
}

// Objects implements [uprobe.Space].
func (s *Space) Objects() (all []uprobe.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		all = append(all, uprobe.Object{
			Start: o.image.Start, End: o.image.End, Base: o.image.Start,
			File: uprobe.FileID{Device: o.image.Device, Inode: o.image.Inode},
			Rows: func() ([]uprobe.Row, error) { return s.rowsOf(o.file, o.image.Start-o.image.Bias) },
		})
	}
	return all
}

// holding finds the object at an address. The caller holds mu.
func (s *Space) holding(address uint64) *object {
	for _, o := range s.objects {
		if o.image.Has(address) {
			return o
		}
	}
	return nil
}

// Renew implements [uprobe.Space].
func (s *Space) Renew(addresses []uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := func(address uint64) bool { return s.holding(address) != nil }
	if s.closed || !slices.ContainsFunc(addresses, func(a uint64) bool { return !known(a) }) {
		return false
	}
	changed, err := s.look()
	return err == nil && changed // else the process has ended
}

// outside is the name of what lies in no file: code that was made at run time.
const outside = "[in no file]"

// Name implements [uprobe.Space].
func (s *Space) Name(address uint64, call bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call {
		address-- // within the call: what it returns to may be another function
	}
	o := s.holding(address)
	if o == nil {
		return outside
	}
	return printable.Line(o.name + ":" + o.function(address-o.image.Bias))
}

// function names the function at a virtual address; by where it begins if it has no name.
func (o *object) function(address uint64) string {
	if !o.tried && o.file != nil {
		o.names, _ = o.file.Addresses() // without, they are told by address
		o.tried = true
	}
	if o.names != nil {
		if name, ok := o.names.Function(address); ok {
			name, _, _ = strings.Cut(name, ".cold")
			return symname.Demangle(name)
		}
	}
	if frames, err := o.file.Frames(); err == nil {
		if frame, ok := frames.Holding(address); ok {
			address = frame.Start
		}
	}
	return fmt.Sprintf("0x%x", address)
}
