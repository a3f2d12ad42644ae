// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/proto/attune/number"
)

// Limit is the most that a command may take of something.
type Limit struct {
	// Field is the account's, e.g. memory.resident_peak_bytes; one of [LimitFields].
	Field string
	// Max is what the field may have at most, in its unit.
	Max float64
	// Soft says that an excess is only told of; else all processes are ended.
	Soft bool
}

// limitNames are short names of fields.
var limitNames = map[string]string{
	"wall": "wall_seconds", "cpu": "cpu_seconds", "cores": "cores_peak",
	"processes": "processes.peak", "memory": "memory.resident_peak_bytes", "anonymous": "memory.anonymous_peak_bytes",
	"virtual": "memory.virtual_peak_bytes", "cgroup": "memory.cgroup_peak_bytes",
	"disk": diskBytes, "total_files": diskFiles,
	"read": "io.read_bytes", "written": "io.written_bytes",
}

// LimitFields returns the fields that can be limited, and the short names of some.
func LimitFields() (fields []string) {
	var r reading
	for name := range r.values() {
		fields = append(fields, name)
	}
	for name := range limitNames {
		fields = append(fields, name)
	}
	slices.Sort(fields)
	return fields
}

// ParseLimit reads a limit such as memory=2GB, wall=10m or io.read_bytes=1000.
func ParseLimit(text string) (Limit, error) {
	field, value, found := strings.Cut(text, "=")
	if !found {
		return Limit{}, fmt.Errorf("%q is not FIELD=VALUE", text)
	}
	if long, short := limitNames[field]; short {
		field = long
	}
	var r reading
	if _, known := r.values()[field]; !known {
		return Limit{}, fmt.Errorf("%q cannot be limited, but: %s", field, strings.Join(LimitFields(), ", "))
	}
	limit := Limit{Field: field}
	var err error
	switch unitOf(field) {
	case "seconds":
		limit.Max, err = parseSeconds(value)
	case "bytes":
		var bytes uint64
		bytes, err = number.ParseBytes(value)
		limit.Max = float64(bytes)
	default:
		limit.Max, err = number.Parse(value)
	}
	if err != nil || limit.Max < 0 {
		return Limit{}, fmt.Errorf("%q is no value for %s, as 1.5 is, or 10m of time, or 2GB of bytes", value, field)
	}
	return limit, nil
}

// unitOf is the unit of a field of the account.
func unitOf(name string) string {
	for _, f := range account.Fields() {
		if f.Name == name {
			return f.Unit
		}
	}
	return ""
}

func parseSeconds(value string) (float64, error) {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return seconds, nil
	}
	d, err := time.ParseDuration(value)
	return d.Seconds(), err
}

// excess is a limit that was exceeded, with the most that there was.
type excess struct {
	limit Limit
	peak  float64
}

func (e excess) String() string {
	return e.limit.Field + ": " + plain(e.peak) + " > " + plain(e.limit.Max)
}

// plain writes a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(math.Round(n*1000)/1000, 'f', -1, 64) }
