// SPDX-License-Identifier: Apache-2.0

package flame

import (
	"cmp"
	_ "embed" // the page's form
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/htmlpage"
)

//go:embed page.html
var pageForm string

// Form defines the template "flame", which draws a [Graph], for other pages.
//
//go:embed graph.html
var Form string

var form = template.Must(template.New("page").Funcs(htmlpage.Functions()).Parse(pageForm + Form))

// Page is a page for a browser, which needs nothing else and runs nothing.
type Page struct {
	// Title is what was looked at, Remark when and by what.
	Title, Remark string
	Graphs        []*Graph
}

// Graph is a flame graph of one point.
type Graph struct {
	// Title says which stacks these are.
	Title string
	// Show writes a weight with its unit.
	Show   func(weight uint64) string
	Stacks []Stack
	// Missing says what is in none of the stacks; empty: nothing is.
	Missing string
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error { return htmlpage.Write(w, form, p) }

// All is the weight of all stacks.
func (g *Graph) All() string { return g.Show(tree(g.Stacks).weight) }

// Size of the picture, in its own units.
const (
	width      = 1200
	rowHeight  = 18
	charWidth  = 6.7
	leastWidth = 1.0 // of what is drawn
	classes    = 6   // of colours, in page.css
)

// Picture draws the graph, with the outermost functions above.
func (g *Graph) Picture() template.HTML {
	d := drawing{graph: g, root: tree(g.Stacks), classes: g.classes()}
	x := 0.0
	for _, c := range d.root.sorted() {
		x = d.box(c, x, 0)
	}
	return htmlpage.Picture(width, max(d.rows, 1)*rowHeight, "flame graph of "+g.Title, d.out.String())
}

// classes gives the objects with the most a colour each.
func (g *Graph) classes() map[string]int {
	all := make(map[string]int)
	for _, o := range g.Objects() {
		all[o.Name] = o.Class
	}
	return all
}

// Object is a program or a library, with its colour.
type Object struct {
	Name  string
	Class int
}

// Objects lists the objects, those with the most first.
func (g *Graph) Objects() []Object {
	weights := make(map[string]uint64)
	for _, s := range g.Stacks {
		for _, f := range s.Frames {
			weights[object(f)] += s.Weight
		}
	}
	names := slices.SortedFunc(maps.Keys(weights), func(a, b string) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b))
	})
	out := make([]Object, 0, len(names))
	for i, name := range names {
		out = append(out, Object{cmp.Or(name, "others"), min(i, classes-1)})
	}
	return out
}

// drawing is a graph that is being drawn.
type drawing struct {
	graph   *Graph
	root    *call
	classes map[string]int
	rows    int
	out     strings.Builder
}

// box draws a function and what it calls, and returns where its right edge is.
func (d *drawing) box(c *call, x float64, row int) float64 {
	wide := share(c.weight, d.root.weight) * width
	if wide < leastWidth {
		return x + wide
	}
	d.rows = max(d.rows, row+1)
	y := row * rowHeight
	about := fmt.Sprintf("%s: %s, %.3g %%", c.name, d.graph.Show(c.weight), 100*share(c.weight, d.root.weight))
	fmt.Fprintf(&d.out, `<g><title>%s</title><rect class="flame flame%d" x="%.1f" y="%d" width="%.1f" height="%d"/>`,
		template.HTMLEscapeString(about), d.classes[cmp.Or(object(c.name), "others")], x, y, wide-.5, rowHeight-1)
	if text := fit(function(c.name), wide); text != "" {
		fmt.Fprintf(&d.out, `<text class="flame-name" x="%.1f" y="%d">%s</text>`, x+3, y+13, template.HTMLEscapeString(text))
	}
	d.out.WriteString("</g>")
	left := x
	for _, called := range c.sorted() {
		left = d.box(called, left, row+1)
	}
	return x + wide
}

// fit is as much of a name as a box has room for.
func fit(name string, wide float64) string {
	room := int((wide - 6) / charWidth)
	runes := []rune(name)
	switch {
	case len(runes) <= room:
		return name
	case room < 3:
		return ""
	}
	return string(runes[:room-1]) + "…"
}

// Line is a function in the table below a graph.
type Line struct{ Function, Direct, DirectShare, All, AllShare string }

// tableLines is how many functions the table has.
const tableLines = 20

// direct is the frame of a stack that called what was looked at: the last one but one
// where all stacks end in the same function, which is that, else the last one.
func (g *Graph) direct() func(frames []string) string {
	ends := make(map[string]bool)
	for _, s := range g.Stacks {
		ends[at(s.Frames, 1)] = true
	}
	back := 1
	if len(ends) == 1 {
		back = 2
	}
	return func(frames []string) string { return at(frames, back) }
}

// at is a frame from the end; empty: there is none.
func at(frames []string, back int) string {
	if back > len(frames) {
		return ""
	}
	return frames[len(frames)-back]
}

// Lines lists the functions, those first that were seen most often as the caller of what
// was looked at.
func (g *Graph) Lines() (lines []Line) {
	type sum struct{ own, all uint64 }
	sums, direct := make(map[string]*sum), g.direct()
	var total uint64
	for _, s := range g.Stacks {
		total += s.Weight
		for i, f := range s.Frames {
			if sums[f] == nil {
				sums[f] = &sum{}
			}
			if !slices.Contains(s.Frames[:i], f) { // of a recursion once
				sums[f].all += s.Weight
			}
		}
		if caller := sums[direct(s.Frames)]; caller != nil {
			caller.own += s.Weight
		}
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b].own, sums[a].own), cmp.Compare(sums[b].all, sums[a].all), cmp.Compare(a, b))
	})
	percent := func(part uint64) string { return fmt.Sprintf("%.3g %%", 100*share(part, total)) }
	for _, name := range names[:min(len(names), tableLines)] {
		s := sums[name]
		lines = append(lines, Line{name, g.Show(s.own), percent(s.own), g.Show(s.all), percent(s.all)})
	}
	return lines
}
