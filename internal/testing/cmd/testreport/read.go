// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// module is left out of the packages' names.
const module = "github.com/attune-hpc/attune/"

// read takes the steps, the events and the allowed skips of one run.
func read(folder, allowed string) (*report, error) {
	r := &report{}
	allowances, err := os.Open(allowed)
	if err != nil {
		return nil, err
	}
	defer allowances.Close()
	if r.allowed, err = readAllowed(allowances); err != nil {
		return nil, fmt.Errorf("%s: %w", allowed, err)
	}
	steps, err := os.Open(filepath.Join(folder, "steps"))
	if err != nil {
		return nil, err
	}
	defer steps.Close()
	if r.steps, err = readSteps(steps); err != nil {
		return nil, fmt.Errorf("%s: %w", steps.Name(), err)
	}
	return r, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		events, err := os.Open(path)
		if err != nil {
			return err
		}
		defer events.Close()
		inside, _ := filepath.Rel(folder, path)
		name, _, _ := strings.Cut(strings.TrimSuffix(inside, ".json"), string(filepath.Separator))
		if err := r.readEvents(name, events); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// readSteps takes lines of a name, a verdict, and seconds by the clock and of
// CPU time, separated by tabs. A step that was left out has its reason in place
// of the seconds.
func readSteps(from io.Reader) ([]step, error) {
	var steps []step
	for line := range lines(from) {
		fields := strings.Split(line, "\t")
		if len(fields) < 3 {
			return nil, fmt.Errorf("%q: fields are missing", line)
		}
		s := step{name: fields[0], verdict: fields[1]}
		switch {
		case s.verdict == leftOut:
			s.reason = fields[2]
		case len(fields) != 4:
			return nil, fmt.Errorf("%q: fields are missing", line)
		default:
			var err, cpuErr error
			s.seconds, err = strconv.ParseFloat(fields[2], 64)
			s.cpu, cpuErr = strconv.ParseFloat(fields[3], 64)
			if err := errors.Join(err, cpuErr); err != nil {
				return nil, err
			}
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// readAllowed takes lines of a package, a test and a reason, separated by tabs.
// A test stands for its subtests, too.
func readAllowed(from io.Reader) (map[test]string, error) {
	allowed := map[test]string{}
	for line := range lines(from) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, "\t", 3)
		if len(fields) != 3 || fields[2] == "" {
			return nil, fmt.Errorf("%q: want a package, a test and a reason, separated by tabs", line)
		}
		allowed[test{pkg: fields[0], name: fields[1]}] = fields[2]
	}
	return allowed, nil
}

// event is what `go test -json` tells (go doc test2json).
type event struct {
	Time                          time.Time
	Action, Package, Test, Output string
	Elapsed                       float64
}

// readEvents adds the tests of one step. What is no event is passed over: a
// compiler's words stand between them.
func (r *report) readEvents(step string, from io.Reader) error {
	reasons, since := map[test]string{}, map[test]time.Time{}
	decoder := bufio.NewReader(from)
	for {
		line, err := decoder.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		t := test{pkg: strings.TrimPrefix(e.Package, module), name: e.Test}
		switch e.Action {
		case "run", "cont":
			since[t] = e.Time
		case "output":
			if e.Test != "" && !strings.HasPrefix(e.Output, "=== ") && !strings.HasPrefix(strings.TrimSpace(e.Output), "--- ") {
				reasons[t] = strings.TrimSpace(e.Output)
			}
		case "pass", "fail", "skip":
			// What a test says of itself is without its parallel parts.
			seconds := e.Elapsed
			if began, told := since[t]; told {
				seconds = max(seconds, e.Time.Sub(began).Seconds())
			}
			r.add(outcome{test: t, step: step, action: e.Action, seconds: seconds, words: reasons[t]})
			delete(reasons, t)
		}
	}
}

// lines yields the lines that are not empty.
func lines(from io.Reader) func(func(string) bool) {
	return func(yield func(string) bool) {
		for scanner := bufio.NewScanner(from); scanner.Scan(); {
			if line := scanner.Text(); line != "" && !yield(line) {
				return
			}
		}
	}
}
