// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// hugePage is the size that MADV_COLLAPSE makes on x86-64 and on arm64 with
// 4 KiB pages.
const hugePage = 2 << 20

// adviceStep bounds one system call, so that the process' own changes to its
// mappings get in between.
const adviceStep = 16 * hugePage

// advice is one way of madvise(2) that can be given from outside.
type advice struct {
	name, what string
	number     int
	// field of smaps_rollup that shows the effect.
	field string
	// step: the range is cut at multiples of this.
	align uint64
}

func memoryKnobs() []knob {
	all := []advice{
		{
			name: "collapse", number: unix.MADV_COLLAPSE, field: "AnonHugePages", align: hugePage,
			what: "Put huge pages (2 MiB) behind the mappings now. Linux 6.1.",
		},
		{
			name: "willneed", number: unix.MADV_WILLNEED, field: "Rss", align: 1,
			what: "Read files' pages ahead, or bring swapped pages back.",
		},
		{
			name: "cold", number: unix.MADV_COLD, field: "Rss", align: 1,
			what: "Make the pages the first to be reclaimed when memory is short.",
		},
	}
	list := make([]knob, len(all))
	for i, a := range all {
		list[i] = knob{
			Knob: Knob{
				Name: "memory." + a.name, On: OnMemory,
				Values:   "heap, stack, anonymous (every private writable mapping without file), or FROM-TO in hexadecimal",
				Examples: []string{"heap", "anonymous"},
				Description: a.what + " Old and new value are " + a.field +
					" of the process: what became of it.",
				Privilege: "CAP_SYS_NICE",
				Undo:      "none: advice is given, not kept",
			},
			parse:  parseRegion,
			places: func(*Target, int) ([]Place, error) { return []Place{{Scope: OnMemory}}, nil },
			check:  func(*Target, string, string) error { return ErrNoUndo },
			open: func(t *Target, _ Place) (slot, error) {
				return &memorySlot{target: t, advice: a}, nil
			},
			drifts: true, advice: true,
		}
	}
	return list
}

// span is a stretch of addresses.
type span struct{ from, to uint64 }

// regions that have a name.
var regionNames = map[string]string{"heap": "[heap]", "stack": "[stack]", "anonymous": ""}

func parseRegion(text string) (string, error) {
	if _, named := regionNames[strings.ToLower(text)]; named {
		return strings.ToLower(text), nil
	}
	s, err := parseSpan(text)
	page := uint64(os.Getpagesize())
	if err != nil || s.from >= s.to || s.from%page != 0 || s.to%page != 0 {
		return "", badValue("%q is not heap, stack, anonymous or FROM-TO, page-aligned and hexadecimal", text)
	}
	return fmt.Sprintf("%x-%x", s.from, s.to), nil
}

func parseSpan(text string) (span, error) {
	first, last, _ := strings.Cut(text, "-")
	from, errFrom := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64)
	to, errTo := strconv.ParseUint(strings.TrimPrefix(last, "0x"), 16, 64)
	return span{from, to}, errors.Join(errFrom, errTo)
}

// memorySlot is the memory of a process.
type memorySlot struct {
	target *Target
	advice advice
}

// get reads what shows the effect.
func (s *memorySlot) get() (string, error) {
	size, err := procid.ReadField(procid.Path(s.target.pid(), "smaps_rollup"), s.advice.field)
	return fmt.Sprintf("%s %d kB", s.advice.field, size>>10), procid.GoneError(err)
}

// set gives the advice. Mappings that do not take it are left out, as long as
// one does.
func (s *memorySlot) set(region string) error {
	spans, err := s.spans(region)
	if err != nil {
		return err
	}
	var done int
	var last error
	for _, one := range spans {
		n, err := s.advise(one)
		done += n
		if err != nil {
			last = err
		}
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ESRCH) {
			break
		}
	}
	switch {
	case done > 0:
		return nil
	case errors.Is(last, unix.EINVAL) && s.advice.number == unix.MADV_COLLAPSE:
		return fmt.Errorf("nothing there can have huge pages, or this kernel (before 6.1) has no MADV_COLLAPSE: %w", last)
	case last != nil:
		return last
	}
	return fmt.Errorf("%s holds no whole piece of %d bytes", region, s.advice.align)
}

// advise works through one span in steps and returns the bytes that took it.
func (s *memorySlot) advise(one span) (done int, err error) {
	from := (one.from + s.advice.align - 1) / s.advice.align * s.advice.align
	end := one.to / s.advice.align * s.advice.align
	for ; from < end; from += adviceStep {
		length := min(adviceStep, end-from)
		callErr := s.target.process.WithFD(func(pidfd int) error {
			n, err := processMadvise(pidfd, from, length, s.advice.number)
			done += max(n, 0)
			return err
		})
		if callErr != nil {
			err = callErr
		}
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ESRCH) {
			break
		}
	}
	return done, err
}

// spans lists the mappings that a region means.
func (s *memorySlot) spans(region string) ([]span, error) {
	mappings, err := objfile.AllMappings(s.target.pid())
	if err != nil {
		return nil, err
	}
	spans := spansOf(mappings, region)
	if len(spans) == 0 {
		return nil, badValue("the process has nothing mapped at %s", region)
	}
	return spans, nil
}

// spansOf returns what the mappings have of a region.
func spansOf(mappings []objfile.Mapping, region string) []span {
	name, named := regionNames[region]
	want, _ := parseSpan(region) // only used for a span
	var spans []span
	for _, m := range mappings {
		here := span{m.Start, m.End}
		switch {
		case !named:
			here = span{max(here.from, want.from), min(here.to, want.to)}
			if here.from < here.to {
				spans = append(spans, here)
			}
		case m.Inode != 0:
		case region == "anonymous":
			if m.Read && m.Write && m.Private && (m.Path == "" || m.Path == "[heap]" || strings.HasPrefix(m.Path, "[anon:")) {
				spans = append(spans, here)
			}
		case m.Path == name:
			spans = append(spans, here)
		}
	}
	return spans
}

func (s *memorySlot) Close() error { return nil }
