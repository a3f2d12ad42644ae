// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Names of the options.
const (
	OptionVariable = "variable"
	OptionObject   = "object"
	OptionSize     = "size"
	OptionPresent  = "present"
	OptionMost     = "most"
	OptionLatency  = "latency"
)

// program is how the program lets itself be changed.
type program struct {
	object, variable string
	size             uint32
	present, most    int64
	latency          time.Duration
}

// options describes them; a value is checked against its type and bounds before it
// reaches Configure.
func options() []sdk.Option {
	return []sdk.Option{
		{Name: OptionVariable, Type: sdk.TextOption, Required: true, Description: "name of the program's variable that says how many items it sends in one message"},
		{Name: OptionObject, Type: sdk.TextOption, Default: "*", Description: "base name of the program or library that has the variable; a pattern"},
		{Name: OptionSize, Type: sdk.IntegerOption, Default: "4", Choices: []string{"1", "2", "4", "8"}, Description: "bytes of the variable"},
		{Name: OptionPresent, Type: sdk.IntegerOption, Default: "1", Min: "1", Max: "1000000", Description: "its value as the program starts; a process with another one is left alone"},
		{Name: OptionMost, Type: sdk.IntegerOption, Default: "256", Min: "2", Max: "1000000", Description: "greatest value that the program bears"},
		{Name: OptionLatency, Type: sdk.DurationOption, Default: "0s", Min: "0s", Max: "1s", Description: "time that a message takes, where it is waited for; else what the kernel needs for it is measured"},
	}
}

// in reports whether a process has the object that is said to have the variable.
func (p *program) in(process sdk.Process) bool {
	is, err := path.Match(p.object, path.Base(process.Executable))
	return is && err == nil || process.Maps(p.object)
}

// configure takes the options; what is not given has its default.
func (p *program) configure(given map[string]string) (err error) {
	values := map[string]string{}
	for _, o := range options() {
		values[o.Name] = o.Default
	}
	for name, value := range given {
		if _, known := values[name]; !known {
			return fmt.Errorf("option %q: unknown", name)
		}
		values[name] = value
	}
	p.object, p.variable = values[OptionObject], values[OptionVariable]
	size, err := strconv.ParseUint(values[OptionSize], 10, 32)
	if err != nil {
		return fmt.Errorf("option %s: %w", OptionSize, err)
	}
	p.size = uint32(size)
	if p.present, err = sdk.ParseInteger(values[OptionPresent]); err != nil {
		return fmt.Errorf("option %s: %w", OptionPresent, err)
	}
	if p.most, err = sdk.ParseInteger(values[OptionMost]); err != nil {
		return fmt.Errorf("option %s: %w", OptionMost, err)
	}
	if p.latency, err = time.ParseDuration(values[OptionLatency]); err != nil {
		return fmt.Errorf("option %s: %w", OptionLatency, err)
	}
	if p.size == 1 && p.most > 127 || p.size == 2 && p.most > 32767 {
		return fmt.Errorf("option %s: %d does not fit into a variable of %d bytes", OptionMost, p.most, p.size)
	}
	return nil
}
