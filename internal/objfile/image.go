// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/internal/procid"
)

// Image is an ELF object as one process has mapped it.
type Image struct {
	// Path of the file, without " (deleted)".
	Path string
	// Device and Inode as the maps file tells them.
	Device, Inode uint64
	// Deleted says that the file has no name any more.
	Deleted bool
	// Bias is added to a virtual address of the file to get the address in
	// the process; 0 for programs at fixed addresses.
	Bias uint64
	// Start and End enclose the object's segments in the process.
	Start, End uint64

	pid     int
	soName  string
	known   string // of the program: its other names, see knownAs, each ended by a zero byte
	program bool   // asks for a loader: the program itself, or a library that can be run
	mapping Mapping
	cache   *Cache
	key     fileKey // in the cache
}

// maxImages bounds the objects of a process: each costs what is looked up in it. The
// largest programs known load a thousand libraries.
const maxImages = 4096

// Images returns the ELF objects that a process has mapped with an executable
// segment, in the order of addresses; one that is mapped twice (dlmopen) is
// there twice; [ErrUnsupported] if they are more than 4096. Objects whose file cannot be opened any more are left out. The
// dynamic loader may be at work meanwhile: a later call may tell more.
func Images(pid int) ([]Image, error) { return (*Cache)(nil).Images(pid) }

// Images is the package's Images with files kept open in the cache.
func (c *Cache) Images(pid int) ([]Image, error) {
	mappings, err := Mappings(pid)
	if err != nil {
		return nil, err
	}
	type identity struct{ device, inode, bias uint64 }
	type mapped struct{ device, inode uint64 }
	seen, foreign := make(map[identity]bool), make(map[mapped]bool)
	program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // empty: not to be known
	program = strings.TrimSuffix(program, " (deleted)")
	var images []Image
	for _, m := range mappings {
		if !m.Exec || foreign[mapped{m.Device, m.Inode}] {
			continue
		}
		image, err := c.image(pid, m)
		if errors.Is(err, procid.ErrGone) {
			return nil, err
		}
		if errors.Is(err, ErrNotELF) {
			foreign[mapped{m.Device, m.Inode}] = true // code made at run time has thousands of mappings
		}
		id := identity{m.Device, m.Inode, image.Bias}
		if err == nil && !seen[id] {
			if len(images) == maxImages {
				return nil, fmt.Errorf("%w: process %d has mapped more than %d objects", ErrUnsupported, pid, maxImages)
			}
			seen[id] = true
			if image.Path == program {
				image.known = strings.Join(knownAs(pid), "\x00")
			}
			images = append(images, image)
		}
	}
	return images, nil
}

func (c *Cache) image(pid int, m Mapping) (Image, error) {
	image := Image{
		Path: m.Path, Device: m.Device, Inode: m.Inode, Deleted: m.Deleted,
		pid: pid, mapping: m, cache: c,
	}
	file, err := image.Open()
	if err != nil {
		return Image{}, err
	}
	defer file.Close()
	image.key = file.key
	var ok bool
	if image.Bias, ok = file.bias(m); !ok {
		return Image{}, fmt.Errorf("%w: %s has no segment for the mapping at %x", ErrCorrupt, m.Path, m.Start)
	}
	image.Start, image.End = file.span(image.Bias)
	image.soName = file.SOName()
	_, image.program = file.headers.program(elf.PT_INTERP)
	return image, nil
}

// bias finds the executable segment that a mapping maps. A mapping begins at
// a page border, so segment and mapping are compared by whole pages; it may
// cover a part of the segment only, after mprotect.
func (f *File) bias(m Mapping) (uint64, bool) {
	page := ^uint64(os.Getpagesize() - 1)
	for _, p := range f.headers.programs {
		if elf.ProgType(p.Type) != elf.PT_LOAD || elf.ProgFlag(p.Flags)&elf.PF_X == 0 {
			continue
		}
		first, length := p.Off&page, p.Filesz+p.Off&^page
		if m.Offset >= first && m.Offset-first < length {
			return m.Start - (p.Vaddr & page) - (m.Offset - first), true
		}
	}
	return 0, false
}

// span encloses all segments.
func (f *File) span(bias uint64) (start, end uint64) {
	start = ^uint64(0)
	for _, p := range f.headers.programs {
		if elf.ProgType(p.Type) == elf.PT_LOAD {
			start, end = min(start, p.Vaddr), max(end, p.Vaddr+p.Memsz)
		}
	}
	return start + bias, end + bias
}

// Name is the base name of the file.
func (i Image) Name() string { return filepath.Base(i.Path) }

// Main says whether it is the program that the process executes.
func (i Image) Main() bool { return i.known != "" }

// Matches says whether a pattern (path.Match) matches the base name or the name
// under which the object is linked (DT_SONAME) or, if it holds a slash, the
// whole path. The former is often a link to what is mapped: libstdc++.so.6 to
// libstdc++.so.6.0.30. A program has the names by which people know it, too: those of
// the symbolic link that was executed, and what ps(1) shows. The empty pattern matches
// everything.
func (i Image) Matches(pattern string) bool {
	switch {
	case pattern == "":
		return true
	case filepath.Base(pattern) != pattern:
		return match(pattern, i.Path) || i.isKnownAs(pattern)
	}
	return match(pattern, i.Name()) || i.soName != "" && match(pattern, i.soName) || i.isKnownAs(pattern)
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// Open opens the file of the image, which is the one that is mapped and no
// other. The caller closes it. [ErrReplaced] where it cannot be opened. While
// the cache has it open this takes no system call.
func (i Image) Open() (*File, error) {
	if file := i.cache.lookup(i.key); file != nil {
		return file, nil
	}
	file, err := OpenMapped(i.pid, i.mapping)
	if err != nil {
		return nil, err
	}
	return i.cache.OpenFile(file)
}

// OpenFile opens the same file as Open, without reading it. The caller closes
// it.
func (i Image) OpenFile() (*os.File, error) { return OpenMapped(i.pid, i.mapping) }

// Symbol finds a symbol in the image's file; see [File.Symbol].
func (i Image) Symbol(name string, kind SymbolKind) (Symbol, error) {
	file, err := i.Open()
	if err != nil {
		return Symbol{}, err
	}
	defer file.Close()
	return file.SymbolOf(name, kind)
}

// Address is where a virtual address of the file lies in the process.
func (i Image) Address(virtual uint64) uint64 { return virtual + i.Bias }
