// SPDX-License-Identifier: Apache-2.0

package procid

import "fmt"

// Schedstat is what the scheduler has counted of a thread, nanoseconds: Run of a
// processor, Wait for one.
type Schedstat struct{ Run, Wait uint64 }

// ParseSchedstat parses the content of a schedstat file, "run wait timeslices".
func ParseSchedstat(data []byte) (Schedstat, error) {
	word, rest := nextWord(data)
	run, ran := parseUint(word)
	word, _ = nextWord(rest)
	wait, waited := parseUint(word)
	if !ran || !waited {
		return Schedstat{}, fmt.Errorf("%w: schedstat %q", ErrMalformed, data)
	}
	return Schedstat{run, wait}, nil
}
