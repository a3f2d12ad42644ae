// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

const (
	timeRemedy = "write it with /usr/bin/time -v -o FILE -- CMD"
	// timedLine begins a record.
	timedLine = "Command being timed: "
	// userLine comes after the command, which may have line ends.
	userLine = "User time (seconds): "
	// lastLine ends a record.
	lastLine = "Exit status"
)

// readTime reads records of GNU time -v. What else is in the file, such as the command's
// own output, is no part of them.
func readTime(f File) (result Result, err error) {
	var record *timed // nil: none has begun
	signal, begun, end := "", 0, -1
	origins := f.origins()
	for i, text := range strings.Split(string(f.Text), "\n") {
		end += len(text) + 1
		text = strings.TrimSpace(text)
		if number, killed := strings.CutPrefix(text, "Command terminated by signal "); killed && record == nil {
			signal = "signal " + number
		}
		typed, begins := strings.CutPrefix(text, timedLine)
		switch {
		case begins && record != nil:
			return Result{}, f.fail(begun, timeRemedy, "a record without %q at its end", lastLine)
		case begins:
			record, begun = &timed{command: []string{typed}, signal: signal}, i+1
			continue
		case record == nil:
			continue
		}
		switch over, err := record.line(text); {
		case err != nil:
			return Result{}, f.fail(i+1, timeRemedy, "%w", err)
		case !over:
			continue
		}
		t := newTask("time")
		if err := record.fill(t); err != nil {
			return Result{}, f.fail(begun, timeRemedy, "%w", err)
		}
		t.Origin = origins.at(end)
		t.Account.End = f.Changed.UTC()
		t.Account.Start = t.Account.End.Add(-seconds(t.Account.WallSeconds))
		result.Tasks = append(result.Tasks, t)
		record, signal = nil, ""
	}
	if record != nil {
		return Result{}, f.fail(begun, timeRemedy, "a record that is cut off")
	}
	return result, nil
}

// timed is a record as far as it was read.
type timed struct {
	command []string // its lines
	signal  string
	numbers map[string]string // nil: the command goes on
}

// line takes one more line, and says whether it is the last one.
func (r *timed) line(text string) (over bool, err error) {
	switch {
	case r.numbers == nil && !strings.HasPrefix(text, userLine):
		r.command = append(r.command, text)
		return false, nil
	case r.numbers == nil:
		r.numbers = make(map[string]string)
	}
	at := strings.LastIndex(text, ": ")
	if at < 0 {
		return false, fmt.Errorf("%q is no line of GNU time", text)
	}
	r.numbers[text[:at]] = text[at+2:]
	return text[:at] == lastLine, nil
}

// fill makes a task of the record.
func (r *timed) fill(t *archive.Task) (err error) {
	const wall = "Elapsed (wall clock) time (h:mm:ss or m:ss)"
	a, numbers := &t.Account, r.numbers
	a.Command = strings.Fields(strings.Trim(strings.Join(r.command, "\n"), `"`))
	if a.WallSeconds, err = clock(numbers[wall]); err != nil {
		return fmt.Errorf("%s: %w", wall, err)
	}
	var user, system, resident, major, minor, voluntary, involuntary, in, out float64
	for name, into := range map[string]*float64{
		"User time (seconds)": &user, "System time (seconds)": &system, "Maximum resident set size (kbytes)": &resident,
		"Major (requiring I/O) page faults": &major, "Minor (reclaiming a frame) page faults": &minor,
		"Voluntary context switches": &voluntary, "Involuntary context switches": &involuntary,
		"File system inputs": &in, "File system outputs": &out,
	} {
		if *into, err = strconv.ParseFloat(numbers[name], 64); err != nil || *into < 0 {
			return fmt.Errorf("%s: %q is no number", name, numbers[name])
		}
	}
	setCPU(a, &user, &system, nil)
	a.Memory.Resident = new(uint64(resident) * 1024)
	a.Faults = account.Faults{Minor: new(uint64(minor)), Major: new(uint64(major))}
	a.ContextSwitches = account.Switches{Voluntary: new(uint64(voluntary)), Involuntary: new(uint64(involuntary))}
	a.IO.StorageRead, a.IO.StorageWritten = new(uint64(in)*512), new(uint64(out)*512)
	code, err := strconv.Atoi(numbers[lastLine])
	if err != nil {
		return fmt.Errorf("%s: %q is no code", lastLine, numbers[lastLine])
	}
	a.Exit = account.Exit{Type: account.ExitNormal, Code: &code}
	if r.signal != "" {
		a.Exit = account.Exit{Type: account.ExitSignal, Signal: r.signal}
	}
	measured(t, account.Exact, "", "wall_seconds", "cpu_seconds", "user_seconds", "system_seconds", "cores_average", "faults.major", "faults.minor",
		"context_switches.voluntary", "context_switches.involuntary", "io.storage_read_bytes", "io.storage_written_bytes")
	measured(t, account.Bound, largestOnly, "memory.resident_peak_bytes")
	return nil
}
