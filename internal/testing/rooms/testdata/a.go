// SPDX-License-Identifier: Apache-2.0

package testdata

import "strings"

type thing struct{ text string }

func (t *thing) first() string { return strings.ToUpper(t.text) + second() }
