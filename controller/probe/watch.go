// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
)

// watchKey is what the kernel counts by. After an exec it is the same as
// before, for another image: whoever was there first must neither take what the
// next one counts nor end its watch, however late it hears of its own end.
type watchKey struct {
	pid   int
	point uint16
}

func keyOf(t *tenant, point uint16) watchKey { return watchKey{t.process.PID(), point} }

var errReplaced = errors.New("another program runs in the process by now")

// watch has the kernel count for t, from 0 if it counted for an earlier image.
// globals are the addresses of the variables that the point captures.
func (p *Placer) watch(uprobes *uprobe.Uprobes, t *tenant, point uint16, globals []uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := keyOf(t, point)
	if !t.process.Alive() {
		return errReplaced // or ended: nobody would take the counts
	}
	if earlier := p.watching[key]; earlier != nil && earlier != t {
		if earlier.process.Handle() > t.process.Handle() {
			return errReplaced
		}
		if err := uprobes.UnwatchProcess(key.pid, point); err != nil {
			return err
		}
	}
	start := t.process.Identity().StartTicks
	if err := uprobes.Watch(uprobe.Watch{PID: key.pid, StartTicks: start, Point: point, Globals: globals}); err != nil {
		return err
	}
	p.watching[key] = t
	return nil
}

// unwatch ends what the kernel counts for t; it is no error if that was nothing.
func (p *Placer) unwatch(uprobes *uprobe.Uprobes, t *tenant, point uint16) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := keyOf(t, point)
	if p.watching[key] != t {
		return nil
	}
	delete(p.watching, key)
	return uprobes.UnwatchProcess(key.pid, point)
}

// watches says whether what the kernel counts belongs to t.
func (p *Placer) watches(t *tenant, point uint16) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watching[keyOf(t, point)] == t
}
