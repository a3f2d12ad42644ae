// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/testing/golden"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const actionsHead = `<!-- SPDX-License-Identifier: Apache-2.0 -->
# Tuning actions and their ways in

What can be changed in a running process, and by which way. The ways of an action
are tried in this order, the next one where one does not serve; the answer to a
change names the one that did. Made from the table that the code goes by with
` + "`go test ./controller/actuate/kinds -run Page -update`" + `.

| Action | Command | Ways in, in this order | When the next one, and limits | Undoing |
|---|---|---|---|---|
`

const actionsFoot = `
What a process forks takes along what was changed in its memory: variables, functions,
slots, named settings. When the change is undone, it is undone in all its living forks as
well, and in theirs, also if the process has ended meanwhile, and if another controller
or ` + "`attune undo`" + ` does it ([why and how](../design/0084-what-a-fork-takes-along.md)). A fork that
has set a value of its own keeps it, except where only glibc's default can be set again, because the
old value of a malloc parameter could not be read. One in which that cannot be done for the time being
keeps the change in force, and it is tried again. One that Attune may not touch is told of, and
keeps what it has.

Not undone in forks are: copies of thread-local variables, buffers of stdio streams,
libraries that were loaded, control variables of MPI, what the operating system keeps
(` + "[knobs](knobs.md)" + `), and anything in a fork that this user may not look into, because it has
taken on another user's id, say. Start such workers anew after the change was undone.

The ways:

`

// The reference page is made from the table that the code goes by.
func TestActionsPage(t *testing.T) {
	var page strings.Builder
	page.WriteString(actionsHead)
	for _, r := range All(Options{}).Actions {
		var ways []string
		for _, way := range r.Ways {
			ways = append(ways, string(way))
		}
		fmt.Fprintf(&page, "| %s | `%s` | %s | %s | %s |\n", r.What, r.Command, strings.Join(ways, ", then "), r.Remark, r.Undo)
	}
	page.WriteString(actionsFoot)
	for _, w := range access.Ways() {
		fmt.Fprintf(&page, "- *%s*: %s\n", w.Way, w.Description)
	}
	golden.File(t, "../../../docs/reference/actions.md", []byte(page.String()))
}

// Policies and the page speak of the same actions, and of every way.
func TestRoutesAreComplete(t *testing.T) {
	var actions []string
	used := make(map[access.Way]bool)
	for _, r := range All(Options{}).Actions {
		actions = append(actions, r.Action)
		for _, way := range r.Ways {
			used[way] = true
		}
	}
	for _, action := range attunev1.ActionKinds() {
		if !slices.Contains(actions, action) {
			t.Errorf("%s has no route", action)
		}
	}
	for _, w := range access.Ways() {
		if !used[w.Way] {
			t.Errorf("nothing goes by %s", w.Way)
		}
		delete(used, w.Way)
	}
	if len(used) != 0 {
		t.Errorf("not described: %v", used)
	}
}

// The journal keeps each undo under a name of its own, and gives it back as it was.
func TestUndosInTheJournal(t *testing.T) {
	names := map[string]bool{"op": true, "time": true, "change": true, "knob": true, "process": true, "told": true, "outcome": true, "lineage": true, "words": true}
	for _, newUndo := range All(Options{}).Undos {
		undo, back := newUndo(), newUndo()
		if names[undo.Kind()] {
			t.Errorf("the name %s is taken", undo.Kind())
		}
		names[undo.Kind()] = true
		fill(reflect.ValueOf(undo).Elem())
		text, err := json.Marshal(undo)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, back); err != nil || !reflect.DeepEqual(undo, back) {
			t.Errorf("%s was read as %+v, %v", text, back, err)
		}
	}
}

// fill gives a value to all that can be seen of a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(1))
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	}
}
