// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// buffering is how a stream is buffered.
type buffering struct {
	Mode  bufferMode `json:"mode"`
	Base  uint64     `json:"base"` // of the buffer
	Size  uint64     `json:"size"` // bytes
	Flags uint32     `json:"flags"`
}

func (b buffering) String() string { return fmt.Sprintf("%v, %d bytes", b.Mode, b.Size) }

// argument is the buffer that setvbuf(3) is given.
func (b buffering) argument() uint64 {
	if b.Mode == noBuffer {
		return 0
	}
	return b.Base
}

// changedStream is a stdio stream whose buffer a change has replaced, for the journal.
type changedStream struct {
	FD      int    `json:"fd"`
	Address uint64 `json:"address"` // of the FILE
	// LibcInode and LibcBias identify the C library that it belongs to.
	LibcInode uint64    `json:"libc_inode"`
	LibcBias  uint64    `json:"libc_bias"`
	Old       buffering `json:"old"`
	New       buffering `json:"new"`

	// mapped says that this process has mapped the new buffer and not unmapped it. A journal
	// does not tell: something else may lie there by now.
	mapped bool
}

// What a streamCall returns, beside what its function does.
const (
	streamBusy  = 1 // somebody is using the stream
	streamOther = 2 // its buffer is not the one that is expected
)

// streamCall is a function that is called on a stream under its lock.
type streamCall struct {
	stream, expected          uint64 // addresses of the FILE and its buffer
	tryLock, unlock, function uint64
	unmap                     uint64 // bytes at expected to unmap afterwards
}

// stdio is glibc's buffering of one stream.
type stdio struct{ size bool } // else its mode

// standardOutput is the descriptor whose stream is meant if none is named.
const standardOutput = 1

// Bounds of a buffer, bytes. The least serves a stream that had none.
const (
	leastBuffer = 4 << 10
	mostBuffer  = 16 << 20
)

// stdioStream is a stream of a process that can be changed.
type stdioStream struct {
	process access.Process
	libc    objfile.Image
	sink    sink
	state   streamState
	// inlined: the program writes into the buffer by code of its own, so that it
	// may be in the middle of that anywhere but in a call.
	inlined bool
}

func (m stdio) plan(_ context.Context, r *settingRequest) (*actuate.Plan, error) {
	if r.Change.GetSafePoint().GetKind() != attunev1.SafePoint_KIND_UNSPECIFIED {
		return nil, fmt.Errorf("%w: %s is changed where no thread uses the stream, at no other safe point", access.ErrRefused, r.setting.Name)
	}
	s, err := openStream(r.Process, r.setting.on)
	if err != nil {
		return nil, err
	}
	from := s.state.buffering()
	to := buffering{Mode: from.Mode, Size: max(from.Size, leastBuffer), Flags: flagUserBuffer}
	if m.size {
		to.Size = uint64(r.value)
	} else {
		to.Mode = bufferMode(r.value)
	}
	if err := m.check(s, from, to); err != nil {
		return nil, err
	}
	c := &streamChange{stdioStream: s, setting: m, open: r.Open, record: &changedStream{
		FD: s.state.fd, Address: s.state.address, LibcInode: s.libc.Inode, LibcBias: s.libc.Bias, Old: from, New: to,
	}}
	return c.plan(), nil
}

// check says why a stream's buffering must stay as it is.
func (m stdio) check(s stdioStream, from, to buffering) error {
	switch {
	case m.size && from.Mode == noBuffer:
		return errors.New("the stream is not buffered: change glibc.stdio.mode first")
	case !m.size && to.Mode == fullBuffer && from.Mode != fullBuffer:
		return cmp.Or(s.mayHoldBack(), s.soleWriter())
	}
	return nil
}

// openStream finds the stream of a descriptor, and says why it must not be
// touched.
func openStream(process access.Process, fd int) (s stdioStream, err error) {
	libc, err := access.Resolve(process, "libc.so.6", "setvbuf", objfile.Function)
	if err != nil {
		return s, err
	}
	s = stdioStream{process: process, libc: libc.Image}
	if s.state, err = streamOf(process, s.libc, fd); err != nil {
		return s, err
	}
	if s.sink, err = sinkOf(process.PID(), fd); err != nil {
		return s, err
	}
	err = s.check()
	return s, err
}

func (s *stdioStream) check() error {
	plain, err := s.libc.Symbol("_IO_file_jumps", objfile.Variable)
	switch {
	case err != nil:
		return err
	case s.state.vtable != s.libc.Address(plain.Value) || s.state.wide:
		return errors.New("the stream is for wide characters, or the program's own")
	case s.state.flags&flagUserLock != 0:
		return errors.New("the program locks the stream itself (__fsetlocking)")
	case s.state.flags&flagNoReads == 0:
		return errors.New("the stream is also read from")
	case s.state.buffer == 0:
		return errors.New("nothing has been written to the stream yet: try again when something has")
	}
	return s.checkLocking()
}

