// SPDX-License-Identifier: Apache-2.0

package policy

import "errors"

// Text is a policy as one process hands it to another.
type Text struct {
	// None says that there is no file.
	None bool
	// Path and Data are of the file.
	Path string
	Data []byte
	// Invalid is why the file cannot be used.
	Invalid string
}

// Text returns what [Text.Policy] makes the same policy of.
func (p *Policy) Text() Text {
	switch {
	case p == nil:
		return Text{None: true}
	case p.invalid != nil:
		return Text{Invalid: p.invalid.Error()}
	}
	return Text{Path: p.path, Data: p.data}
}

// Policy returns the policy. Whatever cannot be read as one denies everything.
func (t Text) Policy() *Policy {
	switch {
	case t.None:
		return nil
	case t.Invalid != "":
		return Denying(errors.New(t.Invalid))
	}
	p, err := Parse(t.Path, t.Data)
	if err != nil {
		return Denying(err)
	}
	return p
}
