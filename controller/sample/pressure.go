// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/cgroup"
	"github.com/attune-hpc/attune/proto/attune/series"
)

const (
	// pressureFresh is how old a reading of a cgroup may be that serves another of
	// its processes: less than the shortest time between two rounds.
	pressureFresh = 20 * time.Millisecond
	// cgroupRounds is how many rounds pass before it is asked again which cgroup a
	// process is in.
	cgroupRounds = 64
	// pressurePause is how many readings pass before a file is tried again that could
	// not be read: the kernel has none, or it is switched off for the cgroup.
	pressurePause = 256
)

// pressures reads the pressure stall information of the cgroups that processes are
// in. The processes of one cgroup share its files and its readings.
type pressures struct {
	node   string // directory of the node's own pressure
	mounts string // mountinfo

	mu     sync.Mutex // guards groups and what is in them; a leaf lock
	groups map[string]*pressureGroup
}

// newPressures returns what reads pressure, below the directory where proc is
// mounted.
func newPressures(root string) *pressures {
	mounts, err := os.ReadFile(root + "/self/mountinfo")
	if err != nil {
		mounts = nil // the node's own pressure is known without it
	}
	return &pressures{node: root + "/pressure", mounts: string(mounts), groups: make(map[string]*pressureGroup)}
}

// of returns the part that reads the pressure of a process.
func (ps *pressures) of(root string) part {
	return &pressure{all: ps, membership: newProcFile(root + "/cgroup")}
}

// dir is where the pressure of a cgroup stands, from the text of a process' cgroup
// file. Of the first cgroup, and of one that cannot be seen from here, it is the
// node's.
func (ps *pressures) dir(membership string) string {
	in, found := cgroup.Path(membership, "")
	if !found || in == "/" {
		return ps.node
	}
	if dir, found := cgroup.Dir(ps.mounts, "", in); found {
		return dir
	}
	return ps.node
}

// pressure is what is known of one process.
type pressure struct {
	all        *pressures
	membership procFile
	group      *pressureGroup // nil: not known yet
	rounds     int            // until it is asked for anew
	// shift is what is added to what the cgroup has, so that counters do not fall
	// where the process is put into another one.
	shift, last [len(pressureFiles)][2]uint64
	told, moved [len(pressureFiles)]bool // there is a last; of another group than now
}

func (p *pressure) close(s *Sampler) {
	p.membership.close(&s.files)
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	p.leave(s)
}

// leave lets go of the cgroup. The caller holds the mutex.
func (p *pressure) leave(s *Sampler) {
	if p.group == nil {
		return
	}
	if p.group.users--; p.group.users == 0 {
		p.group.close(s)
		delete(p.all.groups, p.group.dir)
	}
	p.group = nil
}

func (p *pressure) read(s *Sampler, of *process, to []series.Reading) ([]series.Reading, error) {
	var dir string
	if p.rounds--; p.rounds < 0 {
		p.rounds = cgroupRounds
		membership, err := p.membership.read(&s.files, of.buffer)
		if err != nil {
			return to, nil // the process may have ended, which the next round tells
		}
		dir = p.all.dir(string(membership))
	}
	p.all.mu.Lock()
	defer p.all.mu.Unlock()
	if dir != "" && (p.group == nil || p.group.dir != dir) {
		p.leave(s)
		p.group, p.moved = p.all.join(dir), p.told
	}
	if p.group == nil {
		return to, nil
	}
	if err := p.group.refresh(s, of.buffer); err != nil {
		return nil, err
	}
	return p.readings(to), nil
}

// join returns the cgroup of a directory. The caller holds the mutex.
func (ps *pressures) join(dir string) *pressureGroup {
	g := ps.groups[dir]
	if g == nil {
		g = newPressureGroup(dir, dir == ps.node)
		ps.groups[dir] = g
	}
	g.users++
	return g
}

// readings adds what is known of the cgroup.
func (p *pressure) readings(to []series.Reading) []series.Reading {
	for i, f := range pressureFiles {
		if !p.group.known[i] {
			continue
		}
		for j, id := range f.ids {
			if id == 0 {
				continue
			}
			now := p.group.stalled[i][j]
			if p.moved[i] {
				p.shift[i][j] = p.last[i][j] - now
			}
			p.last[i][j] = now + p.shift[i][j]
			to = append(to, series.Reading{ID: id, Value: p.last[i][j]})
		}
		p.told[i], p.moved[i] = true, false
	}
	return to
}

// pressureFiles are the files of a cgroup, each with the series of the times in
// which some of its tasks waited, and in which all did.
var pressureFiles = [...]struct {
	name string
	ids  [2]series.ID
}{
	{"cpu", [2]series.ID{series.CPUPressure, 0}}, // not all tasks can wait for a CPU that none has
	{"memory", [2]series.ID{series.MemoryPressure, series.MemoryPressureFull}},
	{"io", [2]series.ID{series.IOPressure, series.IOPressureFull}},
}

// pressureGroup is one cgroup, or the node.
type pressureGroup struct {
	dir     string
	users   int // processes
	files   [len(pressureFiles)]procFile
	skip    [len(pressureFiles)]int // readings in which a file is not tried
	at      time.Time               // of the last reading
	known   [len(pressureFiles)]bool
	stalled [len(pressureFiles)][2]uint64 // nanoseconds
}

func newPressureGroup(dir string, node bool) *pressureGroup {
	g := &pressureGroup{dir: dir}
	for i, f := range pressureFiles {
		name := f.name
		if !node {
			name += ".pressure"
		}
		g.files[i] = newProcFile(path.Join(dir, name))
	}
	return g
}

func (g *pressureGroup) close(s *Sampler) {
	for i := range g.files {
		g.files[i].close(&s.files)
	}
}

// refresh reads the files, unless that was done for another process just now.
func (g *pressureGroup) refresh(s *Sampler, buffer []byte) error {
	now := time.Now()
	if now.Sub(g.at) < pressureFresh {
		return nil
	}
	g.at = now
	for i := range g.files {
		if g.known[i] = false; g.skip[i] > 0 {
			g.skip[i]--
			continue
		}
		data, err := g.files[i].read(&s.files, buffer)
		if err != nil {
			g.files[i].close(&s.files)
			g.skip[i] = pressurePause
			continue
		}
		if g.stalled[i], err = parsePressure(data); err != nil {
			return fmt.Errorf("%s: %w", g.files[i].path, err)
		}
		g.known[i] = true
	}
	return nil
}

// parsePressure parses "some avg10=0.00 avg60=0.00 avg300=0.00 total=12" and the line
// of "full" after it, which kernels before 5.13 do not have for CPUs. It returns the
// totals, in nanoseconds.
func parsePressure(data []byte) (stalled [2]uint64, err error) {
	found := false
	for line := range bytes.Lines(data) {
		kind, rest, _ := bytes.Cut(line, []byte(" "))
		_, total, ok := bytes.Cut(rest, []byte("total="))
		micros, _, isNumber := number(total)
		if !ok || !isNumber {
			return stalled, fmt.Errorf("%w: pressure line %q", errMalformed, line)
		}
		switch string(kind) {
		case "some":
			stalled[0], found = micros*1000, true
		case "full":
			stalled[1] = micros * 1000
		}
	}
	if !found {
		return stalled, fmt.Errorf("%w: pressure without a line of some", errMalformed)
	}
	return stalled, nil
}
