// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/packfile"
)

// region is a range of bytes of a packed file.
type region struct {
	name       string
	start, end int
}

// regions are those that a packed file consists of, in order, without a gap.
func regions(t *testing.T, whole []byte) (all []region) {
	t.Helper()
	packed, err := packfile.Read(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, start, end int) {
		if at := all[len(all)-1].end; at < start {
			all = append(all, region{"padding before " + name, at, start})
		}
		all = append(all, region{name, start, end})
	}
	all = []region{{glueRegion, 0, int(glueSize(t))}}
	for _, part := range packed.Parts {
		add(part.Name, int(part.Offset), int(part.Offset+part.StoredSize))
	}
	const record = 128
	table := int(binary.LittleEndian.Uint64(whole[len(whole)-104:]))
	add("table", table, len(whole)-record)
	add("record", len(whole)-record, len(whole))
	return all
}

// glueRegion is executed before it can check itself: a change there may end the
// process by a signal instead.
const glueRegion = "glue"

func glueSize(t *testing.T) int64 {
	t.Helper()
	glue, err := dmlib.Glue()
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(glue))
}

// TestDamagedFilesAreRefused: a bit that is changed anywhere, and an end that is
// missing from anywhere on, are found before anything runs.
func TestDamagedFilesAreRefused(t *testing.T) {
	emptyPlaces(t)
	whole, err := os.ReadFile(mustPackBash(t))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "damaged")
	for _, r := range regions(t, whole) {
		size := r.end - r.start
		places := []int{r.start, r.end - 1, r.start + random.IntN(size), r.start + random.IntN(size)}
		if r.name == "record" {
			for at := r.start; at < r.end; at += 9 { // every field
				places = append(places, at)
			}
		}
		for _, at := range places {
			damaged := bytes.Clone(whole)
			damaged[at] ^= 1 << random.IntN(8)
			refused(t, path, fmt.Sprintf("%s changed at %d of %d", r.name, at-r.start, size), damaged, r.name != glueRegion)
		}
		if r.name != glueRegion {
			refused(t, path, "cut off before "+r.name, whole[:r.start], true)
		}
		refused(t, path, "cut off in "+r.name, whole[:r.end-1-random.IntN(size)], r.name != glueRegion)
	}
	refused(t, path, "lengthened", append(bytes.Clone(whole), 0), true)
}

// refused runs a damaged file at a path. clearly: the file says what is wrong.
func refused(t *testing.T, path, name string, damaged []byte, clearly bool) {
	t.Helper()
	if err := os.WriteFile(path, damaged, 0o755); err != nil {
		t.Fatal(err)
	}
	got := shell(t, "ulimit -c 0; exec "+path+" -c 'echo ran'", "")
	if got.code == 0 || got.stdout != "" {
		t.Errorf("%s: it ran: %+v", name, got)
	}
	if clearly && (got.code != 126 || !strings.Contains(got.stderr, "the file is ") || !strings.Contains(got.stderr, "pack it anew")) {
		t.Errorf("%s: %+v", name, got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
