// SPDX-License-Identifier: Apache-2.0

package sites

import "slices"

// Yield notes that a uprobe stands at the entry of a function that was measured
// under a number. The kernel has changed the first byte of the code there and
// will write back what the file has, so the patch is not taken out but
// forgotten. Threads that took its jump before find everything as it was, and
// what is measured at the exits goes on, until Measure ends it.
func (s *Sites) Yield(f Function, number int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn := s.known[placeOf(f)]
	if fn == nil || fn.entry == nil || !fn.do.measures(uint32(number)) {
		return nil
	}
	if fn.entry.active {
		if gave, err := fn.entry.giveWay(s.process); !gave {
			return err
		}
	}
	exits := slices.Contains(fn.do.exitNumbers, uint32(number))
	if fn.do = fn.do.measured(s.functions.self(), uint32(number), false, exits); !exits {
		s.functions.ends(KeyOf(f), 1)
	}
	return nil
}

// giveWay forgets a patch under a uprobe; false if there is none, or no code.
func (p *spot) giveWay(process Process) (gave bool, err error) {
	w, err := writerOf(process)
	if err != nil {
		return false, err
	}
	code, err := w.read(p.site.Address, len(p.site.Original))
	if err != nil || code[0] == p.site.Patched()[0] {
		return false, err // unloaded, or the kernel has put nothing here
	}
	p.active = false
	if at, _ := differences(p.site.Original, p.site.Patched()); at != 0 { // of a jump
		return true, w.write(p.site.Address+uint64(at), p.site.Original[at:at+1])
	}
	return true, nil
}
