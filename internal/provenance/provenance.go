// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"context"
	"math"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/inherit"
)

// Options says what is recorded; the zero value records no files but the executable, and no
// streams.
type Options struct {
	// Inputs and Outputs are files of the command, paths as this process has them.
	Inputs, Outputs []string
	// Capture is how much of the end of each standard stream is kept, bytes; 0: nothing.
	Capture int64
	// Environment is that of the command, NAME=VALUE each.
	Environment []string
	// State is what this process was started with.
	State inherit.State
}

// Record records the provenance of one command.
type Record struct {
	options    Options
	inputs     []*held
	streams    [2]*stream // nil: not captured
	executable *held
	limits     map[string]account.Bounds
}

// Begin looks at what the command finds. The caller must End it.
func Begin(options Options) *Record {
	r := &Record{options: options}
	for _, path := range options.Inputs {
		r.inputs = append(r.inputs, hold(path))
	}
	if options.Capture > 0 {
		for i, fd := range []int{unix.Stdout, unix.Stderr} {
			r.streams[i] = openStream(fd, options.State.FDClosed(fd))
		}
	}
	return r
}

// Started says which process is the command, and what was executed.
func (r *Record) Started(pid int, path string) {
	r.executable, r.limits = hold(path), limitsOf(pid)
}

// End returns what is known when the command has ended. Reading files ends with ctx. Files are
// those of the command's account.
func (r *Record) End(ctx context.Context, files []account.File) *account.Provenance {
	p := &account.Provenance{User: currentUser(), Machine: Machine(), Jobs: jobs(r.options.Environment), Limits: r.limits}
	p.Environment, p.Redacted = redact(r.options.Environment)
	for i, into := range []**account.Captured{&p.Stdout, &p.Stderr} {
		if r.streams[i] != nil {
			*into = r.streams[i].end(r.options.Capture)
		}
	}
	if r.executable != nil {
		p.Executable = new(r.executable.describe(ctx, true))
		r.executable.close()
	}
	for _, h := range r.inputs {
		p.Inputs = append(p.Inputs, h.describe(ctx, true))
		h.close()
	}
	for _, path := range r.options.Outputs {
		h := hold(path)
		p.Outputs = append(p.Outputs, h.describe(ctx, false))
		h.close()
	}
	p.Inputs = append(p.Inputs, found(ctx, files, p.Inputs, (*account.File).WasRead, true)...)
	p.Outputs = append(p.Outputs, found(ctx, files, p.Outputs, (*account.File).WasWritten, false)...)
	return p
}

// limitsOf are the resource limits of a process.
func limitsOf(pid int) map[string]account.Bounds {
	bound := func(n uint64) *uint64 {
		if n == math.MaxUint64 {
			return nil
		}
		return new(n)
	}
	limits := make(map[string]account.Bounds)
	for name, resource := range map[string]int{
		"RLIMIT_AS": unix.RLIMIT_AS, "RLIMIT_CORE": unix.RLIMIT_CORE, "RLIMIT_CPU": unix.RLIMIT_CPU, "RLIMIT_DATA": unix.RLIMIT_DATA,
		"RLIMIT_FSIZE": unix.RLIMIT_FSIZE, "RLIMIT_LOCKS": unix.RLIMIT_LOCKS, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK,
		"RLIMIT_MSGQUEUE": unix.RLIMIT_MSGQUEUE, "RLIMIT_NICE": unix.RLIMIT_NICE, "RLIMIT_NOFILE": unix.RLIMIT_NOFILE,
		"RLIMIT_NPROC": unix.RLIMIT_NPROC, "RLIMIT_RSS": unix.RLIMIT_RSS, "RLIMIT_RTPRIO": unix.RLIMIT_RTPRIO,
		"RLIMIT_RTTIME": unix.RLIMIT_RTTIME, "RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING, "RLIMIT_STACK": unix.RLIMIT_STACK,
	} {
		var limit unix.Rlimit
		if unix.Prlimit(pid, resource, nil, &limit) == nil {
			limits[name] = account.Bounds{Soft: bound(limit.Cur), Hard: bound(limit.Max)}
		}
	}
	return limits
}
