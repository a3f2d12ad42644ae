// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// prefixes of units, as all of these tools mean them: in powers of 1024.
const prefixes = "KMGTP"

// bytesOf reads a size, such as 1234, 12K, 1.5G, 3 MB or 7 GiB; in a unit if it has none.
func bytesOf(text string, unit float64) (uint64, error) {
	number := strings.TrimRight(strings.TrimSpace(text), "bBiI")
	number = strings.TrimSpace(number)
	if number == "" {
		return 0, fmt.Errorf("%q is no size", text)
	}
	if i := strings.IndexByte(prefixes, number[len(number)-1]&^0x20); i >= 0 && number[len(number)-1] > '9' {
		unit = 1
		for range i + 1 {
			unit *= 1024
		}
		number = strings.TrimSpace(number[:len(number)-1])
	} else if number != strings.TrimSpace(text) {
		unit = 1 // a B alone
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !(value >= 0) || value*unit > 1e18 {
		return 0, fmt.Errorf("%q is no size", text)
	}
	return uint64(value * unit), nil
}

// clock reads a time as [days-][hours:]minutes:seconds, in seconds.
func clock(text string) (float64, error) {
	days, rest, has := strings.Cut(text, "-")
	if !has {
		days, rest = "0", text
	}
	total, err := strconv.ParseFloat(days, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no time", text)
	}
	parts := strings.Split(rest, ":")
	if len(parts) > 3 || len(parts) < 2 {
		return 0, fmt.Errorf("%q is no time", text)
	}
	total *= 24
	for i, part := range append(make([]string, 3-len(parts)), parts...) {
		value := 0.0
		if part != "" || i >= 3-len(parts) {
			if value, err = strconv.ParseFloat(part, 64); err != nil || !(value >= 0) {
				return 0, fmt.Errorf("%q is no time", text)
			}
		}
		if i > 0 {
			total *= 60
		}
		total += value
	}
	return total, nil
}

// spans are the units of times for people, in milliseconds.
var spans = map[string]float64{"ms": 1, "s": 1e3, "m": 60e3, "h": 3600e3, "d": 86400e3}

// span reads a time for people, such as "1h 2m 3.5s", in seconds; a number alone is in
// milliseconds.
func span(text string) (float64, error) {
	if ms, err := strconv.ParseFloat(text, 64); err == nil && ms >= 0 {
		return ms / 1e3, nil
	}
	total := 0.0
	for part := range strings.FieldsSeq(text) {
		number := strings.TrimRight(part, "msdh")
		unit, known := spans[part[len(number):]]
		value, err := strconv.ParseFloat(number, 64)
		if err != nil || !known || !(value >= 0) {
			return 0, fmt.Errorf("%q is no time", text)
		}
		total += value * unit
	}
	if text == "" {
		return 0, fmt.Errorf("%q is no time", text)
	}
	return total / 1e3, nil
}

// seconds makes a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// unixTime makes a time of seconds since 1970, of which microseconds can be told.
func unixTime(s float64) time.Time { return time.UnixMicro(int64(s * 1e6)).UTC() }
