// SPDX-License-Identifier: Apache-2.0

package bpf

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
	once  sync.Once
	slots chan struct{}
	work  sync.WaitGroup
}

// detach closes links, and calls done (which may be nil) when the last of them
// is: from then on no program runs on their behalf. It returns at once.
func (d *detacher) detach(links []io.Closer, done func()) {
	d.once.Do(func() { d.slots = make(chan struct{}, maxDetaching) })
	var left sync.WaitGroup
	for _, link := range links {
		left.Add(1)
		d.work.Go(func() {
			d.slots <- struct{}{}
			defer func() { <-d.slots }()
			// Closing a valid descriptor does not fail.
			_ = link.Close()
			left.Done()
		})
	}
	if done != nil {
		d.work.Go(func() {
			left.Wait()
			done()
		})
	}
}

// wait waits for all that was given to detach, at most so long, and says
// whether all is done.
func (d *detacher) wait(most time.Duration) bool {
	detached := make(chan struct{})
	go func() { // ends with the kernel's work, which nothing can hurry
		d.work.Wait()
		close(detached)
	}()
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	select {
	case <-detached:
		return true
	case <-timeout.C:
		return false
	}
}
