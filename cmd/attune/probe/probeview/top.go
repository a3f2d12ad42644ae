// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"bytes"
	"strconv"

	"github.com/attune-hpc/attune/internal/hits"
)

// clearScreen has a terminal write from its upper left corner on.
const clearScreen = "\x1b[H\x1b[2J"

// top leaves the keys with the most hits of each point, as many as are wanted, and adds
// up the others.
func (p *Printer) top(rows []row) (out []row) {
	shown := make(map[*point]int)
	rest := make(map[*point]int) // where the row of the others is
	for _, r := range rows {
		if !r.key.Has || p.options.Top == 0 || shown[r.at] < p.options.Top {
			shown[r.at]++
			out = append(out, r)
			continue
		}
		at, begun := rest[r.at]
		if !begun {
			at, rest[r.at] = len(out), len(out)
			sum := &hits.Sum{Signed: r.at.signed()}
			out = append(out, row{at: r.at, sum: sum, seconds: r.seconds, part: r.part})
		}
		out[at].sum.Merge(r.sum)
		out[at].more++
	}
	return out
}

// cut cuts the lines of a screen to its width: one that goes on in the next row moves
// all others.
func (p *Printer) cut(table []byte) []byte {
	if !p.options.Screen || p.options.Columns == nil {
		return table
	}
	width := p.options.Columns()
	if width < 1 {
		return table // not known
	}
	var out bytes.Buffer
	for line := range bytes.Lines(table) {
		if runes := []rune(string(bytes.TrimRight(line, "\n"))); len(runes) > width {
			line = []byte(string(runes[:width-1]) + "…\n")
		}
		out.Write(line)
	}
	return out.Bytes()
}

// perSecond writes a rate in three figures: 674, 18.2k, 3.4M.
func perSecond(rate float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if rate < 999.5 || unit == "G" {
			return strconv.FormatFloat(rate, 'g', max(3, len(strconv.Itoa(int(rate)))), 64) + unit
		}
		rate /= 1000
	}
	return ""
}
