// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"testing"
)

// TestWorkEnds: what is asked for while the controller stops is waited for, or does not
// begin; the race detector sees what adds to a group that is waited for.
func TestWorkEnds(t *testing.T) {
	for range 100 {
		var w work
		var asking sync.WaitGroup
		ran, begun := 0, make(chan struct{})
		asking.Go(func() {
			close(begun)
			for range 10 {
				w.Go(func() {})
			}
		})
		<-begun
		if !w.end(t.Context()) {
			t.Fatal("it does not end")
		}
		w.Go(func() { ran++ })
		asking.Wait()
		if ran != 0 {
			t.Fatal("something has begun after the end")
		}
	}
}
