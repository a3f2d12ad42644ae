// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
)

// The journal gives back each kind of undo as it was, under its own name.
func TestUndosInTheJournal(t *testing.T) {
	parts := undos{
		&writtenWords{{What: "w", Address: 8, Old: []byte{1}, New: []byte{2}}},
		&systemStates{{Knob: "pipe.size", Old: "1", New: "2"}},
		&Library{Path: "/l.so", Handle: 7, Close: true},
		&Patched{Name: "p", Inode: 3},
		&Named{Setting: "s", New: 5, Values: []NamedValue{{Name: "v", Old: 4}}},
		&Ranks{Setting: "m", Old: 1, New: 2, Members: []procid.Identity{{PID: 9}}},
		&Stream{FD: 1, Address: 16, Old: Buffering{Size: 512}},
		&standardMallopt{Setting: "glibc.malloc.top_pad"},
		&madeCall{},
	}
	if known := len(all.Undos) + 1; len(parts) != known {
		t.Errorf("%d kinds are looked at of %d", len(parts), known)
	}
	names := make(map[string]bool)
	for _, part := range parts {
		line, err := json.Marshal(record{Op: "begin", Change: "c", Undo: undos{part}})
		if err != nil {
			t.Fatal(err)
		}
		if back, err := all.read(line); err != nil || back.Change != "c" {
			t.Fatalf("%s: %v", line, err)
		} else if !reflect.DeepEqual(back.Undo, undos{part}) {
			t.Errorf("%s was read as %v", line, back.Undo)
		}
		names[part.kind()] = true
	}
	if len(names) != len(parts) {
		t.Errorf("two kinds have one name: %v", names)
	}
}

// What another version has changed in a way of its own is not said to be undone.
func TestUndoOfAnotherVersion(t *testing.T) {
	identity, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(record{Op: "begin", Change: "c", Process: &identity})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(line), "{", `{"telepathy":{"thought":1},`, 1)
	r, err := all.read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.takeBack(t.Context()); !errors.Is(err, errNoWayBack) || final(err) {
		t.Errorf("undone: %v", err)
	}
}

// A change that is written down again, with more, keeps its place and its time.
func TestBeginningAgain(t *testing.T) {
	j := mustJournal(t, t.TempDir())
	defer j.Close()
	p := &plan{undo: undos{&systemStates{{Knob: "pipe.size"}}}}
	for _, id := range []string{"a", "b"} {
		if err := j.begin(id, "k", procid.Identity{PID: 1}, p); err != nil {
			t.Fatal(err)
		}
	}
	before, err := all.openChanges(j.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	p.undo = undos{&systemStates{{Knob: "pipe.size"}, {Knob: "thread.nice"}}}
	if err := j.begin("a", "k", procid.Identity{PID: 1}, p); err != nil {
		t.Fatal(err)
	}
	after, err := all.openChanges(j.file.Name())
	if err != nil || len(after) != 2 || after[0].Change != "a" || !after[0].Time.Equal(before[0].Time) {
		t.Fatalf("%+v, %v", after, err)
	}
	if states, ok := after[0].Undo[0].(*systemStates); !ok || len(*states) != 2 || (*states)[1].Knob != "thread.nice" {
		t.Errorf("read %v", after[0].Undo)
	}
}
