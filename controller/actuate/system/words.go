// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"slices"
	"strings"
)

// Old and New are the values for people; where places differ, each has its own.
func (p *plan) Old() string { return summary(p.states, func(s State) string { return s.Old }) }

// New is the value after the change.
func (p *plan) New() string {
	if p.result != "" {
		return p.result
	}
	return summary(p.states, func(s State) string { return s.New })
}

// summary joins the values of states: one where all agree, else the first few
// different ones with their places.
func summary(states []State, of func(State) string) string {
	var values []string
	having := map[string][]State{}
	for _, s := range states {
		if s.Place.Later {
			continue
		}
		if having[of(s)] == nil {
			values = append(values, of(s))
		}
		having[of(s)] = append(having[of(s)], s)
	}
	if len(values) < 2 {
		return strings.Join(values, "")
	}
	const most = 4
	var parts []string
	for _, value := range values[:min(most, len(values))] {
		parts = append(parts, fmt.Sprintf("%s (%s)", value, where(having[value])))
	}
	if len(values) > most {
		parts = append(parts, fmt.Sprintf("and %d more", len(values)-most))
	}
	return strings.Join(parts, ", ")
}

// where names the places of states for people: "fd 7", "12 threads".
func where(states []State) string {
	states = slices.DeleteFunc(slices.Clone(states), func(s State) bool { return s.Place.Later })
	switch len(states) {
	case 0:
		return ""
	case 1:
		return states[0].Place.String()
	}
	return fmt.Sprintf("%d %s", len(states), states[0].Place.Scope)
}
