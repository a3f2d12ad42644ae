// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
)

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
	r, err := newUndos{}.read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.takeBack(t.Context(), nil, new(forks), true); !errors.Is(err, errNoWayBack) || final(err) {
		t.Errorf("undone: %v", err)
	}
}

// A change that is written down again, with more, keeps its place and its time.
func TestBeginningAgain(t *testing.T) {
	j := mustOpen(t, t.TempDir())
	defer j.Close()
	p := &Plan{Undo: UndoWords([]access.Word{{What: "a"}})}
	for _, id := range []string{"a", "b"} {
		if err := j.begin(id, "k", procid.Identity{PID: 1}, p); err != nil {
			t.Fatal(err)
		}
	}
	before, err := newUndos{}.openChanges(j.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	p.Undo = UndoWords([]access.Word{{What: "a"}, {What: "b"}})
	if err := j.begin("a", "k", procid.Identity{PID: 1}, p); err != nil {
		t.Fatal(err)
	}
	after, err := newUndos{}.openChanges(j.file.Name())
	if err != nil || len(after) != 2 || after[0].Change != "a" || !after[0].Time.Equal(before[0].Time) {
		t.Fatalf("%+v, %v", after, err)
	}
	if words, ok := after[0].Undo[0].(*writtenWords); !ok || len(*words) != 2 || (*words)[1].What != "b" {
		t.Errorf("read %v", after[0].Undo)
	}
}
