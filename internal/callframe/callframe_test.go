// SPDX-License-Identifier: Apache-2.0

package callframe

import (
	"debug/elf"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// object is a file that is read as if it were loaded at its own addresses.
type object struct {
	path  string
	file  *elf.File
	index uint64
}

// objects are libraries and programs of the distribution, as far as they are here.
func objects(t testing.TB) (all []object) {
	t.Helper()
	for _, pattern := range []string{
		"/lib/*/libc.so.6", "/usr/lib/*/libstdc++.so.6", "/usr/bin/bash",
	} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			continue
		}
		file, err := elf.Open(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() }) // read only
		o := object{path: paths[0], file: file}
		for _, p := range file.Progs {
			if p.Type == elf.PT_GNU_EH_FRAME {
				o.index = p.Vaddr
			}
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		t.Fatal("none of these libraries and programs is here")
	}
	return all
}

// read is memory that holds what the file says.
func (o object) read(at uint64, into []byte) error {
	for _, p := range o.file.Progs {
		if p.Type == elf.PT_LOAD && at >= p.Vaddr && at+uint64(len(into)) <= p.Vaddr+p.Filesz {
			_, err := p.ReadAt(into, int64(at-p.Vaddr))
			return err
		}
	}
	return errors.New("nothing is there")
}

// What readelf --debug-dump=frames-interp says: an entry, the names of its columns, and
// rows of an address, the frame's address, and where registers are.
var (
	entryLine = regexp.MustCompile(` FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)`)
	rowLine   = regexp.MustCompile(`^[0-9a-f]{16} `)
	otherCell = regexp.MustCompile(`r[0-9]+ (\([a-z0-9]+\))`)
)

// numbers of the registers that readelf names in its columns.
var numbers = map[string]int{
	"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "r8": 8, "r9": 9, "r10": 10, "r11": 11,
	"r12": 12, "r13": 13, "r14": 14, "r15": 15, "ra": 16,
}

// said is a row in readelf's words.
func said(r row, columns []string) string {
	names := make(map[uint64]string)
	for name, number := range numbers {
		names[uint64(number)] = name
	}
	frame := "exp"
	if r.frame.kind == inRegister {
		frame = fmt.Sprintf("%s%+d", names[r.frame.register], r.frame.offset)
	}
	text := []string{frame}
	for _, column := range columns {
		text = append(text, [...]string{
			same: "u", lost: "u", inMemory: fmt.Sprintf("c%+d", r.saved[numbers[column]].offset), isAddress: "v", inRegister: "(" + names[r.saved[numbers[column]].register] + ")", computed: "exp",
		}[r.saved[numbers[column]].kind])
	}
	return strings.Join(text, " ")
}

// TestRowsAgainstReadelf: each row of each entry of libraries and programs, found by the
// index, is what readelf says.
func TestRowsAgainstReadelf(t *testing.T) {
	targets.NeedCommand(t, "readelf", "binutils")
	for _, o := range objects(t) {
		t.Run(filepath.Base(o.path), func(t *testing.T) { o.compare(t) })
	}
}

func (o object) compare(t *testing.T) {
	// It complains of a debug file that is not there, and goes on.
	text, _ := exec.Command("readelf", "--debug-dump=frames-interp", o.path).Output()
	var columns []string
	entries, rows := 0, 0
	ours := false // the entry is one that the index has
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch match := entryLine.FindStringSubmatch(line); {
		case match != nil:
			entries++
			start, _ := strconv.ParseUint(match[1], 16, 64)
			end, _ := strconv.ParseUint(match[2], 16, 64)
			e, err := Find(o.read, o.index, start)
			ours = err == nil && e.Start == start && e.End == end
			if !ours {
				t.Errorf("%#x to %#x: %#x to %#x, %v", start, end, e.Start, e.End, err)
			}
		case strings.Contains(line, " CIE "):
			ours = false
		case len(words) > 2 && words[0] == "LOC":
			columns = words[2:]
		case ours && rowLine.MatchString(line):
			rows++
			at, _ := strconv.ParseUint(words[0], 16, 64)
			e, err := Find(o.read, o.index, at)
			r, failed := e.row(at)
			want := otherCell.ReplaceAllString(strings.Join(words[1:], " "), "$1")
			want = strings.NewReplacer("vexp", "exp", " s", " u").Replace(want)
			if err != nil || failed != nil || said(r, columns) != want {
				t.Fatalf("%#x: %q, %v, %v; want %q", at, said(r, columns), err, failed, want)
			}
		}
	}
	if entries == 0 || rows == 0 {
		t.Errorf("readelf shows %d entries and %d rows", entries, rows)
	}
	t.Logf("%d entries, %d rows", entries, rows)
}

// TestRowsOfEntries: each row is what holds from its first instruction to its last.
func TestRowsOfEntries(t *testing.T) {
	for _, o := range objects(t) {
		t.Run(filepath.Base(o.path), func(t *testing.T) {
			section := o.file.Section(".eh_frame")
			content, err := section.Data()
			if err != nil {
				t.Fatal(err)
			}
			kinds := make(map[FrameBy]int)
			err = Each(content, section.Addr, func(e Entry) {
				var rows []Row
				e.Rows(func(r Row) { rows = append(rows, r) })
				if len(rows) == 0 || rows[0].Start != e.Start {
					t.Fatalf("%#x: %+v", e.Start, rows)
				}
				for i, r := range rows {
					last := e.End - 1
					if i+1 < len(rows) {
						last = rows[i+1].Start - 1
					}
					for _, at := range []uint64{r.Start, last} {
						if one, err := e.row(at); err != nil || one.summary(r.Start) != r {
							t.Fatalf("%#x: %+v, want %+v: %v", at, r, one.summary(r.Start), err)
						}
					}
					kinds[r.Frame]++
				}
			})
			if err != nil || kinds[ByStack] < 100 || kinds[ByBase] == 0 || kinds[ByExpression] == 0 {
				t.Errorf("rows: %v, %v", kinds, err)
			}
		})
	}
}

// FuzzFind: whatever memory holds, what is read of it is bounded, and no frame lies
// below the one that it is the caller of.
func FuzzFind(f *testing.F) {
	section := []byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0, 16, 0, 0, 0, 28, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 32, 0, 0, 0, 0, 0x41, 0x0e, 0x10}
	index := []byte{1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0}
	f.Add(append(index, section...), uint64(1))
	f.Fuzz(func(t *testing.T, memory []byte, instruction uint64) {
		const start = 0x1000
		read := func(at uint64, into []byte) error {
			if at < start || at-start > uint64(len(memory)) || uint64(len(memory))-(at-start) < uint64(len(into)) {
				return errors.New("nothing is there")
			}
			copy(into, memory[at-start:])
			return nil
		}
		e, err := Find(read, start, start+instruction)
		if err != nil {
			return
		}
		frame := Frame{stackPointer: start}
		if caller, err := e.Caller(start+instruction, frame, read); err == nil && caller.Stack() <= frame.Stack() {
			t.Errorf("%+v", caller)
		}
	})
}