// unlocked are functions that write to a stream without its lock. The first one
// is what code calls that writes into the buffer itself.
var unlocked = []string{"__overflow", "putc_unlocked", "fputc_unlocked", "putchar_unlocked", "fputs_unlocked", "fwrite_unlocked"}

// checkLocking refuses a stream whose lock does not tell who uses it.
func (s *stdioStream) checkLocking() error {
	called, err := callsAny(s.process, unlocked)
	if err != nil {
		return err
	}
	s.inlined = slices.Contains(called, unlocked[0])
	tids, _, err := procid.AllThreads(s.process.PID())
	if err != nil {
		return err
	}
	if len(called) > 0 && len(tids) > 1 {
		return fmt.Errorf("its %d threads may write without the stream's lock: it calls %s", len(tids), strings.Join(called, ", "))
	}
	return nil
}

// Patience with a stream that is in use.
const (
	streamPatience = 5 * time.Second
	streamPause    = 2 * time.Millisecond
)

// errStreamBusy says that a stream was in use, or full, all the time.
var errStreamBusy = fmt.Errorf("%w: the stream was in use all the time, or its reader does not read", inject.ErrNoSafePoint)

// do calls code on the stream where nobody uses it, and returns what it does.
func (s stdioStream) do(ctx context.Context, code []byte) (uint64, access.Done, error) {
	ctx, cancel := context.WithTimeout(ctx, streamPatience)
	defer cancel()
	for {
		if s.hasRoom() {
			result, how, err := s.execute(ctx, code)
			switch {
			case inUse(result, err):
			case err != nil:
				return 0, how, err
			case result == streamOther:
				return 0, how, fmt.Errorf("buffer of descriptor %d: %w", s.state.fd, access.ErrChangedByOthers)
			default:
				return result, how, nil
			}
		}
		if !beat.Pause(ctx, streamPause) {
			return 0, access.Done{}, errStreamBusy
		}
	}
}

// writing are functions that programs write to streams with.
var writing = []string{
	"fputs", "puts", "fwrite", "printf", "fprintf", "__printf_chk", "__fprintf_chk", "vfprintf", "__vfprintf_chk", "putc",
	"fputc", "putchar", "_IO_putc", "fflush", "fputs_unlocked", "fwrite_unlocked", "fputc_unlocked", "__overflow",
}

// Patience with one way to a place.
const (
	searchPatience = 300 * time.Millisecond
	entryPatience  = 100 * time.Millisecond
)

// execute calls code where a thread stands well, or if that finds the stream in
// use, as in a program that does little but write, where a thread enters a
// function of stdio.
func (s stdioStream) execute(ctx context.Context, code []byte) (uint64, access.Done, error) {
	result, how, err := access.Execute(ctx, s.process, code, inject.ExecuteOptions{Suits: s.suits, Patience: searchPatience})
	if !inUse(result, err) {
		return result, how, err
	}
	called, callErr := callsAny(s.process, writing)
	if callErr != nil {
		return 0, how, callErr
	}
	for _, name := range called {
		symbol, lookErr := s.libc.Symbol(name, objfile.Function)
		if lookErr != nil || ctx.Err() != nil {
			continue
		}
		at := s.libc.Address(symbol.Value)
		result, how, err = access.Execute(ctx, s.process, code, inject.ExecuteOptions{At: at, Patience: entryPatience})
		if !inUse(result, err) {
			how.Where = fmt.Sprintf("entry of %s, thread %d", name, how.Thread)
			return result, how, err
		}
	}
	return result, how, err
}

// inUse says whether a stream could not be had.
func inUse(result uint64, err error) bool {
	return err == nil && result == streamBusy || errors.Is(err, inject.ErrNoSafePoint)
}

// hasRoom says whether what the stream holds can be written at once.
func (s stdioStream) hasRoom() bool {
	now, err := readStream(s.process, s.state.address)
	return err != nil || s.sink.room(now.pending)
}

// suits keeps away from a thread that is writing the stream's buffer just now,
// for the lock of a program of one thread does not tell; and from one that may
// be filling it by code of its own.
func (s stdioStream) suits(call int64, argument uint64) bool {
	switch call {
	case -1:
		return !s.inlined
	case unix.SYS_WRITE, unix.SYS_WRITEV:
		return int32(argument) != int32(s.state.fd)
	}
	return true
}

// calling prepares a call of a function of the C library on the stream.
func (s stdioStream) calling(function string, expected uint64) (c streamCall, err error) {
	c = streamCall{stream: s.state.address, expected: expected}
	for name, into := range map[string]*uint64{"ftrylockfile": &c.tryLock, "funlockfile": &c.unlock, function: &c.function} {
		symbol, err := s.libc.Symbol(name, objfile.Function)
		if err != nil {
			return c, err
		}
		*into = s.libc.Address(symbol.Value)
	}
	return c, nil
}
