// SPDX-License-Identifier: Apache-2.0

package member

import "sync/atomic"

// standing is what the Analyzer knows of a member. The zero value is unheard.
type standing struct{ is atomic.Int32 }

const (
	unheard int32 = iota
	told
	hushed
)

// Told says whether the Analyzer knows of the member, at the present connection.
func (s *standing) Told() bool { return s.is.Load() == told }

// Known says whether an Analyzer knew of it at some connection.
func (s *standing) Known() bool { return s.is.Load() != unheard }

// Tell notes that the Analyzer knows of it.
func (s *standing) Tell() { s.is.Store(told) }

// Hush notes that there is no Analyzer any more.
func (s *standing) Hush() { s.is.CompareAndSwap(told, hushed) }
