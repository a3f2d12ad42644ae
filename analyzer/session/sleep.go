// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/samplefilter"
)

// maxWaking bounds the rounds of samples that are kept for a tunlet that is
// being started; the oldest go first.
const maxWaking = 64

// sleepers are the tunlets that are not of use yet, or are being started.
type sleepers struct {
	watch  samplefilter.Wakes
	wake   map[string]func()                  // starts one that sleeps; it does not wait
	waking map[string][]*attunev1.SampleBatch // what one that is being started is to get
}

// TunletAsleep tells of a tunlet that need not run before one of the conditions
// in its description holds. wake then starts it: TunletReady follows, or a final
// TunletGone. It must not wait.
func (s *Session) TunletAsleep(info *attunev1.DescribeResponse, wake func()) {
	s.post(func() { s.addSleeper(info, wake) })
}

// addSleeper has a tunlet sleep, unless a change that the session goes on with is
// its own: somebody has to watch over that.
func (s *Session) addSleeper(info *attunev1.DescribeResponse, wake func()) {
	name := info.GetName()
	if s.useful[name] {
		wake()
		return
	}
	if slices.ContainsFunc(s.cfg.Inherit, func(k *attunev1.KeptChange) bool { return k.GetTunlet() == name }) {
		wake()
		return
	}
	s.sleepers.wake[name] = wake
	s.sleepers.watch.Add(name, info.GetWake())
	s.emitSleeper(name, false, 0, "asleep, version "+info.GetVersion())
	s.hurry()
}

// rouse gives a round of samples to the tunlets that are being started, and has
// those started that are of use from now on.
func (s *Session) rouse(b *attunev1.SampleBatch) {
	if s.settling {
		return
	}
	for name, batches := range s.sleepers.waking {
		s.sleepers.waking[name] = append(batches[max(0, len(batches)-maxWaking+1):], b)
	}
	woken, before := s.sleepers.watch.Round(b)
	for _, sample := range b.GetSamples() { // details that would wake a tunlet are read, and no longer
		s.wants.mergeTables(sample.GetProcess())
	}
	for _, w := range woken {
		s.emitSleeper(w.Tunlet, true, w.Process, "woken by a process with "+w.Reason)
		s.sleepers.waking[w.Tunlet] = append(slices.Clone(before), b)
		s.sleepers.wake[w.Tunlet]()
		delete(s.sleepers.wake, w.Tunlet)
		s.hurry()
	}
}

// awake gives a tunlet that has been started what it missed meanwhile.
func (s *Session) awake(t *tunlet) {
	s.sleepers.watch.Remove(t.name)
	for _, b := range s.sleepers.waking[t.name] {
		for _, own := range t.feed.Samples(b) { // without details that others asked for
			t.handleEvents(uint64(len(own.GetSamples().GetSamples())), own)
		}
	}
	delete(s.sleepers.waking, t.name)
}

// tables implements party.
func (s *sleepers) tables(process uint64) []uint32 { return s.watch.Details(process) }

// users says whether there is anybody whom samples are of use to.
func (s *Session) users() bool {
	return len(s.tunlets) > 0 || !s.sleepers.watch.Empty() || s.askers.wantAny()
}
