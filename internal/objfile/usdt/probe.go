// SPDX-License-Identifier: Apache-2.0

package usdt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/symname"
)

// Errors of looking probes up.
var (
	// ErrNone says that the file has no static probes at all.
	ErrNone = errors.New("no static probes")
	// ErrNoProbe says that it has others.
	ErrNoProbe = errors.New("no such static probe")
)

// Bounds of what is read.
const (
	maxNoteBytes = 16 << 20
	maxProbes    = 65536
)

// Probe is one place of a static probe. A probe that the compiler has inlined
// into several functions has several places.
type Probe struct {
	// Provider and Name as the source has them.
	Provider, Name string
	// Address is the virtual address of the nop, before the load bias is
	// added, and FileOffset where it stands in the file.
	Address, FileOffset uint64
	// Semaphore is the virtual address of a 16-bit counter, which the program
	// looks at before it prepares the arguments: unless somebody increments it
	// for as long as they watch, the probe may never be hit. 0: there is none.
	Semaphore uint64
	// SemaphoreOffset is where the counter stands in the file, as the kernel
	// wants to know it (ref_ctr_offset).
	SemaphoreOffset uint64
	// Arguments as they are at the nop; nil where ArgumentError says why they
	// are not understood. Counting needs none.
	Arguments     []Operand
	ArgumentError error
}

// Probes lists all probes of a file, in the order of the notes. [ErrNone] if
// it has none or its section headers were stripped; [objfile.ErrCorrupt].
// Probes whose place is not in the file are left out.
func Probes(f *objfile.File) ([]Probe, error) {
	notes, err := f.Section(".note.stapsdt", maxNoteBytes)
	if errors.Is(err, objfile.ErrNoSection) {
		return nil, fmt.Errorf("%w in %s", ErrNone, f.Name())
	}
	if err != nil {
		return nil, err
	}
	base, _, _ := f.SectionAddress(".stapsdt.base")
	var probes []Probe
	for len(notes) > 0 && len(probes) < maxProbes {
		content, rest, err := next(notes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		if probe, ok := decode(f, content, base); ok {
			probes = append(probes, probe)
		}
		notes = rest
	}
	return probes, nil
}

// Find returns the places of the probes whose provider and name match two
// patterns (path.Match). [ErrNoProbe], with names that are close to it, or
// [ErrNone].
func Find(f *objfile.File, provider, name string) ([]Probe, error) {
	for _, pattern := range []string{provider, name} {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("static probe %q: %w", pattern, err)
		}
	}
	all, err := Probes(f)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(slices.Clone(all), func(p Probe) bool {
		return !matches(provider, p.Provider) || !matches(name, p.Name)
	})
	if len(found) == 0 {
		return nil, unknown(f, provider+":"+name, all)
	}
	return found, nil
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func unknown(f *objfile.File, name string, all []Probe) error {
	const suggested = 5
	closest := symname.NewSuggestions(name, suggested)
	for _, p := range all {
		closest.Add([]byte(p.Provider + ":" + p.Name))
	}
	err := fmt.Errorf("%w: %s in %s", ErrNoProbe, name, f.Name())
	if names := closest.Names(); len(names) > 0 {
		err = fmt.Errorf("%w; close to it: %s", err, strings.Join(names, ", "))
	}
	return err
}

// next splits the first note off. The name is "stapsdt", the type 3.
func next(notes []byte) (content, rest []byte, err error) {
	const head, kind = 12, 3
	if len(notes) < head {
		return nil, nil, fmt.Errorf("%w: static probes end in a head", objfile.ErrCorrupt)
	}
	nameSize, contentSize := uint64(binary.LittleEndian.Uint32(notes)), uint64(binary.LittleEndian.Uint32(notes[4:]))
	start := head + (nameSize+3)&^3
	end := start + contentSize
	if end > uint64(len(notes)) {
		return nil, nil, fmt.Errorf("%w: static probes end in a note", objfile.ErrCorrupt)
	}
	rest = notes[min((end+3)&^3, uint64(len(notes))):]
	if binary.LittleEndian.Uint32(notes[8:]) != kind || string(notes[head:head+nameSize]) != "stapsdt\x00" {
		return nil, rest, nil
	}
	return notes[start:end], rest, nil
}

// decode reads a note: addresses of the nop, of .stapsdt.base at link time and
// of the semaphore, then three strings. prelink(8) moves the file's addresses
// but not those in the notes, which is what base is for.
func decode(f *objfile.File, content []byte, base uint64) (Probe, bool) {
	const addresses = 24
	if len(content) < addresses {
		return Probe{}, false
	}
	texts := bytes.SplitN(content[addresses:], []byte{0}, 4)
	if len(texts) < 3 {
		return Probe{}, false
	}
	p := Probe{
		Provider: string(texts[0]), Name: string(texts[1]),
		Address:   binary.LittleEndian.Uint64(content),
		Semaphore: binary.LittleEndian.Uint64(content[16:]),
	}
	if base != 0 {
		moved := base - binary.LittleEndian.Uint64(content[8:])
		p.Address += moved
		if p.Semaphore != 0 {
			p.Semaphore += moved
		}
	}
	p.Arguments, p.ArgumentError = ParseArguments(f.Machine(), string(texts[2]))
	ok := p.place(f)
	return p, ok
}

// place finds the file offsets.
func (p *Probe) place(f *objfile.File) (ok bool) {
	if p.FileOffset, ok = f.Offset(p.Address, 1); !ok {
		return false
	}
	if p.Semaphore == 0 {
		return true
	}
	const counterBytes = 2
	p.SemaphoreOffset, ok = f.Offset(p.Semaphore, counterBytes)
	return ok
}
