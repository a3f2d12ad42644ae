// SPDX-License-Identifier: Apache-2.0

package usdt

import "strings"

// arm reads an operand of arm64: 5, w0, [sp], [x0, 16], [x0, x1, lsl 3].
func (o Operand) arm(text string) (Operand, bool) {
	if inside, ok := strings.CutPrefix(text, "["); ok {
		inside, ok = strings.CutSuffix(inside, "]")
		o.Kind = Memory
		return o, ok && o.armMemory(strings.Split(inside, ","))
	}
	if register, ok := armRegister(text); ok {
		o.Kind, o.Base = Register, register
		return o, true
	}
	var ok bool
	o.Kind = Constant
	o.Value, ok = integer(strings.TrimPrefix(text, "#"))
	return o, ok
}

func (o *Operand) armMemory(parts []string) (ok bool) {
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if o.Base, ok = armAddress(parts[0]); !ok || len(parts) == 1 {
		return ok
	}
	if o.Index, ok = armAddress(parts[1]); !ok {
		o.Value, ok = integer(strings.TrimPrefix(parts[1], "#"))
		return ok && len(parts) == 2
	}
	o.Scale = 1
	if len(parts) == 3 {
		o.Scale, ok = map[string]int{"lsl 0": 1, "lsl 1": 2, "lsl 2": 4, "lsl 3": 8}[strings.Replace(parts[2], "#", "", 1)]
	}
	return ok && len(parts) <= 3
}

// armAddress is a register that can hold an address: all 64 bits of it.
func armAddress(name string) (string, bool) {
	full, ok := armRegister(name)
	return full, ok && full == name && full[0] != 'v'
}

// armRegister returns the full name of a register: x for w, v for the parts of
// a vector register.
func armRegister(name string) (string, bool) {
	switch name {
	case "sp", "wsp":
		return "sp", true
	case "xzr", "wzr":
		return "xzr", true
	case "":
		return "", false
	}
	switch number := name[1:]; name[0] {
	case 'x', 'w':
		return "x" + number, numbered(number, 30)
	case 'v', 'q', 'd', 's', 'h', 'b':
		return "v" + number, numbered(number, 31)
	}
	return "", false
}
