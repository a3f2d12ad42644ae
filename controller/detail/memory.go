// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/attune-hpc/attune/internal/cgroup"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
)

const (
	// paceShare is how many times as long as reading took is the pause after
	// it: the kernel walks the page tables, with the lock on the address space
	// held for reading, which newer kernels give to a writer that waits.
	paceShare = 100
	// memoryEvery is the shortest pause.
	memoryEvery = time.Second
)

// pace is when something is read again that reading costs the process itself.
type pace struct{ due time.Time }

// read calls what reads, unless it is too soon, and sets when it is due again.
func (c *pace) read(now func() time.Time, every time.Duration, reading func()) {
	start := now()
	if start.Before(c.due) {
		return
	}
	reading()
	end := now()
	c.due = end.Add(max(every, paceShare*end.Sub(start)))
}

// readMemory reads what the memory of a process is made of, if that is due.
func (r *Reader) readMemory(p *process, _ int, to *series.Details) (used int) {
	pid := p.held.Identity().PID
	p.memory.read(r.now, memoryEvery, func() {
		out, err := memoryOf(pid)
		switch {
		case errors.Is(err, procid.ErrGone):
		case err != nil:
			to.Refuse(series.TableMemory, mappingsError(err))
		default:
			to.Memory, used = out, 1
		}
	})
	return used
}

// mappingsError is what people are told of mappings that cannot be read.
func mappingsError(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "mappings can be seen by the process' owner and root only: " + err.Error()
	}
	return err.Error()
}

func memoryOf(pid int) (*series.Memory, error) {
	path := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, procid.GoneError(err)
	}
	out, err := parseRollup(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	mappings, err := objfile.AllMappings(pid)
	if err != nil {
		return nil, err
	}
	// Where it cannot be told it is nothing: nobody then takes it.
	out.AvailableBytes, err = cgroup.AvailableMemory(pid)
	if errors.Is(err, procid.ErrGone) {
		return nil, err
	}
	out.Mappings = uint64(len(mappings))
	for _, m := range mappings {
		if m.Inode == 0 && m.Private && m.Read && m.Write {
			out.MappedAnonymousBytes += m.End - m.Start
			out.LargestAnonymousBytes = max(out.LargestAnonymousBytes, m.End-m.Start)
		}
	}
	return out, nil
}

// errRollup says that a smaps_rollup file does not look as the kernel writes it.
var errRollup = errors.New("malformed smaps_rollup file")

// parseRollup parses a smaps_rollup file.
func parseRollup(data []byte) (*series.Memory, error) {
	out := &series.Memory{}
	var shared, private uint64
	found, err := procid.Numbers(data, map[string]*uint64{
		"Rss": &out.ResidentBytes, "Anonymous": &out.AnonymousBytes, "AnonHugePages": &out.HugeBytes,
		"Shared_Hugetlb": &shared, "Private_Hugetlb": &private, "Swap": &out.SwapBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRollup, err)
	}
	if found < 3 { // a kernel without hugetlbfs or swap has no lines of them
		return nil, fmt.Errorf("%w: without Rss, Anonymous or AnonHugePages", errRollup)
	}
	out.HugetlbBytes = shared + private
	return out, nil
}
