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

// sleepers are the tunlets that are not of use yet, or are being started. They belong
// to the loop.
type sleepers struct {
	teller *teller
	wants  *wants
	hurry  func()

	watch  samplefilter.Wakes
	wake   map[string]func()                  // starts one that sleeps; it does not wait
	waking map[string][]*attunev1.SampleBatch // what one that is being started is to get
	needed map[string]string                  // why tunlets do not sleep: see need
	over   bool                               // samples wake nobody any more
}

// tables implements party.
func (s *sleepers) tables(process uint64) []uint32 { return s.watch.Details(process) }

// add has a tunlet sleep, unless it is needed.
func (s *sleepers) add(info *attunev1.DescribeResponse, wake func()) {
	name := info.GetName()
	s.wake[name] = wake
	if why, needed := s.needed[name]; needed {
		s.rouse(name, 0, why, nil)
		return
	}
	s.watch.Add(name, info.GetWake())
	s.teller.emitSleeper(name, false, 0, "asleep, version "+info.GetVersion())
	s.hurry()
}

// need has a tunlet not sleep any more, because of what is known of the application.
// A tunlet is needed from the start if a change that the session goes on with is its
// own: somebody has to watch over that. A replay starts it by the frame that says so.
func (s *sleepers) need(name, text string) {
	if _, already := s.needed[name]; already {
		return
	}
	s.needed[name] = text
	if s.wake[name] != nil {
		s.watch.Remove(name)
		s.rouse(name, 0, text, nil)
	}
}

// rouse has a tunlet started, with the samples that it is to get first.
func (s *sleepers) rouse(name string, process uint64, text string, first []*attunev1.SampleBatch) {
	s.teller.emitSleeper(name, true, process, text)
	s.waking[name] = first
	wake := s.wake[name]
	delete(s.wake, name)
	wake()
}

// see gives a round of samples to the tunlets that are being started, and has
// those started that are of use from now on.
func (s *sleepers) see(b *attunev1.SampleBatch) {
	if s.over {
		return
	}
	for name, batches := range s.waking {
		s.waking[name] = append(batches[max(0, len(batches)-maxWaking+1):], b)
	}
	woken, before := s.watch.Round(b)
	for _, sample := range b.GetSamples() { // details that would wake a tunlet are read, and no longer
		s.wants.mergeTables(sample.GetProcess())
	}
	for _, w := range woken {
		s.rouse(w.Tunlet, w.Process, "woken by a process with "+w.Reason, append(slices.Clone(before), b))
		s.hurry()
	}
}

// leave forgets a tunlet that has been started, or cannot be, and returns the samples
// that came meanwhile.
func (s *sleepers) leave(name string) (missed []*attunev1.SampleBatch) {
	s.watch.Remove(name)
	missed = s.waking[name]
	delete(s.waking, name)
	return missed
}
