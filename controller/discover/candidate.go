// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"path"
	"path/filepath"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// candidate is a process that may be meant, with what is known of it.
type candidate struct {
	process *attunev1.Process
	held    *procid.Process // nil: it has ended
	// names that it goes under: of its executable, as it was started.
	names []string
	// file is what a checksum is meant of: the script that it was started as, or
	// the executable; a path under /proc/PID while that is there.
	file string
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

func (c *candidate) close() {
	if c.held != nil {
		_ = c.held.Close() // it only fails if it is closed already
	}
}

// names returns what a process goes under: the path of its executable, what it
// was started by, and the script that it runs if it is wanted, each if known.
func names(e event, wanted func(name string) bool) []string {
	var names []string
	add := func(name string) {
		if name != "" {
			names = append(names, name)
		}
	}
	add(executable(e.PID))
	started := startedAs(e.PID)
	if e.program != nil {
		add(absolute(e.PID, e.program.StartedAs))
		if started == e.program.StartedAs {
			started = "" // no exec since
		}
	}
	add(absolute(e.PID, started))
	add(script(e.PID, wanted))
	return names
}

// describer finds out what is to be known of processes. It belongs to one goroutine.
type describer struct {
	boot  string // the node's boot id
	batch batchLookup
}

// describe finds out all that is needed of a process that goes under these
// names. Of one that has ended that is what its exec told.
func (d *describer) describe(e event, names []string) (*candidate, error) {
	description, err := track.Describe(e.PID, e.Event)
	if errors.Is(err, procid.ErrGone) && e.program != nil {
		description, err = d.remains(e), nil
	}
	if err != nil {
		return nil, err
	}
	c := &candidate{
		process: description.Process, held: description.Held, attuneJob: description.AttuneJob, off: description.Off,
		names: append(names, description.Process.GetExecutable()),
	}
	c.file = c.checkedFile()
	c.privileged = privileged(e.PID, c.process.GetUid())
	c.batch = d.batch.started(e.PID, c.process.GetUid())
	return c, nil
}

// remains is what the kernel told of a process that has ended. Where it
// belongs its parent may still know.
func (d *describer) remains(e event) track.Description {
	description := track.Description{Process: &attunev1.Process{
		Identity: &attunev1.ProcessIdentity{
			BootId: d.boot, Pid: int32(e.PID), StartTicks: e.StartTicks,
			ExeDevice: e.program.Device, ExeInode: e.program.Inode,
		},
		ParentPid: int32(e.Parent), Uid: e.UID, Executable: e.program.StartedAs,
		CommandLine: track.ParseCommandLine(e.program.Arguments),
	}}
	if parent, err := track.Describe(e.Parent, track.Event{}); err == nil {
		description.Process.Job, description.AttuneJob = parent.Process.GetJob(), parent.AttuneJob
		_ = parent.Held.Close()
	}
	return description
}

// checkedFile returns the file whose checksum counts.
func (c *candidate) checkedFile() string {
	pid := int(c.process.GetIdentity().GetPid())
	for _, name := range c.names {
		if name == c.process.GetExecutable() || !path.IsAbs(name) {
			continue
		}
		inside := filepath.Join(procPath(pid, "root"), name)
		if isScript(inside) {
			return inside
		}
	}
	return procPath(pid, "exe")
}
