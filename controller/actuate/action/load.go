// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrLibraryStays means that a library was loaded and is not closed by undoing.
const ErrLibraryStays = access.Final("a loaded library stays: closing it was not asked for")

// errClosing means that the loader was asked to close a library, and nobody knows that it did.
const errClosing = access.Final("the loader was asked to close it, and is not asked twice: that could close what the program itself has opened")

// loadedLibrary is a shared object that a change has a process load.
type loadedLibrary struct {
	// Path as the process sees it.
	Path string `json:"path"`
	// Handle that dlopen(3) returned; 0: not known.
	Handle uint64 `json:"handle,omitempty"`
	// Close says that undoing closes it.
	Close bool `json:"close,omitempty"`
	// Closing says that the loader is asked to close it, or has been: it is not asked again. The
	// handle may be of memory that is freed by then, or the next one that the program itself has.
	Closing bool `json:"closing,omitempty"`
}

// Modes of dlopen(3), as glibc has them.
const (
	loadNow    = 2
	loadGlobal = 0x100
)

// loadKind loads a shared object.
func loadKind() actuate.Kind {
	return actuate.Kind{
		Route: actuate.Route{
			Action:  "load",
			What:    "load library",
			Command: "attune tune load",
			Ways:    loadWays,
			Remark:  "The second, at calls of read and write only, where the kernel allows no ptrace(2), or no thread stood at a safe place in time: the loader itself calls malloc.",
			Undo:    "nothing, or dlclose(3) where that was asked for: what constructors did stays",
		},
		Plan: planLoad,
	}
}

// planLoad prepares the loading of a shared object.
func planLoad(_ context.Context, r *actuate.Request) (*actuate.Plan, error) {
	load := r.Change.GetAction().GetLoad()
	process := r.Process
	if at := r.Change.GetSafePoint(); at.GetKind() != attunev1.SafePoint_KIND_UNSPECIFIED || len(at.GetFamilies()) > 0 {
		return nil, fmt.Errorf("%w: a library is loaded where no thread is in the loader or the allocator, at no other safe point", access.ErrRefused)
	}
	if err := r.Allowed("load", nil, load.GetPath(), filepath.Base(load.GetPath())); err != nil {
		return nil, err
	}
	if err := checkLibrary(process, load); err != nil {
		return nil, fmt.Errorf("%w: load %s: %w", access.ErrRefused, load.GetPath(), err)
	}
	l := loading{process: process, load: load, library: &loadedLibrary{Path: load.GetPath(), Close: load.GetCloseOnUndo()}}
	p := &actuate.Plan{
		Undo: actuate.Undos{l.library}, Way: loadWays[0], Read: l.symbol,
		Told: actuate.Told{Where: load.GetPath(), Old: "not loaded", New: "loaded"},
	}
	p.Run = func(ctx context.Context) (access.Done, error) {
		how, err := l.run(ctx)
		if err == nil { // with its handle
			err = r.Begin(p)
		}
		return how, err
	}
	if !load.GetCloseOnUndo() {
		p.UndoError = ErrLibraryStays
	}
	if _, there := mapped(process, load.GetPath()); there {
		p.Partial, p.Told.Old = "its constructors do not run again", "loaded already"
	}
	return p, nil
}

// loadWays: the loader calls malloc, and so the allocator's hooks, in the
// middle of loading something else; whether a thread is in there can be seen
// when it is stopped.
var loadWays = []access.Way{access.WayStopped, access.WayMailbox}

// checkLibrary looks at the file that the process would load.
func checkLibrary(process access.Process, load *attunev1.LoadLibrary) error {
	path := load.GetPath()
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return errors.New("the path must be absolute and plain")
	}
	held, err := procid.InRoot(process.PID(), path, 0)
	if err != nil {
		return fmt.Errorf("as the process sees it: %w", err)
	}
	defer unix.Close(held)
	file, err := objfile.Open(fmt.Sprintf("/proc/self/fd/%d", held))
	if err != nil {
		return fmt.Errorf("as the process sees it: %w", err)
	}
	defer file.Close()
	if file.Type() != elf.ET_DYN || file.Machine() != objfile.HostMachine {
		return errors.New("it is no shared object for this processor")
	}
	if err := checkOwner(process, path, held); err != nil {
		return err
	}
	if load.GetSymbol() == "" {
		return nil
	}
	symbol, err := file.Symbol(load.GetSymbol())
	if err == nil && !symbol.Dynamic {
		err = fmt.Errorf("%w: %s is not exported", objfile.ErrNoSymbol, load.GetSymbol())
	}
	return err
}

// checkOwner refuses a file that somebody else than root and the process' user
// could replace before it is loaded; held is the file.
func checkOwner(process access.Process, path string, held int) error {
	owner, err := access.OwnerOf(process.PID())
	if err != nil {
		return err
	}
	var file unix.Stat_t
	if err := unix.Fstat(held, &file); err != nil {
		return err
	}
	folder, err := procid.StatInRoot(process.PID(), filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name string
		st   unix.Stat_t
	}{{filepath.Base(path), file}, {filepath.Base(filepath.Dir(path)), folder}} {
		if one.st.Uid != 0 && int(one.st.Uid) != owner {
			return fmt.Errorf("%s belongs to user %d, who is neither root nor the process' user %d", one.name, one.st.Uid, owner)
		}
		if one.st.Mode&0o002 != 0 && one.st.Mode&unix.S_ISVTX == 0 {
			return fmt.Errorf("%s may be written by everybody", one.name)
		}
	}
	return nil
}

