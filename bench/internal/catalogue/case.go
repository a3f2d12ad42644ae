// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"regexp"
	"slices"

	"github.com/attune-hpc/attune/bench/internal/measure"
)

// Control is the folder in the names of the cases that have no problem.
const Control = "control"

// Case is one program. In the words of its command lines, {bin} is the folder of
// what Sources builds, {src} that of bench/workloads, {seconds} how long it is to
// run, and {sample} a file of 256 MB that compresses like text.
type Case struct {
	// Name is unique: the tunlet, or "control", a slash, and the program.
	Name string
	// Tunlet mends its problem; empty for a control.
	Tunlet string
	// Debian says that it is an unmodified program of the distribution, run as
	// its manual says. Interpreters count where the script is a usual one.
	Debian bool
	// Command is its command line; pipelines are those of sh -c. A program that
	// has {seconds} runs for a given time, another one does a fixed amount of
	// work, which should take about ten seconds as it is.
	Command []string
	// Slowed is the most that the time of a control may grow by, as a ratio, where
	// README.md names it among the limits; else it is zero.
	Slowed float64
	// Flags of attune run: what a tunlet has to be told of the program.
	Flags []string
	// Best is the best that can be given before it starts; nothing for controls.
	Best Static
	// Unit and Format say what its speed is, and where it is found. The zero
	// Format takes the time of the whole process; its Unit is "runs/s".
	Unit   string
	Format measure.Format
	// Sources are compiled before.
	Sources []Source
	// Needs must be there, else it is left out with the reason.
	Needs []Need
}

// Static is the best setting that can be given before a program starts, found
// by trying all, or by whoever knows the program.
type Static struct {
	// Environment has entries "NAME=value".
	Environment []string
	// Command replaces the command line if it is not empty.
	Command []string
}

// known reports whether there is such a setting.
func (s Static) known() bool { return len(s.Environment) > 0 || len(s.Command) > 0 }

// Source is a program of bench/workloads, in C or Go.
type Source struct {
	// Name is that of the file without ".c" or ".go".
	Name string
	// Compiler is gcc unless given; mpicc.openmpi, mpicc.mpich, clang-14 and go are known, too.
	Compiler string
	// As names what is built, in {bin}; Name unless given.
	As string
	// Flags follow the file's name, but come before it with go.
	Flags []string
}

// Need is what a case needs of the machine, and the Debian package that has it.
type Need struct {
	// Command is a program in PATH.
	Command string
	// Module is a module of Debian's Python.
	Module string
	// File is a file, by its path.
	File string
	// Package has it.
	Package string
}

// All returns every case, by tunlet and then by name as they are listed.
func All() []Case {
	return slices.Concat(affinityCases(), aggregationCases(), mallocCases(), mpiProgressCases(), mpichCases(), pipeCases(), openMPCases(), workersCases(), connectionCases(), pythonCases(), goCases(), stdioCases(), factoringCases(), controls())
}

// Matching returns the cases whose names match.
func Matching(pattern *regexp.Regexp) []Case {
	return slices.DeleteFunc(All(), func(c Case) bool { return !pattern.MatchString(c.Name) })
}

// Named returns the case of a name, which must exist.
func Named(name string) Case {
	all := All()
	return all[slices.IndexFunc(all, func(c Case) bool { return c.Name == name })]
}
