// SPDX-License-Identifier: Apache-2.0

package core

import "strings"

// area is what one objective is about: a tunlet's scope.
type area struct{ tunlet, scope string }

// name is how a tunlet calls a proposal.
type name struct{ tunlet, id string }

// kinKey names a change, wherever in a program it is made.
type kinKey struct{ advice, program string }

// knob is what has one owner.
type knob struct {
	name    string
	process uint64
}

// placeMark stands between the name of a knob and the place, of several in a
// process, that is changed: "thread.affinity@4711", "socket.tcp_nodelay@7". A
// tunlet declares the knob, and changes what of it it likes.
const placeMark = "@"

// whole is the knob that k is one place of; k itself if it is not of one place.
func (k knob) whole() knob {
	name, _, _ := strings.Cut(k.name, placeMark)
	return knob{name, k.process}
}
