// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Text is a policy as one process hands it to another.
type Text struct {
	// None says that there is no file.
	None bool
	// Path and Data are of the file.
	Path string
	Data []byte
	// Users are those that its names stand for: another process may not be able to ask.
	Users map[string][]uint32
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
	return Text{Path: p.path, Data: p.data, Users: p.users}
}

// Equal says whether the same policy is made of both.
func (t Text) Equal(other Text) bool {
	return t.None == other.None && t.Invalid == other.Invalid && t.Path == other.Path &&
		bytes.Equal(t.Data, other.Data) && maps.EqualFunc(t.Users, other.Users, slices.Equal)
}

// Policy returns the policy. Whatever cannot be read as one denies everything.
func (t Text) Policy() *Policy {
	switch {
	case t.None:
		return nil
	case t.Invalid != "":
		return Denying(errors.New(t.Invalid))
	}
	p, err := parse(t.Path, t.Data, directory{known: t.Users, ask: func(name string) ([]uint32, error) {
		return nil, fmt.Errorf("nobody has said who %s is", name)
	}})
	if err != nil {
		return Denying(err)
	}
	return p
}
