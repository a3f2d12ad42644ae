// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
)

// Errors of Find, beside [ErrNotUnique].
var (
	// ErrOtherFile means that the file that the process has mapped does not go
	// by its name here: it was replaced, or lies in a container.
	ErrOtherFile = errors.New("the file of that name is not the one that the process has mapped")
	// ErrNotRoots means that root's service would have to execute a file that
	// others than root can have written.
	ErrNotRoots = errors.New("a service executes root's files only")
	// ErrNoHelper means that the program was built without the helper.
	ErrNoHelper = errors.New("no probing program in this build")
)

// Prober finds hidden variables. The fields must not change once it is used.
type Prober struct {
	// Helper is the program that loads libraries (dmlib.LoadProbe), an ELF file.
	Helper []byte
	// Dir keeps what was found, a directory that nobody else can write to; empty:
	// it is remembered as long as the Prober is.
	Dir string

	mu    sync.Mutex // guards known, and is held while something is probed
	known map[identity]map[string]uint64
}

// identity names a file's content for good: a build id alone could be copied
// into another file. Whom it was found out as is part of it: a user could have
// found out wrongly on purpose.
type identity struct {
	BuildID  string `json:"build_id"`
	Device   uint64 `json:"device"`
	Inode    uint64 `json:"inode"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified_unix_nano"`
	Changed  int64  `json:"changed_unix_nano"`
	UID      uint32 `json:"uid"`
}

// Find returns the virtual address of a variable in the object of a process:
// with the image's bias it gives the address in that process. The first time
// for a file it starts a few processes, and takes 0.01 to 0.5 s.
func (p *Prober) Find(ctx context.Context, pid int, image objfile.Image, v Variable) (uint64, error) {
	if p == nil || len(p.Helper) == 0 {
		return 0, ErrNoHelper
	}
	owner, err := ownerOf(pid)
	if err != nil {
		return 0, err
	}
	if v.Script != nil {
		if err := owner.interpreter(pid, v); err != nil {
			return 0, err
		}
	}
	if err := owner.mayExecute(image.Path); err != nil {
		return 0, err
	}
	id, err := identify(image, owner)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.find(ctx, id, image, v, owner)
}

// find is Find for a known file. The caller holds the mutex.
func (p *Prober) find(ctx context.Context, id identity, image objfile.Image, v Variable, owner owner) (uint64, error) {
	if at, ok := p.recall(id, v.Name); ok {
		return at, nil
	}
	at, err := p.probe(ctx, id, image, v, owner)
	if err != nil {
		return 0, fmt.Errorf("find %s in %s: %w", v.Name, image.Name(), err)
	}
	p.remember(id, v.Name, at)
	return at, nil
}

func (p *Prober) probe(ctx context.Context, id identity, image objfile.Image, v Variable, owner owner) (uint64, error) {
	var window span
	if v.Flag != nil {
		beside, err := p.find(ctx, id, image, v.Flag.Variable, owner)
		if err != nil {
			return 0, err
		}
		window = span{beside, beside + v.Flag.Within}
	}
	runs := make([][]uint64, 0, len(v.Markers)+1)
	for _, marker := range v.Markers {
		parts, err := p.run(ctx, image, v, owner, marker)
		if err != nil {
			return 0, err
		}
		want := marker
		if v.Flag != nil {
			want = 1
		}
		runs = append(runs, places(parts, v.encode(want), window))
	}
	if v.Flag != nil { // and it is 0 where nothing was told
		untold := v
		untold.Call = ""
		parts, err := p.run(ctx, image, untold, owner, 0)
		if err != nil {
			return 0, err
		}
		runs = append(runs, places(parts, v.encode(0), window))
	}
	return common(runs)
}

// identify looks at the file behind an image.
func identify(image objfile.Image, owner owner) (identity, error) {
	info, err := os.Stat(image.Path)
	if err != nil {
		return identity{}, fmt.Errorf("%w: %w", ErrOtherFile, err)
	}
	st := info.Sys().(*syscall.Stat_t)
	if st.Ino != image.Inode {
		return identity{}, fmt.Errorf("%s: %w", image.Path, ErrOtherFile)
	}
	file, err := image.Open()
	if err != nil {
		return identity{}, err
	}
	defer file.Close()
	return identity{
		BuildID: file.BuildID(), Device: st.Dev, Inode: st.Ino, Size: st.Size,
		Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(), UID: owner.uid,
	}, nil
}

// helperFD is the helper's descriptor in the process: the first of ExtraFiles.
const helperFD = 3

// helperFile holds the helper in memory.
func (p *Prober) helperFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("attune-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create memory file: %w", err)
	}
	file := os.NewFile(uintptr(fd), "attune-probe")
	if _, err := file.Write(p.Helper); err != nil {
		return nil, errors.Join(fmt.Errorf("write memory file: %w", err), file.Close())
	}
	return file, nil
}
