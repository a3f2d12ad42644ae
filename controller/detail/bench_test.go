// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// BenchmarkRead is what a round takes: of listing alone, and of what is read.
func BenchmarkRead(b *testing.B) {
	const between = time.Millisecond // two listings
	tests := []struct {
		name     string
		commands []string
		repeat   int
		kind     series.TableID
		most     int
		period   time.Duration
	}{
		{"listing 20", []string{"udp"}, 20, sockets, 64, ListEvery},
		{"listing 128 of 2000", []string{"many 1000"}, 1, sockets, 1, ListEvery},
		{"tcp 15", []string{"tcp", "tcp", "tcp", "tcp", "tcp"}, 1, sockets, 64, between},
		{"tcp 15 borrowed", []string{"tcp", "tcp", "tcp", "tcp", "tcp"}, 1, sockets, 64, LookEvery},
		{"unix 20", []string{"unix"}, 10, sockets, 64, between},
		{"unix 64 of 2000", []string{"many 1000"}, 1, sockets, 64, between},
		{"pipes 20", []string{"pipe"}, 10, pipes, 64, between},
		{"memory 16 MB", []string{"map 16"}, 1, mapped, 64, time.Hour},
		{"memory 512 MB", []string{"map 512"}, 1, mapped, 64, time.Hour},
		{"nodes 16 MB", []string{"map 16"}, 1, series.TableMemoryNodes, 64, time.Hour},
		{"nodes 512 MB", []string{"map 512"}, 1, series.TableMemoryNodes, 64, time.Hour},
	}
	for _, test := range tests {
		b.Run(test.name, func(b *testing.B) {
			r := newRig(b, test.kind)
			for range test.repeat {
				for _, command := range test.commands {
					r.does(command)
				}
			}
			count := 0
			read := func() {
				r.now = r.now.Add(test.period)
				d, _ := r.read(r.want, test.most)
				count += len(items(d.Sockets)) + len(items(d.Pipes))
			}
			for range 40 { // two listings
				r.now = r.now.Add(ListEvery)
				read()
			}
			count = 0
			before := clock.Process()
			for b.Loop() {
				read()
			}
			b.ReportMetric(float64(clock.Process()-before)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(count)/float64(b.N), "items/op")
		})
	}
}
