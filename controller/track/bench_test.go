// SPDX-License-Identifier: Apache-2.0

package track

import (
	"github.com/attune-hpc/attune/internal/procid"
	"os"
	"testing"
)

// BenchmarkDescribe is what one new image costs; the rate at which processes
// may start and still be described is its inverse.
func BenchmarkDescribe(b *testing.B) {
	for b.Loop() {
		d, err := describe(nil, os.Getpid(), Event{})
		if err != nil {
			b.Fatal(err)
		}
		d.held.Close()
	}
}

// BenchmarkScan is what polling costs each time, on this machine with the
// processes that it has.
func BenchmarkScan(b *testing.B) {
	pids, err := procid.List()
	if err != nil {
		b.Fatal(err)
	}
	tracker, err := New(Options{Handler: nobody{}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		tracker.state.scanner.scan()
	}
	b.ReportMetric(float64(len(pids)), "processes")
}

// nobody is a Handler that is told of nothing.
type nobody struct{ Handler }
