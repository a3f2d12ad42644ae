// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/internal/procid"
)

// maxImages bounds the objects of a process: each costs what is looked up in it. The
// largest programs known load a thousand libraries.
const maxImages = 4096

// Images returns the ELF objects that a process has mapped with an executable
// segment, in the order of addresses; one that is mapped twice (dlmopen) is
// there twice; [ErrUnsupported] if they are more than 4096. Objects whose file cannot be opened any more are left out, see [LeftOut]. The
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
	program := procid.Executable(pid)
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

// LeftOut returns the paths of the libraries that a process has mapped as code beside some of
// its images, and that cannot be opened any more ([ErrReplaced]), as after an upgrade. They
// are known by their names: files of code made at run time are deleted, too.
func LeftOut(images []Image) (paths []string) {
	if len(images) == 0 {
		return nil
	}
	pid := images[0].pid
	mappings, err := Mappings(pid)
	if err != nil {
		return nil // it has ended
	}
	type inode struct{ device, number uint64 }
	known := make(map[inode]bool)
	for _, image := range images {
		known[inode{image.Device, image.Inode}] = true
	}
	for _, m := range mappings {
		id := inode{m.Device, m.Inode}
		if !m.Exec || known[id] || !namedAsLibrary(m.Path) {
			continue
		}
		known[id] = true
		file, err := OpenMapped(pid, m)
		if err == nil {
			_ = file.Close() // read only
		} else if errors.Is(err, ErrReplaced) {
			paths = append(paths, m.Path)
		}
	}
	return paths
}

// namedAsLibrary says whether a file has a name as libm.so or libm.so.6.
func namedAsLibrary(path string) bool {
	return strings.HasSuffix(path, ".so") || strings.Contains(filepath.Base(path), ".so.")
}

func (c *Cache) image(pid int, m Mapping) (Image, error) {
	image := Image{
		Path: m.Path, Device: m.Device, Inode: m.Inode,
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
func (l *layout) bias(m Mapping) (uint64, bool) {
	page := ^uint64(os.Getpagesize() - 1)
	for _, p := range l.headers.programs {
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
func (l *layout) span(bias uint64) (start, end uint64) {
	start = ^uint64(0)
	for _, p := range l.headers.programs {
		if elf.ProgType(p.Type) == elf.PT_LOAD {
			start, end = min(start, p.Vaddr), max(end, p.Vaddr+p.Memsz)
		}
	}
	return start + bias, end + bias
}
