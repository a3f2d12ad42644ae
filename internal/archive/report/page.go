// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed" // the page's form
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/htmlpage"
	"github.com/attune-hpc/attune/internal/quantity"
)

//go:embed page.html
var form string

// page is the form, filled in by a Report. What others chose is escaped by html/template.
var page = template.Must(template.New("page").Funcs(htmlpage.Functions()).Funcs(template.FuncMap{
	"bytes": quantity.Bytes, "seconds": quantity.Seconds, "field": quantity.Field,
	"day": func(t time.Time) string { return t.Local().Format(time.DateTime) },
	"percent": func(v float64) string {
		return fmt.Sprintf("%.0f %%", 100*v)
	},
	"short": func(id string) string { return id[:8] }, "next": nextText,
	"histogram": drawHistogram, "line": drawLine, "useText": Use.text,
	"two": func(v *float64) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf("%.2f", *v)
	},
	"deviation": func(c Chart) string {
		if c.Deviation == nil {
			return "–"
		}
		return c.say(*c.Deviation)
	},
	"logarithmic": func(c Chart) bool {
		last := len(c.Histogram) - 1
		first, second := c.Histogram[0], c.Histogram[last]
		return second.To-second.From > 1.5*(first.To-first.From)
	},
}).Parse(form))

// WriteHTML writes the report as one page.
func (r *Report) WriteHTML(w io.Writer) error { return htmlpage.Write(w, page, r) }

// Size of the pictures, in their own units.
const (
	pictureWidth  = 320
	pictureHeight = 90
	// pictureTop is room above the highest bar.
	pictureTop = 6
)

// drawHistogram draws bars, with what each says for a mouse and for a reader of screens.
func drawHistogram(c Chart) template.HTML {
	most := 1
	for _, b := range c.Histogram {
		most = max(most, b.Tasks)
	}
	var out strings.Builder
	width := float64(pictureWidth) / float64(len(c.Histogram))
	for i, b := range c.Histogram {
		height := float64(b.Tasks) / float64(most) * (pictureHeight - pictureTop)
		if b.Tasks > 0 {
			height = max(height, 1.5)
		}
		fmt.Fprintf(&out, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`,
			float64(i)*width+0.5, pictureHeight-height, max(width-1, 1), height, template.HTMLEscapeString(c.binText(b)))
	}
	return picture(fmt.Sprintf("%s: from %s to %s, median %s", c.Title, c.say(c.Least), c.say(c.Most), c.say(c.Quantiles[2].Value)), out.String())
}

func (c Chart) binText(b archive.Bin) string {
	return fmt.Sprintf("%s to %s: %d tasks", c.say(b.From), c.say(b.To), b.Tasks)
}

// timePicture is a chart over time, and what it shows from where to where.
type timePicture struct {
	Picture    template.HTML
	From, To   time.Time
	Top, Asked float64 // Asked is 0 where it is not on the picture
}

// drawLine draws tasks over the time of their ends, from nothing up, and a line for what
// was asked for where that is not far above. It is nil for a single task.
func drawLine(c Chart) *timePicture {
	if len(c.Over) < 2 {
		return nil
	}
	p := &timePicture{From: c.From, To: c.To, Top: max(c.Most, 1e-9)}
	if c.Asked > 0 && c.Asked < 4*c.Most {
		p.Asked, p.Top = c.Asked, max(p.Top, c.Asked)
	}
	span := max(p.To.Sub(p.From).Seconds(), 1)
	y := func(v float64) float64 { return pictureHeight - v/p.Top*(pictureHeight-pictureTop) }
	var out strings.Builder
	if p.Asked > 0 {
		fmt.Fprintf(&out, `<line class="asked" x1="0" x2="%d" y1="%.1f" y2="%.1f"/>`, pictureWidth, y(c.Asked), y(c.Asked))
	}
	for _, point := range c.Over {
		class := "task"
		if point.Failed {
			class = "failed"
		}
		fmt.Fprintf(&out, `<circle class="%s" cx="%.1f" cy="%.1f" r="2"/>`, class, 3+point.End.Sub(p.From).Seconds()/span*(pictureWidth-6), y(point.Value))
	}
	p.Picture = picture(c.Title+" over time: at most "+c.say(c.Most), out.String())
	return p
}

// picture is one of them. Its content is escaped already.
func picture(description, content string) template.HTML {
	return htmlpage.Picture(pictureWidth, pictureHeight, description, content)
}
