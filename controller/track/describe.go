// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/attune-hpc/attune/controller/available"
	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// jobKind is the kind of a job that has it.
const jobKind = "attune"

// description is what /proc told of one image.
type description struct {
	message *attunev1.Process // without handle, host, objects, sha256, mechanisms
	held    *procid.Process
	image   procid.Image
	live    int // the thread in whose files it was read
	session int
	job     string // ATTUNE_JOB
	off     bool   // ATTUNE=off
	// batchJob is the job without regard to that.
	batchJob *attunev1.Job
	asked    batch.Job // for all of it on this node
	// at is CLOCK_MONOTONIC in nanoseconds: what was described includes every
	// exec before that.
	at uint64
}

// describe reads what is told of a process at once; the objects, which take as
// long as all the rest, are left to refresh. An exec meanwhile would mix two
// images, and the files of a thread that ends are empty although others go on:
// both are looked for and the reading repeated. An exec that is at work is awaited for some
// milliseconds: as long as the loader reads a file, the environment is empty. known is the event that the
// process was last seen in, or zero. The error wraps [procid.ErrGone] if the
// process has ended. Single facts that cannot be read (another user's process)
// are left out.
func describe(by *readers.Pool, pid int, known Event) (*description, error) {
	const (
		attempts  = 3
		mostLoads = 20
		loadPause = time.Millisecond
	)
	loads := 0
	for attempt := 1; ; attempt++ {
		d, err := describeOnce(by, pid, known)
		if err != nil {
			return nil, err
		}
		d.at = monotonic()
		after, err := procid.ReadStat(pid)
		live, image := shown(pid, after)
		switch {
		case err == nil && image.Loading() && loads < mostLoads:
			loads, attempt = loads+1, 0 // what was read meanwhile is not to be the last try
			time.Sleep(loadPause)
		case err == nil && live == d.live && image == d.image, attempt == attempts && err == nil:
			return d, nil
		case (err != nil || procid.Dying(pid, after)) && d.message.Executable != "" && len(d.message.CommandLine) > 0:
			return d, nil // it was read whole before it ended
		}
		d.held.Close()
		if err != nil {
			return nil, err
		}
	}
}

// Description is what /proc tells of a process.
type Description struct {
	// Process is without handle, host, objects, digest and mechanisms. Its Job is
	// what the batch system or the launcher says.
	Process *attunev1.Process
	// Held is the process; the caller closes it.
	Held *procid.Process
	// AttuneJob is the value of ATTUNE_JOB; "" without.
	AttuneJob string
	// Off says that its environment has ATTUNE=off: it is to be left alone.
	Off bool
}

// Describe tells of a process. known is the event that it was last seen in, or
// zero. The error wraps [procid.ErrGone] if the process has ended, and
// [readers.ErrRefused] if it cannot be looked at; by, which may be nil, reads.
func Describe(by *readers.Pool, pid int, known Event) (Description, error) {
	d, err := describe(by, pid, known)
	if err != nil {
		return Description{}, err
	}
	d.message.Job = d.batchJob
	return Description{d.message, d.held, d.job, d.off}, nil
}

func describeOnce(by *readers.Pool, pid int, known Event) (*description, error) {
	held, stat, err := procid.OpenStat(pid)
	if err != nil {
		return nil, err
	}
	if procid.Dying(pid, stat) {
		return nil, errors.Join(procid.ErrGone, held.Close())
	}
	identity := held.Identity()
	live, image := shown(pid, stat)
	uid := known.UID
	if known.Kind != Exec || !known.HasUID { // it may have changed since a fork
		uid = readUID(live)
	}
	shows, err := readSeen().Ask(context.Background(), by, uid, seenQuestion{live, pid, stat.ParentPID, stat.Session, stat.ProcessGroup})
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	d := &description{
		held: held, image: image, live: live, session: stat.Session,
		job: shows.Job, off: shows.Off, batchJob: shows.BatchJob, asked: shows.Asked,
		message: &attunev1.Process{
			Identity: &attunev1.ProcessIdentity{
				BootId: identity.BootID, Pid: int32(pid), StartTicks: identity.StartTicks,
				ExeDevice: identity.ExeDevice, ExeInode: identity.ExeInode, Image: image.Number(),
			},
			ParentPid: int32(stat.ParentPID), Uid: uid,
			Executable: strings.ToValidUTF8(procid.Executable(live), "?"), CommandLine: shows.CommandLine,
			Rank: shows.Rank, CpusAllowed: readCPUs(live),
		},
	}
	if d.message.Job = d.batchJob; d.job != "" {
		d.message.Job = &attunev1.Job{Kind: jobKind, Id: d.job}
	}
	return d, nil
}

// shown returns the thread whose files show the image of a process, and that
// image: the files of a first thread that has ended do not any more.
func shown(pid int, stat procid.Stat) (live int, image procid.Image) {
	live = procid.LiveThread(pid, stat)
	if live == pid {
		return pid, stat.Image
	}
	thread, err := procid.ReadStat(live)
	if err != nil {
		return live, stat.Image // ended too, by now
	}
	return live, thread.Image
}

// tellAvailable adds to the message what the process' job could have on this node.
func (d *description) tellAvailable() {
	v, from := available.Of(int(d.message.GetIdentity().GetPid()), d.asked)
	a := &attunev1.Available{BatchSystem: v.System, Job: v.Job, CoresSource: from.Cores, MemorySource: from.Memory}
	if v.Cores != nil {
		a.Cores = *v.Cores
	}
	if v.Memory != nil {
		a.MemoryBytes = *v.Memory
	}
	if v.WallSeconds != nil {
		a.WallSeconds = *v.WallSeconds
	}
	d.message.Available = a
}
