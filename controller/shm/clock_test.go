// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
)

// machine is a counter and a clock that are in step but for a rate.
type machine struct {
	elapsed    time.Duration
	gigahertz  float64
	startTicks uint64
	startNanos int64
	jitter     float64 // nanoseconds, either way
	slow       bool    // every reading is interrupted
	random     *rand.Rand
}

func newMachine(gigahertz float64) *machine {
	return &machine{gigahertz: gigahertz, startTicks: 1 << 52, startNanos: 12345, jitter: 60, random: rand.New(rand.NewPCG(1, 2))}
}

func (m *machine) ticks() uint64 {
	return m.startTicks + uint64(float64(m.elapsed)*m.gigahertz)
}

func (m *machine) nanos() uint64 { return uint64(m.startNanos) + uint64(m.elapsed) }

// read is an anchor; reading takes 100 ns.
func (m *machine) read() anchor {
	m.elapsed += 100
	width := uint64(100 * m.gigahertz)
	if m.slow {
		m.elapsed += time.Millisecond
		width += uint64(1e6 * m.gigahertz)
	}
	off := (2*m.random.Float64() - 1) * m.jitter
	return anchor{ticks: m.ticks(), nanos: int64(m.nanos()) + int64(off), width: width}
}

func (m *machine) clock() *Clock {
	c := &Clock{now: m.ticks, read: m.read, offset: func() time.Duration { return 1e18 }}
	c.calibrate()
	return c
}

// time converts a reading of the counter to CLOCK_MONOTONIC nanoseconds.
func (s Scale) time(ticks uint64) uint64 {
	if ticks >= s.ticks {
		return uint64(s.nanos) + s.Duration(ticks-s.ticks)
	}
	return uint64(s.nanos) - s.Duration(s.ticks-ticks)
}

// mistake is how far the conversion of this moment is off, in nanoseconds.
func (m *machine) mistake(s Scale) int64 { return int64(s.time(m.ticks()) - m.nanos()) }

func TestClockStaysWithinAMicrosecond(t *testing.T) {
	for _, gigahertz := range []float64{0.5, 1, 2.25, 4.9} {
		m := newMachine(gigahertz)
		c := m.clock()
		end := 20 * time.Second
		for step := time.Millisecond; m.elapsed < end; {
			s := c.Scale()
			if s.UnixOffset() != 1e18 {
				t.Fatalf("Unix offset %v", s.UnixOffset())
			}
			m.elapsed += step // a batch is converted a while after its Scale
			if off := m.mistake(s); max(off, -off) > 1000 {
				t.Fatalf("%g GHz: off by %d ns after %s", gigahertz, off, m.elapsed)
			}
			if m.elapsed > 5*time.Second {
				step = time.Second // by now the rate is known well
			}
		}
	}
}

func TestClockSurvivesAJump(t *testing.T) {
	m := newMachine(2)
	c := m.clock()
	for range 100 {
		m.elapsed += 10 * time.Millisecond
		c.Scale()
	}
	tests := []struct {
		name  string
		ticks int64
	}{
		{"forward", 1 << 40},
		{"back", -1 << 45},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m.startTicks += uint64(tt.ticks)
			for range 3 {
				m.elapsed += 10 * time.Millisecond
				if off := m.mistake(c.Scale()); max(off, -off) > 1000 {
					t.Errorf("off by %d ns", off)
				}
			}
		})
	}
}

// TestClockIgnoresInterruptedReadings: an old scale is better than a bad one.
func TestClockIgnoresInterruptedReadings(t *testing.T) {
	m := newMachine(3)
	c := m.clock()
	m.elapsed += 100 * time.Millisecond
	before := c.Scale()
	m.elapsed += 100 * time.Millisecond
	m.slow = true
	if got := c.Scale(); got != before {
		t.Errorf("the scale changed from %+v to %+v", before, got)
	}
}

// TestClockReal compares with the machine's own clock over some milliseconds
// and over what the counter does in an hour.
func TestClockReal(t *testing.T) {
	c := NewClock()
	t.Log("source:", clock.CheckCounter())
	var beyond []int64 // what each reading allows; some are held up on their way
	since := time.Duration(math.MaxInt64)
	for range 100 {
		a := readAnchor()
		s := c.Scale()
		off := int64(s.time(a.ticks)) - a.nanos
		beyond = append(beyond, max(off, -off)-int64(s.Duration(a.width)))
		unix := clock.Monotonic() + s.UnixOffset()
		since = min(since, time.Since(time.Unix(0, int64(unix))))
	}
	if slices.Sort(beyond); beyond[len(beyond)/2] > 1000 {
		t.Errorf("off by %d ns in half of the readings", beyond[len(beyond)/2])
	}
	// The offset is known to about a microsecond, in either direction.
	if since < -time.Millisecond || since > 10*time.Millisecond {
		t.Errorf("Unix time is off by %s", since)
	}
}

func TestScaleIsExact(t *testing.T) {
	s := Scale{ticks: 1000, nanos: 500, mult: 1 << 31}
	tests := []struct {
		name        string
		ticks, want uint64
	}{
		{"anchor", 1000, 500},
		{"after", 3000, 1500},
		{"before", 800, 400},
		{"a year later", 1000 + 1<<55, 500 + 1<<54},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.time(tt.ticks); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
	for nanos, want := range map[uint64]uint64{0: 0, 1: 2, 500: 1000, 1 << 62: 1 << 63, 1 << 63: math.MaxUint64} {
		if got := s.Ticks(nanos); got != want {
			t.Errorf("%d ns are %d ticks, want %d", nanos, got, want)
		}
	}
	if got := (Scale{mult: 3 << 31}).Ticks(2); got != 2 {
		t.Errorf("2 ns are %d ticks of 1.5 ns, want the 2 that it takes", got)
	}
	if got := s.Duration(math.MaxUint64); got != math.MaxUint64/2 {
		t.Errorf("got %d", got)
	}
}
