// SPDX-License-Identifier: Apache-2.0

// Package hookdef turns DMLib's list of hooks (dmlib_hooks.def) into Go. It
// has no state and may be used by several goroutines.
package hookdef

import (
	"bytes"
	"fmt"
	"go/format"
	"regexp"
	"strconv"
)

// Hook is one line of the list.
type Hook struct {
	// Index is the local point index.
	Index int
	// Name is the function's name.
	Name string
	// Family is ALLOC, LOCK or IO.
	Family string
	// Value and Extra say what the hook measures.
	Value, Extra string
}

var hookLine = regexp.MustCompile(`(?m)^HOOK\((\d+), (\w+), (\w+), "([^"]*)", "([^"]*)"\)$`)

// hookStart finds what ought to be a hook, so that a line in another form is
// an error and not a hole.
var hookStart = regexp.MustCompile(`(?m)^HOOK\(`)

// families maps the names of the list to the constants of package shm.
func families() map[string]string {
	return map[string]string{"ALLOC": "AtAlloc", "LOCK": "AtLock", "IO": "AtIO"}
}

// Parse reads the list. Indices must rise, so that none is given twice.
func Parse(def []byte) ([]Hook, error) {
	lines := hookLine.FindAllSubmatch(def, -1)
	if want := len(hookStart.FindAll(def, -1)); want != len(lines) {
		return nil, fmt.Errorf("%d hooks, but only %d are well formed", want, len(lines))
	}
	hooks := make([]Hook, 0, len(lines))
	for _, l := range lines {
		index, err := strconv.Atoi(string(l[1]))
		if err != nil {
			return nil, fmt.Errorf("index of hook %s: %w", l[2], err)
		}
		if n := len(hooks); n > 0 && hooks[n-1].Index >= index {
			return nil, fmt.Errorf("hook %s: index %d does not rise", l[2], index)
		}
		if families()[string(l[3])] == "" {
			return nil, fmt.Errorf("hook %s: unknown family %s", l[2], l[3])
		}
		hooks = append(hooks, Hook{index, string(l[2]), string(l[3]), string(l[4]), string(l[5])})
	}
	return hooks, nil
}

// Generate returns the Go file that package shm keeps as hooks.go.
func Generate(def []byte) ([]byte, error) {
	hooks, err := Parse(def)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("// SPDX-License-Identifier: Apache-2.0\n\n")
	b.WriteString("// Code generated from dmlib_hooks.def by go generate. DO NOT EDIT.\n\n")
	b.WriteString("package shm\n\n")
	b.WriteString("// Hooks returns DMLib's own hooks in the order of their indices.\n")
	b.WriteString("func Hooks() []Hook {\nreturn []Hook{\n")
	for _, h := range hooks {
		fmt.Fprintf(&b, "{Index: %d, Name: %q, Family: %s, Value: %q, Extra: %q},\n",
			h.Index, h.Name, families()[h.Family], h.Value, h.Extra)
	}
	b.WriteString("}\n}\n")
	return format.Source(b.Bytes())
}
