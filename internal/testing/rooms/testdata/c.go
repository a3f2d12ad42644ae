// SPDX-License-Identifier: Apache-2.0

package testdata

type third struct{}

func (third) name() string { return (&thing{}).last() }

func (t *thing) last() string { return t.first() }
