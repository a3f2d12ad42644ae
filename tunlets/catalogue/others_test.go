// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// control is the folder of the programs without a problem, each recorded with all
// tunlets: those of bench/catalogue, with less work.
const control = "control"

var controls = []recorded{
	{file: "arithmetic", program: "control_compute 1000"},
	{file: "threads", program: "control_threads 3000"},
	{file: "mpi", program: "mpi_exchange 4 with Open MPI, a core per rank"},
	{file: "python", program: "control_python.py 25"},
	{file: "sqlite", program: "control_sqlite.sql with a million rows"},
	{file: "gzip", program: "gzip -6 of 88 MB of text"},
	{file: "xz", program: "xz -0 of the same"},
	{file: "zstd", program: "zstd -9 of the same"},
	{file: "gzips", program: "gzip to gzip to md5sum of the same"},
	{file: "sort", program: "sort of the same"},
	{file: "awk", program: "mawk, sums by key, twice over the same"},
	{file: "perl", program: "perl, the same once"},
	{file: "gcc", program: "gcc -O2 of malloc_storm.c, 50 times"},
	{file: "shell", program: "900 rounds of test, echo and sed"},
}

// also has the tunlets that may propose something to a program that was recorded
// for another one, by file, since it has their problem as well.
var also = map[string]string{
	// The machine's default was bbr, whose pacing binds on the loopback.
	"sockbuf/kernel": "congestion",
}

// optionsElsewhere are those of a tunlet for other programs than its own. The
// recordings of aggregation were made without the name of the program, which says
// that every program may have the variable.
func optionsElsewhere(tunlet string) map[string]string {
	options := maps.Clone(sessions[tunlet].options)
	if tunlet == "aggregation" {
		options["object"] = "item_sender"
	}
	return options
}

// TestOthersAreLeftAlone replays every recording for every tunlet that it was not
// made for. A tunlet proposes nothing to a program that has not its problem,
// whatever other problem the program has.
func TestOthersAreLeftAlone(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.rec")
	if err != nil {
		t.Fatal(err)
	}
	proposed := make([][]string, len(files)) // of each file, by a test of its own
	t.Run("files", func(t *testing.T) {
		for i, file := range files {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				proposed[i] = proposing(t, file)
			})
		}
	})
	got := map[string]bool{}
	for i, file := range files {
		for _, name := range proposed[i] {
			got[file+" "+name] = true
		}
	}
	for program, name := range also {
		if !got["testdata/"+program+".rec "+name] {
			t.Errorf("%s proposes nothing to %s: take it off the list", name, program)
		}
	}
}

// proposing returns the tunlets that propose something to a program that was
// recorded for another one, or for none. It fails for those that may not.
func proposing(t *testing.T, file string) (names []string) {
	t.Helper()
	folder := filepath.Base(filepath.Dir(file))
	program := folder + "/" + strings.TrimSuffix(filepath.Base(file), ".rec")
	for _, name := range Names() {
		if name == folder {
			continue // TestSessions
		}
		got := tunlettest.Decisions(t, New(name), file, optionsElsewhere(name))
		if !strings.Contains(got, "proposes") {
			continue
		}
		names = append(names, name)
		if also[program] != name {
			t.Errorf("%s proposes something to %s:\n%s", name, program, got)
		}
	}
	return names
}
