// SPDX-License-Identifier: Apache-2.0

package masterworker

import "github.com/attune-hpc/attune/tunlets/sdk"

// site is what the members of the program on one host may use.
type site struct {
	sum    float64 // of the CPUs that each may run on
	usable float64 // that there are for them, as far as is known
}

// cpus is how many CPUs the program may run on: on each host what its processes may
// use together, but no more than there are for them. Processes that are bound to
// the same few CPUs of many count as if they were on different ones. Members that
// are not known to be part of the program, or have no sample yet, do not count.
func (t *Tunlet) cpus() (sum float64) {
	sites := map[string]site{}
	for _, m := range t.members {
		allowed, ok := m.window.Last(sdk.CPUsAllowed)
		if !m.watched() || !ok {
			continue
		}
		s := sites[m.host]
		sites[m.host] = site{sum: s.sum + allowed, usable: max(s.usable, allowed, float64(m.usable.Count()))}
	}
	for _, s := range sites {
		sum += min(s.sum, s.usable)
	}
	return sum
}
