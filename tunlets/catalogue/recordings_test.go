// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// recorded is one session of testdata, made on two CPUs by
//
//	attune run --record FILE --tunlet NAME [--tunlet-option NAME.OPTION=VALUE] -- PROGRAM
//
// of a program that has the problem of a tunlet, or is like one that has.
type recorded struct {
	file    string
	program string // of bench/workloads, if not said otherwise
	// proposes says that the tunlet has to propose something.
	proposes bool
}

// sessions are those of each tunlet; options are the tunlet's.
var sessions = map[string]struct {
	options  map[string]string
	recorded []recorded
}{
	"affinity": {recorded: []recorded{
		{"bound", "bound_exchange 10", true},
		{"apart", "ping_pong 10 apart", true},
		{"together", "ping_pong 10", false},
	}},
	"aggregation": {map[string]string{"variable": "items_per_message", "latency": "100ms", "most": "1024"}, []recorded{
		{"single", "item_sender 6", true},
		{"joined", "item_sender 4 1024", false},
	}},
	"congestion": {recorded: []recorded{
		{"bbr", "iperf3 with bbr on the loopback", true},
		{"cubic", "iperf3 with cubic on the loopback", false},
	}},
	"convoy": {recorded: []recorded{
		{"waiting", "python_convoy.py 6", true},
		{"alone", "python_gc.py 4", false},
	}},
	"factoring": {
		map[string]string{"object": "self_schedule", "variable": "factor", "round": "play_round", "dispatch": "take_piece", "task": "work_item"},
		[]recorded{
			{"slow", "self_schedule 10 1", true},
			{"fine", "self_schedule 6 0.25", false},
		},
	},
	"gc": {recorded: []recorded{
		{"often", "python_gc.py 8", true},
		{"seldom", "python_gc.py 4 200000", false},
	}},
	"go-gc": {recorded: []recorded{
		{"often", "go_garbage 8", true},
		{"seldom", "go_garbage 4 400", false},
	}},
	"malloc": {recorded: []recorded{
		{"storm", "malloc_storm 4", true},
		{"first_touch", "one that touches much memory for the first time", false},
		{"mapped_file", "one that reads a mapped file", false},
	}},
	"mpi-progress": {recorded: []recorded{
		{"crowded", "LAMMPS with Open MPI, four ranks that spin", true},
		{"yielding", "LAMMPS with Open MPI, four ranks that yield already", false},
		{"mpich", "mpi_exchange with MPICH, four ranks that spin", true},
	}},
	"nagle": {recorded: []recorded{
		{"delayed", "tcp_requests 6", true},
		{"nodelay", "tcp_requests 4 nodelay", false},
	}},
	"omp-spin": {recorded: []recorded{
		{"spinning", "omp_regions 8 200000, twice at a time", true},
		{"sleeping", "the same with GOMP_SPINCOUNT=0", false},
	}},
	"omp-threads": {recorded: []recorded{
		{"many", "omp_regions 6 with 8 threads", true},
		{"few", "omp_regions 4 with 2 threads", false},
	}},
	"pipe": {recorded: []recorded{
		{"narrow", "pipe_stream 15", true},
		{"wide", "pipe_stream 4 1048576", false},
	}},
	"search": {
		map[string]string{"object": "blocked_transpose", "variable": "tile", "progress": "step", "min": "8", "max": "24", "tries": "2"},
		[]recorded{
			{"tile", "blocked_transpose 40", true},
			{"another", "omp_regions 4, which is not what the options name", false},
		},
	},
	"sockbuf": {recorded: []recorded{
		{"small", "tcp_stream 6 16384", true},
		{"kernel", "tcp_stream 4 0", false},
	}},
	"stdio": {recorded: []recorded{
		{"lines", "line_writer 6 line", true},
		{"others", "ping_pong 4, which writes without stdio", false},
	}},
	"workers": {
		map[string]string{"object": "master_worker", "variable": "workers", "round": "play_round", "dispatch": "hand_out", "task": "work_on", "most": "32"},
		[]recorded{
			{"one", "master_worker 8 1", true},
			{"two", "master_worker 6 2", false},
		},
	},
}

// Every recording is listed, and those that are listed are there.
func TestSessionsAreListed(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.rec")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, is := filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), ".rec")
		listed := sessions[name].recorded
		if name == control {
			listed = controls
		}
		if !slices.ContainsFunc(listed, func(r recorded) bool { return r.file == is }) {
			t.Errorf("%s is not listed", file)
		}
	}
	for _, c := range controls { // TestSessions opens the others
		if !slices.Contains(files, filepath.Join("testdata", control, c.file+".rec")) {
			t.Errorf("there is no recording of %s", c.program)
		}
	}
}

// TestSessions replays every tunlet with programs that have its problem, and with such
// that have not: it decides what it did, and proposes nothing to the latter.
func TestSessions(t *testing.T) {
	for _, name := range Names() {
		of := sessions[name]
		for _, proposes := range []bool{true, false} {
			if !slices.ContainsFunc(of.recorded, func(r recorded) bool { return r.proposes == proposes }) {
				t.Errorf("%s: no session with a proposal: %v", name, proposes)
			}
		}
		for _, r := range of.recorded {
			t.Run(name+"/"+r.file, func(t *testing.T) {
				got := tunlettest.Replay(t, New(name), filepath.Join("testdata", name, r.file+".rec"), of.options)
				if strings.Contains(got, "proposes") != r.proposes {
					t.Errorf("%s: want a proposal: %v:\n%s", r.program, r.proposes, got)
				}
			})
		}
	}
}
