// SPDX-License-Identifier: Apache-2.0

package flame

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/safepage"
)

var example = []Stack{
	{[]string{"p:main", "p:read", "libc.so.6:read"}, 70},
	{[]string{"p:main", "p:write<T>", "libc.so.6:write"}, 29},
	{[]string{"p:main", "p:a;b"}, 1},
}

func TestFold(t *testing.T) {
	var out strings.Builder
	if err := Fold(&out, example); err != nil {
		t.Fatal(err)
	}
	if want := "p:main;p:read;libc.so.6:read 70\np:main;p:write<T>;libc.so.6:write 29\np:main;p:a:b 1\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// Boxes are as wide as their share and lie below their callers; what is hostile is text.
func TestPage(t *testing.T) {
	g := &Graph{
		Title: "<script>alert(1)</script>\x1b[2J\u009b", Stacks: example, Missing: "5 hits",
		Show: func(n uint64) string { return fmt.Sprintf("%d hits", n) },
	}
	page := &Page{Title: "Stacks of p", Graphs: []*Graph{g, {Title: "nothing", Show: g.Show}}}
	var out bytes.Buffer
	if err := page.Write(&out); err != nil {
		t.Fatal(err)
	}
	safepage.Check(t, out.Bytes())
	for _, text := range []string{
		`<title>p:main: 100 hits, 100 %</title><rect class="flame flame0" x="0.0" y="0" width="1199.5"`,
		`<title>libc.so.6:read: 70 hits, 70 %</title><rect class="flame flame1" x="0.0" y="36" width="839.5"`,
		`x="840.0" y="18" width="347.5"`, "p:write&lt;T&gt;: 29 hits", "&lt;script&gt;", "Nothing was seen", "5 hits",
		`<code>libc.so.6:read</code><td class="number">70 hits<td class="number">70 %<td class="number">70 hits`,
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the page lacks %q", text)
		}
	}
}

// A recursion counts once where functions are listed.
func TestLines(t *testing.T) {
	g := &Graph{Stacks: []Stack{{[]string{"p:f", "p:f", "p:f"}, 4}}, Show: func(n uint64) string { return fmt.Sprint(n) }}
	if lines := g.Lines(); len(lines) != 1 || lines[0].All != "4" || lines[0].Direct != "4" {
		t.Errorf("%+v", lines)
	}
	for name, frames := range map[string][]string{"p:main": {"p:main", "p:f"}, "p:f": {"p:main", "p:f", "p:g"}} {
		stacks := []Stack{{[]string{"p:main", "p:f", "p:g"}, 1}, {frames, 2}}
		if lines := (&Graph{Stacks: stacks, Show: g.Show}).Lines(); lines[0].Function != "p:f" {
			t.Errorf("%s: %+v", name, lines)
		}
	}
}
