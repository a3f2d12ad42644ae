// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Variable describes a variable without symbol, and how the object that has it
// is told its value in a process of ours. Exactly one of Environment, Call and
// Script is set.
type Variable struct {
	// Name in the object's source, e.g. "gomp_spin_count_var".
	Name string
	// Size in bytes: 4 or 8. The variable is aligned to it.
	Size uint32
	// Markers are values to tell, two at least, that nothing else is likely to
	// have.
	Markers []uint64

	// Environment is the variable that the object reads when it is loaded; its
	// value is the marker in decimal.
	Environment string
	// Call is a function of the object that is called with the arguments, the
	// marker in the place of each [Marker].
	Call      string
	Arguments []int64
	// Script is what the program of the process, an interpreter with a base name
	// that matches Program, is started with; %d is the marker. It says "ready"
	// and waits for the end of its input.
	Script  []string
	Program string
	// Flag is set for a variable that the call turns from 0 to 1, instead of to
	// a marker, no more than Near bytes behind the variable of that name, which
	// is found first. Markers are still what the call is made with.
	Flag *Neighbour
}

// Neighbour is a variable found already, beside which another is looked for.
type Neighbour struct {
	// Variable that is found first, in the same object.
	Variable Variable
	// Within is how many bytes behind it are searched.
	Within uint64
}

// Marker stands for the marker in a call's arguments.
const Marker = math.MinInt64

// encode is the marker as the variable holds it.
func (v Variable) encode(marker uint64) []byte {
	if v.Size == 4 {
		return binary.LittleEndian.AppendUint32(nil, uint32(marker))
	}
	return binary.LittleEndian.AppendUint64(nil, marker)
}

// arguments of the program that is told the marker.
func (v Variable) arguments(object string, marker uint64) (arguments []string) {
	if v.Script != nil {
		for _, word := range v.Script {
			arguments = append(arguments, strings.ReplaceAll(word, "%d", strconv.FormatUint(marker, 10)))
		}
		return arguments
	}
	arguments = []string{object}
	if v.Call == "" {
		return arguments
	}
	arguments = append(arguments, v.Call)
	for _, a := range v.Arguments {
		if a == Marker {
			a = int64(marker)
		}
		arguments = append(arguments, strconv.FormatInt(a, 10))
	}
	return arguments
}

func (v Variable) environment(marker uint64) []string {
	if v.Environment == "" {
		return []string{}
	}
	return []string{fmt.Sprintf("%s=%d", v.Environment, marker)}
}
