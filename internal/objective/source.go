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
)

// lookEvery is how often files are looked at: as often as an application is sampled where
// something is decided.
const lookEvery = 50 * time.Millisecond

// Sink takes what a Source measures. Its functions must not wait for long.
type Sink struct {
	// Value takes a value, over an interval that ends at that time.
	Value func(value float64, end time.Time)
	// Say takes a sentence for people.
	Say func(text string)
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
}

// Open prepares to measure an objective, from now on. Only an Output needs output. Nil, without an
// error: of a Point, which others measure.
func Open(spec Spec, output []Stream) (*Source, error) {
	if spec.Kind == Point {
		return nil, nil
	}
	s := &Source{spec: spec, meter: meter{meaning: spec.Meaning}, said: map[string]bool{}}
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
		file, err := openFor(stream.Path)
		if err != nil {
			refused = append(refused, fmt.Sprintf("%s %v", stream.Name, err))
			continue
		}
		if slices.ContainsFunc(s.files, func(f *follower) bool { return sameFile(f.file, file) }) {
			_ = file.Close() // read only
			continue
		}
		if err := s.follow(file, ""); err != nil {
			return err
		}
	}
	if len(s.files) == 0 {
		return fmt.Errorf("%s: only what goes to a file is read, beside the program, since nothing may stand between it and a terminal or a pipe",
			strings.Join(refused, ", "))
	}
	return nil
}

// openFile opens the named file, if it is there already: what stands in it is not of this run.
func (s *Source) openFile() error {
	file, err := openFor(s.spec.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		s.files = append(s.files, &follower{pattern: s.spec.Pattern, path: s.spec.Path})
		return nil
	case err != nil:
		return fmt.Errorf("%s %w", s.spec.Path, err)
	}
	return s.follow(file, s.spec.Path)
}

// follow reads a file from its present end on.
func (s *Source) follow(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.files = append(s.files, &follower{pattern: s.spec.Pattern, file: file, path: path, offset: info.Size()})
	return nil
}

func sameFile(a, b *os.File) bool {
	one, err := a.Stat()
	other, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(one, other)
}

// Run measures until ctx ends.
func (s *Source) Run(ctx context.Context, to Sink) {
	if s.spec.Kind == Command {
		s.runCommand(ctx, to)
		return
	}
	last := time.Now()
	beat.Tick(ctx, lookEvery, func(now time.Time) {
		s.look(last, now, to)
		last = now
	})
}

// look looks at what was written since the last time.
func (s *Source) look(since, now time.Time, to Sink) {
	var found []float64
	end := since
	for _, f := range s.files {
		numbers, at, err := f.read(since, now)
		if err != nil {
			s.complain(to, err)
			s.meter.skip(now)
			return
		}
		if len(numbers) > 0 {
			found = append(found, numbers...)
			end = latest(end, at)
		}
	}
	if s.spec.Meaning != Rate { // of a total it matters when it was reached
		end = now
	}
	s.take(found, end, to)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// take hands on what was found.
func (s *Source) take(found []float64, at time.Time, to Sink) {
	if value, known := s.meter.take(found, at); known {
		to.Value(value, at)
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
			s.take([]float64{number}, time.Now(), to)
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
		f.close()
	}
}
