// SPDX-License-Identifier: Apache-2.0

package searching

import (
	"fmt"
	"math"
	"path"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/trials"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/search"
)

// program is how the program lets itself be changed, and for how long.
type program struct {
	trials.Variable

	progress string // the function
	method   search.Method
	tries    int
	time     time.Duration
}

// Values that the code asks for.
const (
	kindReal         = "real"
	methodNelderMead = "nelder-mead"
)

// options say what the program is; see [sdk.OptionsOf].
type options struct {
	Object   string        `option:"object" required:"true" doc:"base name of the program or library that has the variable and the function; a pattern"`
	Variable string        `option:"variable" required:"true" doc:"global variable to find a value for, which the program reads again and again"`
	Progress string        `option:"progress" required:"true" doc:"function whose calls are progress: one is the same work whatever the value is"`
	Min      float64       `option:"min" required:"true" doc:"least value that the program bears"`
	Max      float64       `option:"max" required:"true" doc:"greatest value that the program bears"`
	Kind     string        `option:"kind" default:"integer" choices:"integer,real" doc:"integer, or real: a double, or a float where the size is 4"`
	Size     int64         `option:"size" choices:"4,8" doc:"bytes of the variable; 4 for an integer and 8 for a real if not given"`
	Log      bool          `option:"log" default:"false" doc:"factors between values count, not differences: for sizes"`
	Method   string        `option:"method" default:"bayesian" choices:"bayesian,nelder-mead" doc:"bayesian: few tries, several peaks; nelder-mead: one peak, from the present value"`
	Tries    int64         `option:"tries" default:"12" min:"1" max:"50" doc:"values that are tried at most"`
	Time     time.Duration `option:"time" default:"10m" min:"1s" max:"24h" doc:"time after which no further value is tried"`
}

// mostTries bounds the values that are tried in one run of the program, as its option does.
const mostTries = 50

// configure takes the options, which are settled. Without those that are needed it takes
// nothing, and configured says so.
func (p *program) configure(given map[string]string) error {
	o, err := sdk.ReadOptions[options](given)
	if err != nil || len(sdk.Unset(sdk.OptionsOf[options](), given)) > 0 {
		return err
	}
	*p = program{progress: o.Progress, tries: int(o.Tries), time: o.Time, Variable: trials.Variable{
		Object: o.Object, Size: 4,
		Knob: search.Knob{Name: o.Variable, Kind: search.Integer, Min: o.Min, Max: o.Max, Log: o.Log},
	}}
	if o.Kind == kindReal {
		p.Kind, p.Size = search.Real, 8
	}
	if o.Size != 0 {
		p.Size = uint32(o.Size)
	}
	if o.Method == methodNelderMead {
		p.method = search.NelderMead
	}
	return p.check()
}

// check says why there can be no search of this kind.
func (p *program) check() error {
	if _, err := path.Match(p.Object, ""); err != nil {
		return fmt.Errorf("option object: %w", err)
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
		return fmt.Errorf("options min and max: %v to %v does not fit into a variable of %d bytes", p.Min, p.Max, p.Size)
	}
	if p.Min == p.Max {
		return fmt.Errorf("options min and max: there is nothing between %v and %v", p.Min, p.Max)
	}
	_, err := search.New(search.Options{Knobs: []search.Knob{p.Knob}, Tries: p.tries})
	return err
}

// configured says that all is known; a tunlet is not started before, but the
// harness and a replay do.
func (p *program) configured() bool { return p.Name != "" }
