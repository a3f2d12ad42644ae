// SPDX-License-Identifier: Apache-2.0

// Package values reads the values of settings strictly: what makes no sense is an error
// with its remedy, and never another value.
package values

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/exitcode"
)

// Reader reads settings of any origin: files hold texts, numbers, truth
// values and lists, the environment text. It keeps the first error. It is for one
// goroutine.
type Reader struct {
	Values Values
	Err    error
}

// Values are settings by their keys, as viper has them.
type Values interface {
	Get(key string) any
	GetString(key string) string
	GetStringSlice(key string) []string
}

// Text reads one value.
func (r *Reader) Text(key string) string {
	if value, ok := r.Values.Get(key).([]any); ok {
		r.refuse(key, value, "write one value")
	}
	return r.Values.GetString(key)
}

// Truth reads a truth value.
func (r *Reader) Truth(key string) bool {
	value := r.Values.Get(key)
	truth, err := strconv.ParseBool(fmt.Sprint(value))
	if err != nil {
		r.refuse(key, value, "write true or false")
	}
	return truth
}

// Number reads a number.
func (r *Reader) Number(key string) float64 {
	value := r.Values.Get(key)
	number, err := strconv.ParseFloat(fmt.Sprint(value), 64)
	if err != nil {
		r.refuse(key, value, "write a number")
	}
	return number
}

// Count reads a number of things, at least one.
func (r *Reader) Count(key string) int {
	value := r.Values.Get(key)
	count, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil || count <= 0 {
		r.refuse(key, value, "write a whole number above 0")
	}
	return count
}

// Duration reads a time, more than none.
func (r *Reader) Duration(key string) time.Duration {
	value := r.Values.Get(key)
	d, err := time.ParseDuration(fmt.Sprint(value))
	if err != nil || d <= 0 {
		r.refuse(key, value, "write a time, for example 10s")
	}
	return d
}

// List reads a list; in the environment, its elements stand between commas.
func (r *Reader) List(key string) []string {
	if value, ok := r.Values.Get(key).(string); ok {
		if value == "" {
			return nil
		}
		return strings.Split(value, ",")
	}
	if all := r.Values.GetStringSlice(key); len(all) > 0 {
		return all
	}
	return nil
}

func (r *Reader) refuse(key string, value any, remedy string) {
	if r.Err == nil {
		r.Err = exitcode.UsageError(fmt.Errorf("setting %s: %q makes no sense", key, fmt.Sprint(value)), remedy)
	}
}
