// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"debug/elf"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// calls are the addresses of functions in the process. create is 0 where no
// thread is to be started, message where there is no dlerror.
type calls struct {
	open, sym, message                        uint64
	create, attributes, setDetached, setStack uint64
	unmap                                     uint64
	oneThread                                 uint64 // where the C library says that there is one; 0: nowhere
	mode                                      uint32 // of open, beside RTLD_NOW
}

// modeInternal is what libc's internal dlopen wants to be told.
const modeInternal = 0x80000000

// Names of the C library's parts: one since glibc 2.34, several before.
var libcParts = []string{"libc.so.6", "libc-*.so", "libdl.so.2", "libdl-*.so", "libpthread.so.0", "libpthread-*.so"}

func inLibc(images []objfile.Image, name string) uint64 {
	for _, part := range libcParts {
		if found, err := objfile.ResolveIn(images, part, name, objfile.Function); err == nil {
			return found.Address
		}
	}
	return 0
}

// loadPause lies between two looks at a program that is being loaded.
const loadPause = 5 * time.Millisecond

// loadedImages are those of a process once its C library is among them: in one that has
// only just begun to execute, the loader is to map it yet. Where it does not come in time
// there is none, and they are what there is.
func loadedImages(ctx context.Context, pid int, cache *objfile.Cache, most time.Duration) ([]objfile.Image, error) {
	for end := time.Now().Add(most); ; time.Sleep(loadPause) {
		images, err := cache.Images(pid)
		loaded := slices.ContainsFunc(images, objfile.Image.IsLibc) || !slices.ContainsFunc(images, objfile.Image.IsLoader)
		if err != nil || loaded || time.Now().After(end) || ctx.Err() != nil {
			return images, err
		}
	}
}

// findCalls finds dlopen and its companions, or libc's internal ones where
// there is no libdl, and what starts a thread.
func findCalls(pid int, images []objfile.Image) (c calls, err error) {
	libc := func(name string) uint64 { return inLibc(images, name) }
	c = calls{open: libc("dlopen"), sym: libc("dlsym"), message: libc("dlerror")}
	if c.open == 0 || c.sym == 0 {
		c = calls{open: libc("__libc_dlopen_mode"), sym: libc("__libc_dlsym"), mode: modeInternal}
	}
	if c.open == 0 || c.sym == 0 {
		return c, fmt.Errorf("%w: no dlopen of a C library was found in it; where the library's file was replaced since it started, only root can read it", ErrUnsuited)
	}
	c.unmap = libc("munmap")
	c.attributes, c.setDetached, c.setStack = libc("pthread_attr_init"), libc("pthread_attr_setdetachstate"), libc("pthread_attr_setstacksize")
	if c.unmap != 0 && c.attributes != 0 && c.setDetached != 0 && c.setStack != 0 {
		var may bool
		if may, c.oneThread = mayHaveThreads(pid, images); may {
			c.create = libc("pthread_create")
		}
	}
	return c, nil
}

// mayHaveThreads says whether a thread of ours changes nothing for the program:
// it has or had others, so that its C library takes its locks anyway, and
// nobody keeps count of them. oneThread is where the C library says that there are
// no others, which it has not done yet in a program that is starting: see
// [calls.single].
func mayHaveThreads(pid int, images []objfile.Image) (may bool, oneThread uint64) {
	for _, image := range images {
		if _, ok := exported(image, "pthread_create"); ok && !image.IsLibc() {
			return false, 0 // a sanitizer or a tool, which must know of every thread
		}
	}
	flag, err := objfile.ResolveIn(images, "libc.so.6", "__libc_single_threaded", objfile.Variable)
	if err != nil { // before glibc 2.32
		tids, err := procid.Threads(pid)
		return err == nil && len(tids) > 1, 0
	}
	return true, flag.Address
}

// single says whether the C library counts on one thread; true also where that cannot
// be read. To be asked while the process stands still where it may be entered.
func (c *calls) single(process *proc.Handle) bool {
	var flag [1]byte
	return c.oneThread != 0 && (process.Read(c.oneThread, flag[:]) != nil || flag[0] != 0)
}

// exported finds a function that other objects can call.
func exported(image objfile.Image, name string) (objfile.Symbol, bool) {
	s, err := image.Symbol(name, objfile.Function)
	return s, err == nil && isExported(s)
}

func isExported(s objfile.Symbol) bool {
	return s.Dynamic && s.Section != elf.SHN_UNDEF && (s.Bind == elf.STB_GLOBAL || s.Bind == elf.STB_WEAK)
}
