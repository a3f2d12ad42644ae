// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// thread is one thread's last known values.
type thread struct {
	counters
	tid                int
	runnable           bool
	cpus               cpuMask
	known              bool // status was read
	listed             bool // in the present list
	sched, stat, state procFile
	seen               seen
}

// seen is what only details tell of a thread, as it was when they were read.
type seen struct {
	state   byte
	name    string
	start   uint64 // clock ticks since boot; 0: never read
	lastCPU int
}

// keepListed has the threads be those that are listed, and those that the kernel has
// left out of the list because another one ended meanwhile, see [procid.AllThreads]:
// taken for ended, what they took would be counted once more when they are listed again.
func (p *process) keepListed(s *Sampler) {
	for _, tid := range p.tids {
		t, ok := p.threads[tid]
		if !ok {
			t = p.newThread(tid)
			p.threads[tid] = t
		}
		t.listed = true
	}
	for tid, t := range p.threads {
		if !t.listed {
			if _, err := os.Stat(p.root + "/task/" + strconv.Itoa(tid)); err == nil {
				p.tids = append(p.tids, tid)
			} else {
				p.lose(s, t)
			}
		}
		t.listed = false
	}
}

// lose moves a thread that has ended into the sum of ended ones.
func (p *process) lose(s *Sampler, t *thread) {
	p.ended.add(t.counters)
	t.close(s)
	delete(p.threads, t.tid)
}

func (p *process) newThread(tid int) *thread {
	task := p.root + "/task/" + strconv.Itoa(tid)
	return &thread{
		tid: tid, sched: newProcFile(task + "/schedstat"),
		stat: newProcFile(task + "/stat"), state: newProcFile(task + "/status"),
	}
}

func (t *thread) close(s *Sampler) {
	t.sched.close(&s.files)
	t.stat.close(&s.files)
	t.state.close(&s.files)
}

// read reads what a round needs of a thread, or with details all of it.
func (t *thread) read(s *Sampler, p *process, stat procid.Stat, detailed bool) error {
	if detailed {
		return t.readWhole(s, p)
	}
	err := t.readSched(s, p)
	if t.tid == p.pid {
		t.runnable = stat.State == 'R'
	} else if err == nil {
		err = t.readState(s, p)
	}
	if err == nil && !t.known {
		err = t.readStatus(s, p)
	}
	return err
}

// readWhole reads all that details tell.
func (t *thread) readWhole(s *Sampler, p *process) error {
	data, err := t.stat.read(&s.files, p.buffer)
	if err != nil {
		return err
	}
	stat, err := procid.ParseStat(data)
	if err != nil {
		return err
	}
	if t.seen.start != 0 && t.seen.start != stat.StartTicks {
		t.replaced(p)
	}
	t.runnable = stat.State == 'R'
	t.seen = seen{state: stat.State, name: stat.Comm, start: stat.StartTicks, lastCPU: stat.LastCPU}
	if err := t.readSched(s, p); err != nil {
		return err
	}
	return t.readStatus(s, p)
}

// replaced notes that another thread has the number: what the one before had
// stays in the sum.
func (t *thread) replaced(p *process) {
	p.ended.add(t.counters)
	t.counters, t.known, t.seen = counters{}, false, seen{}
}

// detail is the thread as readWhole has found it.
func (t *thread) detail() series.Thread {
	return series.Thread{
		TID: t.tid, StartTicks: t.seen.start, Name: strings.ToValidUTF8(t.seen.name, "?"), State: string(t.seen.state),
		Run: time.Duration(t.run), Wait: time.Duration(t.wait),
		VoluntarySwitches: t.voluntary, InvoluntarySwitches: t.involuntary,
		LastCPU: uint64(max(t.seen.lastCPU, 0)), CPUsAllowed: t.cpus.list(),
	}
}

func (t *thread) readSched(s *Sampler, p *process) error {
	data, err := t.sched.read(&s.files, p.buffer)
	if err != nil {
		return err
	}
	now, err := procid.ParseSchedstat(data)
	if err != nil {
		return err
	}
	if now.Run < t.run {
		// Another thread has the number; without a kept descriptor that shows
		// only here.
		t.replaced(p)
	}
	t.run, t.wait = now.Run, max(now.Wait, t.wait)
	return nil
}

func (t *thread) readState(s *Sampler, p *process) error {
	data, err := t.stat.read(&s.files, p.buffer)
	if err != nil {
		return err
	}
	state, err := procid.ParseState(data)
	t.runnable = state == 'R'
	return err
}

func (t *thread) readStatus(s *Sampler, p *process) error {
	data, err := t.state.read(&s.files, p.buffer)
	if err != nil {
		return err
	}
	now := status{cpus: t.cpus}
	if err := parseStatus(data, &now); err != nil {
		return err
	}
	if now.anonymous.known {
		p.anonymous = now.anonymous
	}
	t.voluntary, t.involuntary = max(now.voluntary, t.voluntary), max(now.involuntary, t.involuntary)
	t.cpus, t.known = now.cpus, true
	return nil
}
