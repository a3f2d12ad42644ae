// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/packfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
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
	whole := files.Read(t, mustPackBash(t))
	path := filepath.Join(t.TempDir(), "damaged")
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range regions(t, whole) {
		mustWriteNew(t, path, whole)
		size, clearly := r.end-r.start, r.name != glueRegion
		restore := func(from, to int) {
			t.Helper()
			if clearly {
				mustWriteAt(t, path, from, whole[from:to])
			} else { // a damaged glue may run for long
				mustWriteNew(t, path, whole)
			}
		}
		places := []int{r.start, r.end - 1, r.start + random.IntN(size), r.start + random.IntN(size)}
		if r.name == "record" {
			for at := r.start; at < r.end; at += 9 { // every field
				places = append(places, at)
			}
		}
		for _, at := range places {
			mustWriteAt(t, path, at, []byte{whole[at] ^ 1<<random.IntN(8)})
			refused(t, path, fmt.Sprintf("%s changed at %d of %d", r.name, at-r.start, size), clearly)
			restore(at, at+1)
		}
		ends := []int{r.end - 1 - random.IntN(size)}
		if clearly {
			ends = append(ends, r.start)
		}
		for _, end := range ends {
			if err := os.Truncate(path, int64(end)); err != nil {
				t.Fatal(err)
			}
			refused(t, path, fmt.Sprintf("%s cut off at %d of %d", r.name, end-r.start, size), clearly)
			restore(end, len(whole))
		}
	}
	mustWriteAt(t, path, len(whole), []byte{0})
	refused(t, path, "lengthened", true)
}

// mustWriteNew writes an executable file in the place of what was there.
func mustWriteNew(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	files.Write(t, path, data, 0o755)
}

// mustWriteAt writes into a file and closes it: what is open for writing cannot be
// executed. Nor can a program be written to, also while somebody else still looks at
// the memory of one that has ended.
func mustWriteAt(t *testing.T, path string, at int, data []byte) {
	t.Helper()
	var f *os.File
	var err error
	patience.Until(t, "the end of who executes the file", func() bool {
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
		return !errors.Is(err, syscall.ETXTBSY)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(data, int64(at))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// refused runs a damaged file. clearly: the file says what is wrong.
func refused(t *testing.T, path, name string, clearly bool) {
	t.Helper()
	got := shell(t, "ulimit -c 0; exec "+path+" -c 'echo ran'", "")
	if got.code == 0 || got.stdout != "" {
		t.Errorf("%s: it ran: %+v", name, got)
	}
	if clearly && (got.code != 126 || !strings.Contains(got.stderr, "the file is ") || !strings.Contains(got.stderr, "pack it anew")) {
		t.Errorf("%s: %+v", name, got)
	}
}
