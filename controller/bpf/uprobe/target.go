// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/objfile"
)

// inode names a file while somebody holds it open.
type inode struct {
	device, number uint64
}

// target is an open file that can be probed.
type target struct {
	file *os.File
	id   inode
	isGo bool
}

// openTarget opens the spec's file anew, so that the caller may close theirs.
func openTarget(spec Spec) (*target, error) {
	path := spec.Path
	if spec.File != nil {
		path = bpf.DescriptorPath(spec.File)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open probed file: %w", err)
	}
	t := &target{file: file}
	if err := t.examine(spec.Path); err != nil {
		return nil, fmt.Errorf("probe %s: %w", spec.Path, closeAfter(err, file))
	}
	return t, nil
}

func (t *target) examine(name string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(t.file.Fd()), &stat); err != nil {
		return err
	}
	t.id = inode{device: stat.Dev, number: stat.Ino}
	object, err := objfile.Open(t.path())
	switch {
	case errors.Is(err, objfile.ErrUnsupported):
		return &bpf.UnsupportedError{Feature: "uprobe in " + name, Reason: "32-bit programs pass parameters differently"}
	case err != nil:
		return err
	}
	t.isGo = object.IsGo() || object.HasSection(".go.buildinfo")
	return object.Close()
}

// path leads to the open file itself, in whichever mount namespace it lies and
// even if it was deleted.
func (t *target) path() string { return bpf.DescriptorPath(t.file) }

// mapPages maps the pages of the probed instructions into this process, until the
// returned function is called. The kernel looks at an instruction when it puts
// a probe into a mapping of it; without any, it would accept every offset, and
// a probe that it cannot place would silently never fire.
func (t *target) mapPages(spots []bpf.Spot) (unmap func()) {
	page := uint64(os.Getpagesize())
	var mapped [][]byte
	for _, s := range spots {
		memory, err := unix.Mmap(int(t.file.Fd()), int64(s.Offset&^(page-1)), int(page), unix.PROT_READ, unix.MAP_PRIVATE)
		if err == nil { // else there is no early verdict on this one
			mapped = append(mapped, memory)
		}
	}
	return func() {
		for _, memory := range mapped {
			_ = unix.Munmap(memory)
		}
	}
}

func closeAfter(err error, file *os.File) error {
	_ = file.Close() // only read
	return err
}
