// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
)

// ErrAction wraps every reason why an action makes no sense, on whatever
// function.
var ErrAction = errors.New("action cannot be made")

// maxText is the longest text argument.
const maxText = 255

// most is how many parameters of a class are in registers.
func (c Class) most() int {
	switch c {
	case Integer:
		return len(integerRegisters)
	case Real:
		return realRegisters
	}
	return 0
}

func (c Class) inRegister(number int) error {
	if number < 0 || number >= c.most() {
		return fmt.Errorf("parameter %d of its class: the first %d are in registers", number, c.most())
	}
	return nil
}

func (r Replace) check() error {
	if r.Target == 0 {
		return errors.New("no function to go to")
	}
	return nil
}

func (r Remove) check() error {
	for _, caller := range r.Callers {
		if caller.End <= caller.Start {
			return errors.New("a caller without code")
		}
	}
	return nil
}

func (p Parameter) check() error {
	if err := p.Value.Class.inRegister(p.Number); err != nil {
		return err
	}
	switch {
	case p.Old == nil:
	case p.Value.Class == Real && p.Width != 4 && p.Width != 8:
		return fmt.Errorf("a real of %d bytes", p.Width)
	case p.Width != 1 && p.Width != 2 && p.Width != 4 && p.Width != 8:
		return fmt.Errorf("a parameter of %d bytes", p.Width)
	}
	return nil
}

func (c Call) check() error {
	if c.Target == 0 {
		return errors.New("no function to call")
	}
	passed := map[Class]int{}
	for _, arg := range c.Arguments {
		if err := arg.check(c.AtExit); err != nil {
			return err
		}
		class := arg.Class
		if arg.Source == Text {
			class = Integer
		}
		if passed[class]++; passed[class] > class.most() {
			return fmt.Errorf("more than %d arguments of one class", class.most())
		}
	}
	return nil
}

func (a Argument) check(atExit bool) error {
	switch {
	case a.Source < Constant || a.Source > Text || a.Class < Integer || a.Class > None:
		return errors.New("an argument of unknown kind")
	case a.Source == Text && len(a.Text) > maxText:
		return fmt.Errorf("a text of %d bytes: at most %d", len(a.Text), maxText)
	case a.Source != Text && a.Class == None:
		return errors.New("an argument that is no value")
	case a.Source == FromParameter && atExit:
		return errors.New("a parameter is not known any more at the exit")
	case a.Source == FromResult && (!atExit || a.Number != 0):
		return errors.New("a result is known at the exit only")
	case a.Source == FromParameter:
		return a.Class.inRegister(a.Number)
	}
	return nil
}
