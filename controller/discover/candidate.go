// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"regexp"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// candidate is a process that may be meant, with what is known of it.
type candidate struct {
	process *attunev1.Process
	held    *procid.Process // nil: it has ended
	// names that it goes under: of its executable, as it was started.
	names []string
	// matched are the patterns of registrations that its arguments match.
	matched map[*regexp.Regexp]bool
	// script is what a checksum is meant of, a path under /proc/PID while that is
	// there; "": of the executable.
	script string
	// batch says that the batch system started it.
	batch bool
	// attuneJob is its ATTUNE_JOB.
	attuneJob string
	// off says that it is to be left alone.
	off bool
	// privileged says that it may do what its user may not.
	privileged bool
}

func (c *candidate) key() key {
	identity := c.process.GetIdentity()
	return key{int(identity.GetPid()), identity.GetStartTicks()}
}

// image is a program that a process executes.
type image struct {
	device, inode uint64
	script        string
}

func (c *candidate) image() image {
	identity := c.process.GetIdentity()
	return image{identity.GetExeDevice(), identity.GetExeInode(), c.script}
}

func (c *candidate) close() {
	if c.held != nil {
		_ = c.held.Close() // it only fails if it is closed already
	}
}

// describer finds out what is to be known of processes. Its methods may be called from
// any goroutine.
type describer struct {
	readers *readers.Pool
	boot    string // the node's boot id
}

// userOf is whose memory and files those of a process are.
func userOf(e event) uint32 {
	if e.HasUID && e.Kind == track.Exec {
		return e.UID
	}
	uid, _ := procid.UserID(e.PID) // root's, of one that has ended
	return uid
}

// names returns what a process goes under: the path of its executable, what it
// was started by, and the script that it runs if it is wanted, each if known.
func (d *describer) names(ctx context.Context, e event, wanted func(name string) bool) (names []string, err error) {
	add := func(name string) {
		if name != "" {
			names = append(names, name)
		}
	}
	file := procid.Executable(e.PID)
	add(file)
	var memory started
	if file != "" { // else it has ended, or is a thread of the kernel
		memory, err = readStarted().Ask(ctx, d.readers, userOf(e), e.PID)
	}
	as := string(memory.As)
	if e.Program != nil {
		add(absolute(e.PID, e.Program.StartedAs))
		if as == e.Program.StartedAs {
			as = "" // no exec since
		}
	}
	add(absolute(e.PID, as))
	add(script(e.PID, memory.Words, wanted, func(file string) bool {
		var is bool
		is, err = readInterprets().Ask(ctx, d.readers, userOf(e), interpretsQuestion{e.PID, file})
		return err == nil && is
	}))
	return names, err
}

// describe finds out all that is needed of a process that goes under these
// names. Of one that has ended that is what its exec told.
func (d *describer) describe(ctx context.Context, e event, names []string) (*candidate, error) {
	description, err := track.Describe(d.readers, e.PID, e.Event)
	if errors.Is(err, procid.ErrGone) && e.Program != nil {
		description, err = d.remains(e), nil
	}
	if err != nil {
		return nil, err
	}
	c := &candidate{
		process: description.Process, held: description.Held, attuneJob: description.AttuneJob, off: description.Off,
		names: append(names, description.Process.GetExecutable()),
	}
	if err := d.findScript(ctx, e.PID, c); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// findScript finds the script that a process was started as, if it is one.
func (d *describer) findScript(ctx context.Context, pid int, c *candidate) error {
	asked := imageQuestion{PID: pid}
	for _, name := range c.names {
		asked.Names = append(asked.Names, []byte(name))
	}
	which, err := readImage().Ask(ctx, d.readers, c.process.GetUid(), asked)
	if err == nil && which >= 0 && which < len(c.names) {
		c.script = inside(pid, c.names[which])
	}
	return err
}

// remains is what the kernel told of a process that has ended. Where it
// belongs its parent may still know.
func (d *describer) remains(e event) track.Description {
	description := track.Description{Process: &attunev1.Process{
		Identity: &attunev1.ProcessIdentity{
			BootId: d.boot, Pid: int32(e.PID), StartTicks: e.StartTicks,
			ExeDevice: e.Program.Device, ExeInode: e.Program.Inode,
		},
		ParentPid: int32(e.Parent), Uid: e.UID, Executable: e.Program.StartedAs,
		CommandLine: track.ParseCommandLine(e.Program.Arguments),
	}}
	if parent, err := track.Describe(d.readers, e.Parent, track.Event{}); err == nil {
		description.Process.Job, description.AttuneJob = parent.Process.GetJob(), parent.AttuneJob
		_ = parent.Held.Close()
	}
	return description
}
