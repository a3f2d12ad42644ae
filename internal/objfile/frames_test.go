// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// frameLine is a line of readelf --debug-dump=frames-interp.
var frameLine = regexp.MustCompile(`FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)`)

// Frames are those that readelf finds, and the stack at their beginnings is as
// it says.
func TestFramesAgainstReadelf(t *testing.T) {
	targets.NeedCommand(t, "readelf", "binutils")
	paths, err := filepath.Glob("/lib/*/libm.so.6")
	if err != nil || len(paths) == 0 {
		t.Skip("no libm")
	}
	// It complains of a debug file that is not there, and goes on.
	text, _ := exec.Command("readelf", "--debug-dump=frames-interp", paths[0]).Output()
	f, err := Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	frames, err := f.Frames()
	if err != nil {
		t.Fatal(err)
	}
	count, parts := 0, 0
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		match := frameLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		count++
		start, _ := strconv.ParseUint(match[1], 16, 64)
		end, _ := strconv.ParseUint(match[2], 16, 64)
		got, ok := frames.Holding(start)
		// A frame without instructions has no rows: it is what all begin with.
		entry := i+2 < len(lines) && (lines[i+1] == "" || strings.Contains(lines[i+2], "rsp+8 "))
		if !ok || got.Start != start || got.End != end || got.Entry != entry {
			t.Errorf("%+v, want %#x to %#x, entry %v", got, start, end, entry)
		}
		if !entry {
			parts++
		}
	}
	if count < 100 || count != len(frames) || parts == 0 {
		t.Errorf("%d frames, readelf has %d, of which %d are parts", len(frames), count, parts)
	}
	if _, ok := frames.Holding(0); ok || len(frames.Between(frames[0].Start, frames[0].Start+1)) != 1 {
		t.Error("what holds an address is wrong")
	}
}

// A large one may hold others.
func TestFramesBetween(t *testing.T) {
	frames := Frames{{Start: 60, End: 70}, {Start: 10, End: 50}, {Start: 20, End: 30}, {Start: 20, End: 25}}
	frames.settle()
	for start := range uint64(80) {
		for end := start + 1; end < 80; end++ {
			var want Frames
			for _, f := range frames {
				if f.Start < end && start < f.End {
					want = append(want, f)
				}
			}
			if got := frames.Between(start, end); !slices.Equal(got, want) {
				t.Fatalf("%d to %d: %v, want %v", start, end, got, want)
			}
		}
	}
}

func FuzzFrames(f *testing.F) {
	paths, _ := filepath.Glob("/lib/*/libgomp.so.1")
	for _, path := range paths {
		file, err := Open(path)
		if err != nil {
			f.Fatal(err)
		}
		section, err := file.Section(".eh_frame", 1<<12)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			f.Add(section)
		}
		file.Close()
	}
	f.Add([]byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0, 16, 0, 0, 0, 28, 0, 0, 0, 0, 1, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, section []byte) {
		frames, err := parseFrames(section, 0x1000)
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Fatal(err)
		}
		for _, frame := range frames {
			if frame.Start == frame.End {
				t.Fatalf("%+v", frame)
			}
		}
	})
}
