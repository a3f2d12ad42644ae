// SPDX-License-Identifier: Apache-2.0

package usdt

import (
	"strconv"
	"strings"
)

// x86 reads an operand in the AT&T syntax: $5, %edi, -16(%rbp), 8(%rax,%rbx,4).
// Operands that name a symbol or a segment are not understood.
func (o Operand) x86(text string) (Operand, bool) {
	var ok bool
	switch {
	case strings.HasPrefix(text, "$"):
		o.Kind = Constant
		o.Value, ok = integer(text[1:])
	case strings.HasPrefix(text, "%"):
		o.Kind = Register
		o.Base, ok = x86Register(text)
	case strings.HasSuffix(text, ")"):
		o.Kind = Memory
		ok = o.x86Memory(text)
	}
	return o, ok
}

// x86Memory reads DISPLACEMENT(BASE,INDEX,SCALE); all but one may be missing.
func (o *Operand) x86Memory(text string) (ok bool) {
	displacement, inside, found := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if !found {
		return false
	}
	if displacement != "" {
		if o.Value, ok = integer(displacement); !ok {
			return false
		}
	}
	parts := strings.Split(inside, ",")
	if len(parts) > 3 || len(parts) == 1 && strings.TrimSpace(parts[0]) == "" {
		return false
	}
	if base := strings.TrimSpace(parts[0]); base != "" {
		if o.Base, ok = x86Register(base); !ok {
			return false
		}
	}
	if len(parts) == 1 {
		return true
	}
	if o.Index, ok = x86Register(strings.TrimSpace(parts[1])); !ok {
		return false
	}
	o.Scale = 1
	if len(parts) == 3 {
		scale, err := strconv.Atoi(strings.TrimSpace(parts[2]))
		o.Scale, ok = scale, err == nil && (scale == 1 || scale == 2 || scale == 4 || scale == 8)
	}
	return ok
}

// x86Register returns the full name of %edi and the like. %ah and its
// relatives are not understood: they are no lowest bytes.
func x86Register(text string) (string, bool) {
	name, ok := strings.CutPrefix(text, "%")
	if !ok {
		return "", false
	}
	if number, ok := strings.CutPrefix(name, "xmm"); ok {
		return name, numbered(number, 31)
	}
	if number, ok := strings.CutPrefix(name, "r"); ok {
		if number = strings.TrimRight(number, "bwd"); numbered(number, 15) && len(name)-len(number) <= 2 && number != "0" {
			n, _ := strconv.Atoi(number) // it is numbered
			return "r" + number, n >= 8
		}
	}
	for _, full := range [...]string{"ax", "bx", "cx", "dx"} {
		switch name {
		case "r" + full, "e" + full, full, full[:1] + "l":
			return "r" + full, true
		}
	}
	for _, full := range [...]string{"si", "di", "bp", "sp"} {
		switch name {
		case "r" + full, "e" + full, full, full + "l":
			return "r" + full, true
		}
	}
	return "", false
}

// numbered says whether a text is a register number up to last.
func numbered(text string, last int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0 && n <= last && strconv.Itoa(n) == text
}
