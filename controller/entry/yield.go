// SPDX-License-Identifier: Apache-2.0

package entry

// Yield notes that a uprobe stands at the entry of a function that was measured
// under a number. The kernel has changed the first byte of the code there and
// will write back what the file has, so the patch is not taken out but
// forgotten. Threads that took its jump before find everything as it was, and
// what is measured at the exits goes on, until Measure ends it.
func (s *Sites) Yield(f Function, number int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn := s.known[placeOf(f)]
	if fn == nil || fn.entry == nil || !fn.entry.active {
		return nil
	}
	w, err := s.writer()
	if err != nil {
		return err
	}
	site := fn.entry.site
	code, err := w.read(site.Address, len(site.Original))
	if err != nil || code[0] == site.Patched()[0] {
		return err // unloaded, or the kernel has put nothing here
	}
	fn.entry.active = false
	exits := len(withNumber(fn.do.exitNumbers, uint32(number), false)) < len(fn.do.exitNumbers)
	fn.do = fn.do.measured(uint32(number), false, exits)
	if at, _ := differences(site.Original, site.Patched()); at != 0 { // of a jump
		return w.write(site.Address+uint64(at), site.Original[at:at+1])
	}
	return nil
}
