// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"sync"
	"time"
)

const (
	// periods is how many periods the time of a certificate has.
	periods = 24
	// mostInPeriod is how often somebody may ask in one of them. Once in two thirds of
	// the certificate's time is enough where all goes well.
	mostInPeriod = 8
)

// turns bound how often each caller asks. There are no more callers than the site has
// given names to.
type turns struct {
	period time.Duration

	mu    sync.Mutex // guards what follows; a leaf lock
	began time.Time
	taken map[string]int // in this period, by caller
}

// take says whether somebody may ask now.
func (t *turns) take(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); t.taken == nil || now.Sub(t.began) >= t.period {
		t.began, t.taken = now, make(map[string]int)
	}
	t.taken[name]++
	return t.taken[name] <= mostInPeriod
}
