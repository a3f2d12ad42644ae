// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"io"
	"sync"
	"time"
)

// maxDetaching bounds how many links are closed at one time. The kernel waits
// for grace periods in each of them, 50 ms as a rule: side by side a hundred
// take little more than one (perf events of kernels before 6.6 wait for each
// other whatever we do, 100 ms each). Each holds a thread of ours meanwhile.
const maxDetaching = 32

// detacher closes links in the background. The zero value is ready.
type detacher struct {
	mu      sync.Mutex // guards what follows
	pending int        // links that are not closed yet, and calls of done
	idle    chan struct{}
	slots   chan struct{}
}

// detach closes links, and calls done (which may be nil) when the last of them
// is: from then on no program runs on their behalf. It returns at once.
func (d *detacher) detach(links []io.Closer, done func()) {
	d.begin(len(links) + 1)
	var left sync.WaitGroup
	left.Add(len(links))
	for _, link := range links {
		go func() { // settled waits for it
			defer d.end()
			defer left.Done()
			d.slots <- struct{}{}
			defer func() { <-d.slots }()
			// Closing a valid descriptor does not fail.
			_ = link.Close()
		}()
	}
	go func() { // settled waits for it
		defer d.end()
		left.Wait()
		if done != nil {
			done()
		}
	}()
}

func (d *detacher) begin(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slots == nil {
		d.slots = make(chan struct{}, maxDetaching)
	}
	if d.pending == 0 {
		d.idle = make(chan struct{})
	}
	d.pending += n
}

func (d *detacher) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending--; d.pending == 0 {
		close(d.idle)
	}
}

// settled is closed when nothing is left to detach.
func (d *detacher) settled() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle == nil {
		d.idle = make(chan struct{})
		close(d.idle)
	}
	return d.idle
}

// wait waits until nothing is left, at most so long, and says whether so.
func (d *detacher) wait(most time.Duration) bool {
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	select {
	case <-d.settled():
		return true
	case <-timeout.C:
		return false
	}
}
