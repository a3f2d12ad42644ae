// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// streamChange gives a stream a buffer that Attune has mapped. The old buffer
// stays where it is, with what belongs to it, until it is given back.
type streamChange struct {
	stdioStream
	setting stdio
	record  *changedStream
	open    func() []actuate.Undo // what is in force in the process by all journals
}

func (c *streamChange) plan() *actuate.Plan {
	old, now := c.value(c.record.Old), c.value(c.record.New)
	return &actuate.Plan{
		Old: old, Way: access.WayStopped, Undo: actuate.Undos{c.record},
		Told: actuate.Told{
			Where: c.record.where(),
			Old:   attunev1.ValueText(old), New: attunev1.ValueText(now),
		},
		Unchanged: c.record.Old.Mode == c.record.New.Mode && c.record.Old.Size == c.record.New.Size,
		Prepare:   c.mapBuffer,
		Unprepare: func(ctx context.Context) error { return c.record.unmap(ctx, c.process) },
		Run:       c.run,
		Read:      c.read,
		Tend:      c.tender(),
	}
}

// value is what the setting says of a buffering.
func (c *streamChange) value(b buffering) *attunev1.Value {
	if c.setting.size {
		return access.Integer(int64(b.Size))
	}
	return access.TextValue(b.Mode.String())
}

// mapBuffer maps the new buffer: nobody knows of it yet.
func (c *streamChange) mapBuffer(ctx context.Context) error {
	if c.record.New.Mode == noBuffer {
		return nil
	}
	address, _, err := access.Execute(ctx, c.process, access.MapCode(0, c.record.New.Size, unix.PROT_READ|unix.PROT_WRITE), inject.ExecuteOptions{Anywhere: true})
	if err == nil && -address <= access.MaxErrno {
		err = fmt.Errorf("map a buffer of %d bytes: %w", c.record.New.Size, unix.Errno(-address))
	}
	c.record.New.Base, c.record.mapped = address, err == nil
	return err
}

func (c *streamChange) run(ctx context.Context) (access.Done, error) {
	call, err := c.calling("setvbuf", c.record.Old.Base)
	if err != nil {
		return access.Done{}, err
	}
	result, how, err := c.do(ctx, switchCode(call, c.record.Old, c.record.New))
	if err == nil && result != 0 {
		err = errors.New("setvbuf: what the stream held could not be written")
	}
	return how, err
}

func (c *streamChange) read() (*attunev1.Value, error) {
	now, err := readStream(c.process, c.record.Address)
	if err != nil {
		return nil, err
	}
	n := c.record.New
	if now.mode() != n.Mode || n.Mode != noBuffer && (now.buffer != n.Base || now.size != n.Size) {
		return nil, fmt.Errorf("the stream has %d bytes, mode %v, instead of %d, mode %v", now.size, now.mode(), n.Size, n.Mode)
	}
	return c.value(n), nil
}

func (*changedStream) Kind() string { return "stream" }

// TakeBack gives a stream the buffer that it had, when what the present one holds
// is written, and unmaps that. A stream that has been closed needs nothing.
func (r *changedStream) TakeBack(ctx context.Context, in actuate.Changed) error {
	process := in.Process
	s, open, err := r.find(process)
	if err != nil || !open {
		return err
	}
	if !r.gave(s.state.buffering()) && in.LaterHas(r.isBelow) {
		return errStreamAbove
	}
	present := r.New.Base
	if r.New.Mode == noBuffer {
		present = s.state.buffer // its own, of one byte
	}
	if s.state.buffer == r.Old.Base && s.state.mode() == r.Old.Mode {
		return r.unmap(ctx, process) // it was never changed
	}
	if s.sink, err = sinkOf(process.PID(), r.FD); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	call, err := s.calling("setvbuf", present)
	if err != nil {
		return err
	}
	if r.New.Mode != noBuffer {
		call.unmap = r.New.Size
	}
	result, _, err := s.do(ctx, switchCode(call, r.New, r.Old))
	if err == nil && result != 0 {
		err = errors.New("setvbuf: what the stream holds could not be written")
	}
	r.mapped = r.mapped && err != nil
	return err
}

// errStreamAbove says that a stream has the buffer of a later change in force, which was made
// of the present one: its lines may be held back because of that.
var errStreamAbove = errors.New("a later change of the stream is in force: undo that first")

// find reads the stream where it was. It is closed if there is none any more or one of another
// descriptor, which glibc's fclose sees to, or if the process has ended or another image. The
// list of streams does not tell: while others are closed it may be read past this one.
func (r *changedStream) find(process access.Process) (s stdioStream, open bool, err error) {
	if !process.Alive() {
		return s, false, nil
	}
	images, err := process.Images()
	if err != nil {
		return s, false, err
	}
	at := slices.IndexFunc(images, func(i objfile.Image) bool { return i.Inode == r.LibcInode && i.Bias == r.LibcBias })
	if at < 0 {
		return s, false, nil
	}
	s = stdioStream{process: process, libc: images[at]}
	s.state, err = readStream(process, r.Address)
	if errors.Is(err, errNoStream) || errors.Is(err, unix.EFAULT) { // its memory is another's, or nobody's
		return s, false, nil
	}
	return s, err == nil && s.state.fd == r.FD, err
}

func (r *changedStream) Overlaps(other actuate.Undo, sameProcess bool) bool {
	o, ok := other.(*changedStream)
	return ok && sameProcess && r.Address == o.Address
}

// isBelow says whether another change has replaced the buffer of this one.
func (r *changedStream) isBelow(other actuate.Undo, sameProcess bool) bool {
	return r.Overlaps(other, sameProcess) && r.gave(other.(*changedStream).Old)
}

// gave says whether a stream that is buffered so has the buffer that the change has given it.
func (r *changedStream) gave(b buffering) bool {
	if r.New.Mode == noBuffer {
		return b.Mode == noBuffer
	}
	return b.Base == r.New.Base
}

// Onto implements [stacked] of package actuate.
func (r *changedStream) Onto(below actuate.Undo, sameProcess bool) actuate.Undo {
	b, ok := below.(*changedStream)
	if !ok || !b.isBelow(r, sameProcess) {
		return nil
	}
	above := *r
	above.Old = b.Old
	return &above
}

func (r *changedStream) About(actuate.Changed) actuate.About {
	return actuate.About{Told: actuate.Told{Where: r.where(), Old: r.Old.String(), New: r.New.String()}}
}

func (r *changedStream) where() string { return "stream of descriptor " + strconv.Itoa(r.FD) }

// unmap unmaps the new buffer, which no stream has.
func (r *changedStream) unmap(ctx context.Context, process access.Process) error {
	if !r.mapped {
		return nil
	}
	_, _, err := access.Execute(ctx, process, unmapCode(r.New.Base, r.New.Size), inject.ExecuteOptions{Anywhere: true})
	r.mapped = err != nil
	return err
}