// mapped finds the object that the process has of a file.
func mapped(process access.Process, path string) (objfile.Image, bool) {
	st, err := procid.StatInRoot(process.PID(), path)
	if err != nil {
		return objfile.Image{}, false
	}
	images, err := process.Images()
	at := slices.IndexFunc(images, func(i objfile.Image) bool { return i.Inode == st.Ino })
	if err != nil || at < 0 {
		return objfile.Image{}, false
	}
	return images[at], true
}

// loading is a library on its way in, or out again.
type loading struct {
	process access.Process
	load    *attunev1.LoadLibrary
	library *loadedLibrary
}

func (l loading) run(ctx context.Context) (access.Done, error) {
	mode := uint64(loadNow)
	if l.load.GetGlobal() {
		mode |= loadGlobal
	}
	handle, how, _, err := callLoader(ctx, l.process, "dlopen", access.TextValue(l.library.Path), access.Unsigned(mode))
	l.library.Handle = handle
	if err == nil && handle == 0 {
		err = fmt.Errorf("load %s: %s", l.library.Path, loaderMessage(ctx, l.process, how.Thread))
	}
	return how, err
}

// symbol is the address of what the library was loaded for.
func (l loading) symbol() (*attunev1.Value, error) {
	if l.load.GetSymbol() == "" {
		return nil, nil //nolint:nilnil // no value is an answer
	}
	image, there := mapped(l.process, l.library.Path)
	if !there {
		return nil, fmt.Errorf("load %s: it is not mapped afterwards", l.library.Path)
	}
	found, err := objfile.LookupIn([]objfile.Image{image}, "", l.load.GetSymbol(), objfile.Any)
	if err != nil && !errors.Is(err, objfile.ErrIndirect) {
		return nil, err
	}
	return access.Unsigned(found.Address), nil
}

func (*loadedLibrary) Kind() string { return "library" }

// TakeBack closes the library if that was asked for, once.
func (l *loadedLibrary) TakeBack(ctx context.Context, in actuate.Changed) error {
	switch {
	case l.Handle == 0 || !in.Process.Alive():
		return nil // it was not loaded, or is closed
	case !l.Close:
		return ErrLibraryStays
	case !l.Closing:
		return l.close(ctx, in)
	}
	if _, there := mapped(in.Process, l.Path); there {
		return fmt.Errorf("close %s: %w", l.Path, errClosing)
	}
	return nil
}

// close has the loader close the library, when the journal knows that.
func (l *loadedLibrary) close(ctx context.Context, in actuate.Changed) error {
	l.Closing = true
	if err := in.Rewrite(); err != nil {
		l.Closing = false
		return fmt.Errorf("close %s: %w", l.Path, err)
	}
	result, _, called, err := callLoader(ctx, in.Process, "dlclose", access.Unsigned(l.Handle))
	switch {
	case !called:
		l.Closing = false
		return errors.Join(err, in.Rewrite())
	case err != nil: // it may have been made
		return fmt.Errorf("close %s: %s: %w", l.Path, err.Error(), errClosing)
	case uint32(result) != 0:
		return fmt.Errorf("close %s: the loader refused it: %w", l.Path, errClosing)
	}
	l.Handle = 0
	return nil
}

func (*loadedLibrary) Overlaps(actuate.Undo, bool) bool    { return false }
func (*loadedLibrary) About(actuate.Changed) actuate.About { return actuate.About{} }

// loaderPatience is how long each way to call the loader waits for its place, and
// a thread that came to a hook may take for the call.
const loaderPatience = 5 * time.Second

// callLoader calls a function of the dynamic loader's interface. called is false if the call was
// certainly not made.
func callLoader(
	ctx context.Context, process access.Process, name string, arguments ...*attunev1.Value,
) (result uint64, how access.Done, called bool, err error) {
	function, err := loaderFunction(process, name)
	if err != nil {
		return 0, access.Done{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(loadWays))*loaderPatience)
	defer cancel()
	i := access.Invocation{Name: name, Function: function, Arguments: arguments, Place: access.Place{Families: []string{"io"}}}
	value, how, called, err := access.Invoke(ctx, process, loadWays, i)
	return value.GetUnsigned(), how, called, err
}

// maxMessage is how much of an error of the loader is read, bytes.
const maxMessage = 512

// loaderMessage is why the loader refused what a stopped thread asked for; each
// thread has its own.
func loaderMessage(ctx context.Context, process access.Process, thread int) string {
	const unknown = "the loader refused it; LD_DEBUG=files in the environment of the program says why"
	function, err := loaderFunction(process, "dlerror")
	if err != nil || thread == 0 {
		return unknown
	}
	code, err := access.Invocation{Function: function}.Thunk()
	if err != nil {
		return unknown
	}
	address, _, err := access.Execute(ctx, process, code, inject.ExecuteOptions{Thread: thread})
	if err != nil || address == 0 {
		return unknown
	}
	message := make([]byte, maxMessage)
	for len(message) > 0 && proc.Read(process, address, message) != nil {
		message = message[:len(message)/2] // the page ends
	}
	message, _, _ = bytes.Cut(message, []byte{0})
	return strings.ToValidUTF8(string(message), "?")
}

// loaderFunction finds one of dlopen's family: in libc since glibc 2.34, in
// libdl before.
func loaderFunction(process access.Process, name string) (uint64, error) {
	var errs []error
	for _, object := range []string{"libc.so.6", "libdl.so.2", "libdl-*.so"} {
		found, err := access.Lookup(process, object, name, objfile.Function)
		if err == nil {
			return found.Address, nil
		}
		errs = append(errs, err)
	}
	return 0, errors.Join(errs...)
}
