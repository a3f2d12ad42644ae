// SPDX-License-Identifier: Apache-2.0

// Package htmlpage is what the pages for a browser have in common: one file each that needs
// nothing else and runs nothing, with one style and pictures drawn in one way. Its functions
// are safe for concurrent use.
package htmlpage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the style
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode"
)

//go:embed page.css
var style string

// Write executes a page's form. Characters that are not shown but obeyed are replaced, which names
// may have: by a browser that changes the order of what it shows, or a terminal that the page's
// text is shown on.
func Write(w io.Writer, form *template.Template, data any) error { return form.Execute(plain{w}, data) }

// plain takes whole pieces of text, as templates write them.
type plain struct{ to io.Writer }

// Write implements io.Writer.
func (p plain) Write(text []byte) (int, error) {
	_, err := p.to.Write(bytes.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text))
	return len(text), err
}

// Functions are those that every page's form has: style and policy for its head, use for the
// bar of a share.
func Functions() template.FuncMap {
	return template.FuncMap{
		"style":  func() template.CSS { return template.CSS(style) },
		"policy": policy,
		"use":    Use,
	}
}

// policy lets a page have its own style, and nothing else: nothing is fetched, nothing is
// run.
func policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// Picture is an SVG of a size in its own units, with its description for who does not see it
// and a line below. The content is escaped already.
func Picture(width, height int, description, content string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %d %d" role="img" aria-label="`, width, height+1) +
		template.HTMLEscapeString(description) + `">` + content +
		fmt.Sprintf(`<line class="base" x1="0" x2="%d" y1="%d" y2="%d"/></svg>`, width, height, height))
}

// Use is the bar of a share, 0 to 1; more is shown as 1.
func Use(share float64) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="use" viewBox="0 0 200 10" role="img" aria-label="%.0f %% used"><rect class="track" width="200" height="10"/>`+
		`<rect class="bar" width="%.1f" height="10"/></svg>`, 100*share, min(max(share, 0), 1)*200))
}

// Over is something over time, drawn as an area.
type Over struct {
	// Width and Height are of the picture, Seconds the time that it spans, Top what is at its
	// upper edge.
	Width, Height int
	Seconds, Top  float64
	Steps         []Step
	Marks         []Mark
}

// Step is a value from the end of the step before to its own end, seconds.
type Step struct {
	End, Value float64
	// Text is what it says to a mouse.
	Text string
}

// Mark is a moment with a number.
type Mark struct {
	Seconds float64
	Number  int
	Text    string
}

// top is room above the highest value, for the numbers of the marks.
const top = 14

// Draw draws it.
func (o *Over) Draw(description string) template.HTML {
	width, height := float64(o.Width), float64(o.Height)
	x := func(seconds float64) float64 { return min(max(seconds/max(o.Seconds, 1e-9), 0), 1) * width }
	y := func(value float64) float64 { return height - min(value/max(o.Top, 1e-9), 1)*(height-top) }
	var out strings.Builder
	fmt.Fprintf(&out, `<path class="area" d="M0 %.1f`, height)
	for i, s := range o.Steps {
		from := 0.0
		if i > 0 {
			from = o.Steps[i-1].End
		}
		fmt.Fprintf(&out, "L%.1f %.1fL%.1f %.1f", x(from), y(s.Value), x(s.End), y(s.Value))
	}
	if n := len(o.Steps); n > 0 {
		fmt.Fprintf(&out, "L%.1f %.1f", x(o.Steps[n-1].End), height)
	}
	out.WriteString(`Z"/>`)
	from := 0.0
	for _, s := range o.Steps {
		fmt.Fprintf(&out, `<rect fill="transparent" x="%.1f" y="0" width="%.1f" height="%d"><title>%s</title></rect>`, x(from), x(s.End)-x(from), o.Height, template.HTMLEscapeString(s.Text))
		from = s.End
	}
	for _, m := range o.Marks {
		fmt.Fprintf(&out, `<line class="mark" x1="%[1]f" x2="%[1]f" y1="0" y2="%[2]d"><title>%[3]s</title></line><text class="number-of-mark" x="%.1[4]f" y="10">%[5]d</text>`,
			x(m.Seconds), o.Height, template.HTMLEscapeString(m.Text), x(m.Seconds)+3, m.Number)
	}
	return Picture(o.Width, o.Height, description, out.String())
}
