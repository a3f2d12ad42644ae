// SPDX-License-Identifier: Apache-2.0

package report

// notes writes remarks, those that are the same of several processes once.
func (p *printer) notes(remarks []Remark) {
	count := map[string]int{}
	for _, m := range remarks {
		count[m.From+": "+m.Text]++
	}
	for _, m := range remarks {
		text := m.From + ": " + m.Text
		if n := count[text]; n > 0 {
			p.line(2, dim, "note", "%s%s", text, times(n))
			delete(count, text)
		}
	}
}
