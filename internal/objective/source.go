// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/follow"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// lookEvery is how often files are looked at: as often as an application is sampled where
// something is decided.
const lookEvery = 50 * time.Millisecond

// growEvery is how often more files are looked for.
const growEvery = time.Second

// Sink takes what a Source measures. Its functions must not wait for long.
type Sink struct {
	// Value takes a value, over an interval that ends at that time.
	Value func(value float64, end time.Time)
	// Say takes a sentence for people.
	Say func(text string)
	// More returns files that the application writes to by now, of which the source takes
	// those that it has not yet, to read them from their present end on. It is called once in
	// a second; nil: there are no more.
	More func() []*os.File
}

// Stream is a file that the application writes its output to.
type Stream struct {
	// Name is what people call it.
	Name string
	// Path opens it.
	Path string
}

// Source measures an objective of kind Output, File or Command.
type Source struct {
	spec  Spec
	files []*follower
	meter meter
	said  map[string]bool
	// buffer is the followers'; nil: there are none.
	buffer []byte
}

const (
	// maxFiles bounds the files that are followed at a time.
	maxFiles = 256
	// restsAfter is after how long without growth a file leaves its place to another one.
	restsAfter = 10 * time.Second
)

// New returns a source for an Output or File of which all that is read comes by the sink's
// More.
func New(spec Spec) *Source {
	return &Source{spec: spec, meter: meter{meaning: spec.Meaning}, said: map[string]bool{}}
}

// Open prepares to measure an objective, from now on. Only an Output needs output. Nil, without an
// error: of a Point, which others measure.
func Open(spec Spec, output []Stream) (*Source, error) {
	if spec.Kind == Point {
		return nil, nil
	}
	s := New(spec)
	var err error
	switch spec.Kind {
	case Output:
		err = s.openOutput(output)
	case File:
		err = s.openFile()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// openOutput opens those files of the output that are regular ones, each once.
func (s *Source) openOutput(output []Stream) error {
	var refused []string
	for _, stream := range output {
		file, err := follow.Open(stream.Path)
		if err != nil {
			refused = append(refused, fmt.Sprintf("%s %v", stream.Name, err))
			continue
		}
		if err := s.add(file); err != nil {
			return err
		}
	}
	if len(s.files) == 0 {
		return fmt.Errorf("%s: %s", strings.Join(refused, ", "), OnlyFiles)
	}
	return nil
}

// OnlyFiles is why output is not read that goes elsewhere.
const OnlyFiles = "only what goes to a file is read, beside the program, since nothing may stand between it and a terminal or a pipe"

// add follows a file from its present end on, unless it is followed already.
func (s *Source) add(file *os.File) error {
	f, err := follow.New(file)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(s.files, func(other *follower) bool { return other.Same(f) }) {
		f.Close()
		return nil
	}
	if len(s.files) < maxFiles {
		s.follow(f)
		return nil
	}
	if s.drop() {
		s.follow(f)
	} else {
		f.Close()
	}
	return fmt.Errorf("there are more than %d files: not all are read at a time", maxFiles)
}

// drop drops the file that grew longest ago, if it rests: most likely its writer has ended.
func (s *Source) drop() bool {
	oldest := slices.MinFunc(s.files, func(a, b *follower) int { return a.grew.Compare(b.grew) })
	if time.Since(oldest.grew) < restsAfter {
		return false
	}
	s.leave(oldest)
	return true
}

// leave follows a file no longer.
func (s *Source) leave(f *follower) {
	f.Close()
	s.files = slices.DeleteFunc(s.files, func(other *follower) bool { return other == f })
	delete(s.meter.totals, f)
}

func (s *Source) follow(f *follow.File) {
	if s.buffer == nil {
		s.buffer = make([]byte, maxRead)
	}
	s.files = append(s.files, &follower{File: f, pattern: s.spec.Pattern, lines: follow.Splitter{Most: maxLine}, buffer: s.buffer, grew: time.Now()})
}

// openFile opens the named file, if it is there already: what stands in it is not of this run.
func (s *Source) openFile() error {
	f, err := follow.Path(s.spec.Path)
	if err != nil {
		return fmt.Errorf("%s %w", s.spec.Path, err)
	}
	s.follow(f)
	return nil
}

// Run measures until ctx ends.
func (s *Source) Run(ctx context.Context, to Sink) {
	if s.spec.Kind == Command {
		s.runCommand(ctx, to)
		return
	}
	last, grown := time.Now(), time.Time{}
	beat.Tick(ctx, lookEvery, func(now time.Time) {
		if to.More != nil && now.Sub(grown) >= growEvery {
			grown = now
			s.grow(to)
		}
		s.look(last, now, to)
		last = now
	})
}

// grow takes files that have come.
func (s *Source) grow(to Sink) {
	for _, file := range to.More() {
		if err := s.add(file); err != nil {
			s.complain(to, err)
		}
	}
}

// look looks at what was written since the last time.
func (s *Source) look(since, now time.Time, to Sink) {
	var found []float64
	end, missed := since, false
	for _, f := range slices.Clone(s.files) {
		numbers, at, err := f.read(since, now)
		if err != nil {
			missed = true
			s.fail(f, err, to)
			continue
		}
		s.meter.rise(f, numbers, at)
		if len(numbers) > 0 {
			found = append(found, numbers...)
			end = slices.MaxFunc([]time.Time{end, at}, time.Time.Compare)
		}
	}
	if missed && s.spec.Meaning != Value { // the numbers of the others say nothing about the sum
		s.meter.skip(now)
		return
	}
	if s.spec.Meaning != Rate { // of a total it matters when it was reached
		end = now
	}
	s.take(found, end, to)
}

// fail says why a file was not read. One that cannot be read is left, since nothing is known of
// the sum with it; but not the only one: it may be readable again.
func (s *Source) fail(f *follower, err error, to Sink) {
	s.complain(to, err)
	if !errors.Is(err, errSkipped) && len(s.files) > 1 {
		s.leave(f)
	}
}

// take hands on what was found.
func (s *Source) take(found []float64, at time.Time, to Sink) {
	if value, known := s.meter.take(found, at); known {
		if err := attunev1.CheckObjective(value); err != nil {
			s.complain(to, err)
		} else {
			to.Value(value, at)
		}
	}
	if s.meter.hint != "" {
		to.Say(s.meter.hint)
		s.meter.hint = ""
	}
}

// runCommand runs the command again and again. One that takes longer than the time between
// two runs begins as soon as the one before has ended.
func (s *Source) runCommand(ctx context.Context, to Sink) {
	env := untuned(os.Environ())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(s.spec.Every)
		number, err := ask(ctx, s.spec.Command, env)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.complain(to, err)
			s.meter.skip(time.Now())
		default:
			now, found := time.Now(), []float64{number}
			s.meter.rise(nil, found, now)
			s.take(found, now, to)
		}
	}
}

// untuned returns an environment in which attune leaves programs alone.
func untuned(env []string) []string {
	return append(slices.DeleteFunc(slices.Clone(env), func(line string) bool { return strings.HasPrefix(line, "ATTUNE=") }), "ATTUNE=off")
}

// complain says what is wrong, each thing once.
func (s *Source) complain(to Sink, err error) {
	const most = 8
	if text := err.Error(); !s.said[text] && len(s.said) < most {
		s.said[text] = true
		to.Say(text)
	}
}

// Close closes the files. Run has returned, or was not called.
func (s *Source) Close() {
	for _, f := range s.files {
		f.Close()
	}
}
