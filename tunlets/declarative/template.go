// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// sentence is a text with expressions in it, each between ${ and }.
type sentence struct {
	texts  []string // one more than there are expressions
	values []expression
}

// sentence reads one of a field.
func (c *compiler) sentence(what string, to *sentence) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
			c.wrong(n.Line, "%s: want a text", what)
			return
		}
		rest, line := strings.TrimSpace(n.Value), firstLine(n)
		for {
			before, after, found := strings.Cut(rest, "${")
			to.texts = append(to.texts, before)
			if !found {
				return
			}
			text, behind, closed := strings.Cut(after, "}")
			if !closed {
				c.wrong(line, "%s: ${ without }", what)
				return
			}
			to.values = append(to.values, c.compile(what, text, line, aValue()))
			rest = behind
		}
	}
}

// render is the text with the values; what is not known is a question mark.
func (s *sentence) render(k knowledge) string {
	var out strings.Builder
	for i, text := range s.texts {
		out.WriteString(text)
		if i < len(s.values) {
			v, ok := s.values[i].value(k)
			out.WriteString(valueText(v, ok))
		}
	}
	return out.String()
}

func valueText(v any, ok bool) string {
	if !ok {
		return "?"
	}
	if text, isText := v.(string); isText {
		return text
	}
	if truth, isTruth := v.(bool); isTruth {
		return strconv.FormatBool(truth)
	}
	n, _ := asNumber(v)
	digits := 0 // three figures that count
	if a := math.Abs(n); a > 0 && a < 100 && n != math.Trunc(n) {
		digits = max(0, min(6, 2-int(math.Floor(math.Log10(a)))))
	}
	return strconv.FormatFloat(n, 'f', digits, 64)
}

// asNumber is a number as CEL gives it; false for what is none, infinite or NaN.
func asNumber(v any) (float64, bool) {
	var n float64
	switch v := v.(type) {
	case float64:
		n = v
	case int64:
		n = float64(v)
	case uint64:
		n = float64(v)
	default:
		return 0, false
	}
	return n, !math.IsNaN(n) && !math.IsInf(n, 0)
}
