// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// explainEvery is how often an expression is explained that gives the same as before.
const explainEvery = time.Second

// explained is what was said last of one expression.
type explained struct {
	at      time.Time
	outcome string
}

// explain tells the file's author what an expression gives in a process and by which
// values, each time that it gives something else, and once a second.
func (w *watch) explain(h *sdk.Host, what string, e *expression, k knowledge) {
	if !h.Explains() || !e.given() {
		return
	}
	v, ok := e.value(k)
	outcome := valueText(v, ok)
	if !ok {
		outcome = "unknown"
	}
	last := w.explained[what]
	if _, isTruth := v.(bool); h.Now().Sub(last.at) < explainEvery && (last.outcome == outcome || !isTruth && ok) {
		return
	}
	if w.explained == nil {
		w.explained = map[string]explained{}
	}
	w.explained[what] = explained{h.Now(), outcome}
	h.Explain(w.handle(), "%s is %s: %s%s", what, outcome, strings.Join(strings.Fields(e.text), " "), e.by(k))
}

// by lists the values by which an expression gives what it does.
func (e *expression) by(k knowledge) string {
	var out []string
	for _, name := range e.names {
		if n, ok := e.vocabulary[name]; ok {
			out = append(out, name+" = "+shown(n.get(k)))
		}
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	return "; " + strings.Join(slices.Compact(out), ", ")
}

// shown is a value for people; of a list, how many items it has.
func shown(v any, ok bool) string {
	if list, isList := v.([]*item); ok && isList {
		return fmt.Sprintf("%d items", len(list))
	}
	if _, isNumber := asNumber(v); ok && !isNumber {
		return fmt.Sprint(v)
	}
	if !ok {
		return "unknown"
	}
	return valueText(v, ok)
}
