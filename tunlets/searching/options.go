// SPDX-License-Identifier: Apache-2.0

package searching

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/trials"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/search"
)

// Names of the options.
const (
	OptionObject   = "object"
	OptionVariable = "variable"
	OptionProgress = "progress"
	OptionKind     = "kind"
	OptionSize     = "size"
	OptionMin      = "min"
	OptionMax      = "max"
	OptionLog      = "log"
	OptionMethod   = "method"
	OptionTries    = "tries"
	OptionTime     = "time"
)

// The kinds of variables, and the methods.
const (
	kindInteger      = "integer"
	kindReal         = "real"
	methodBayesian   = "bayesian"
	methodNelderMead = "nelder-mead"
)

// program is how the program lets itself be changed, and for how long.
type program struct {
	trials.Variable

	progress string // the function
	method   search.Method
	tries    int
	time     time.Duration
}

// options describes them; a value is checked against its type and bounds before it
// reaches Configure.
func options() []sdk.Option {
	needed := func(name string, kind sdk.OptionType, description string) sdk.Option {
		return sdk.Option{Name: name, Type: kind, Required: true, Description: description}
	}
	return []sdk.Option{
		needed(OptionObject, sdk.TextOption, "base name of the program or library that has the variable and the function; a pattern"),
		needed(OptionVariable, sdk.TextOption, "global variable to find a value for, which the program reads again and again"),
		needed(OptionProgress, sdk.TextOption, "function whose calls are progress: one is the same work whatever the value is"),
		needed(OptionMin, sdk.NumberOption, "least value that the program bears"),
		needed(OptionMax, sdk.NumberOption, "greatest value that the program bears"),
		{Name: OptionKind, Type: sdk.TextOption, Default: kindInteger, Choices: []string{kindInteger, kindReal}, Description: "integer, or real: a double, or a float where the size is 4"},
		{Name: OptionSize, Type: sdk.IntegerOption, Choices: []string{"4", "8"}, Description: "bytes of the variable; 4 for an integer and 8 for a real if not given"},
		{Name: OptionLog, Type: sdk.BooleanOption, Default: "false", Description: "factors between values count, not differences: for sizes"},
		{Name: OptionMethod, Type: sdk.TextOption, Default: methodBayesian, Choices: []string{methodBayesian, methodNelderMead}, Description: "bayesian: few tries, several peaks; nelder-mead: one peak, from the present value"},
		{Name: OptionTries, Type: sdk.IntegerOption, Default: "12", Min: "1", Max: strconv.Itoa(mostTries), Description: "values that are tried at most"},
		{Name: OptionTime, Type: sdk.DurationOption, Default: "10m", Min: "1s", Max: "24h", Description: "time after which no further value is tried"},
	}
}

// mostTries bounds the values that are tried in one run of the program.
const mostTries = 50

// configure takes the options; what is not given has its default. Without those that
// are needed it takes nothing, and configured says so.
func (p *program) configure(given map[string]string) error {
	values, err := sdk.SettleOptions(options(), given)
	if err != nil || len(sdk.Unset(options(), values)) > 0 {
		return err
	}
	*p = program{progress: values[OptionProgress], Variable: trials.Variable{
		Object: values[OptionObject], Size: 4,
		Knob: search.Knob{Name: values[OptionVariable], Kind: search.Integer, Log: values[OptionLog] == "true"},
	}}
	if values[OptionKind] == kindReal {
		p.Kind, p.Size = search.Real, 8
	}
	if values[OptionMethod] == methodNelderMead {
		p.method = search.NelderMead
	}
	if values[OptionSize] != "" {
		size, err := strconv.ParseUint(values[OptionSize], 10, 32)
		if err != nil {
			return fmt.Errorf("option %s: %w", OptionSize, err)
		}
		p.Size = uint32(size)
	}
	var errs [4]error
	p.Min, errs[0] = sdk.ParseNumber(values[OptionMin])
	p.Max, errs[1] = sdk.ParseNumber(values[OptionMax])
	p.tries, errs[2] = strconv.Atoi(values[OptionTries])
	p.time, errs[3] = time.ParseDuration(values[OptionTime])
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return p.check()
}

// check says why there can be no search of this kind.
func (p *program) check() error {
	if _, err := path.Match(p.Object, ""); err != nil {
		return fmt.Errorf("option %s: %w", OptionObject, err)
	}
	const exact = 1 << 53 // what a float64 counts to without a gap
	most := float64(exact)
	switch {
	case p.Kind == search.Real && p.Size == 4:
		most = math.MaxFloat32
	case p.Kind == search.Real:
		most = math.MaxFloat64
	case p.Size == 4:
		most = math.MaxInt32
	}
	if p.Min < -most || p.Max > most {
		return fmt.Errorf("options %s and %s: %v to %v does not fit into a variable of %d bytes", OptionMin, OptionMax, p.Min, p.Max, p.Size)
	}
	if p.Min == p.Max {
		return fmt.Errorf("options %s and %s: there is nothing between %v and %v", OptionMin, OptionMax, p.Min, p.Max)
	}
	_, err := search.New(search.Options{Knobs: []search.Knob{p.Knob}, Tries: p.tries})
	return err
}

// configured says that all is known; a tunlet is not started before, but the
// harness and a replay do.
func (p *program) configured() bool { return p.Name != "" }

// has says whether a process may be part of the program: it runs the object, or
// has it mapped.
func (p *program) has(process sdk.Process) bool {
	ok, err := path.Match(p.Object, path.Base(process.Executable))
	return ok && err == nil || process.Maps(p.Object)
}
