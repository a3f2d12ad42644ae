// SPDX-License-Identifier: Apache-2.0

// Package searching is the tunlet search: it tries values of a variable of the
// program for which there is no model, and has the best one kept. The variable, its
// range and what progress is are options, without which the tunlet is not started.
//
// Each value that is tried is a proposal like any other. The measure point that counts
// progress takes the variable's value along, so that every interval is known to be one
// with the value or without it, also while the Analyzer changes sides to compare. The
// ratio of both is what the search is told. A trial that was measured is withdrawn;
// one that the Analyzer has kept by then as well. Only the best is left in force, if
// the Analyzer proves it.
//
// options.go says how the program is described; tunlet.go watches processes, and site.go is
// where package trials, which has the search, tries its values. No locks: the SDK makes one
// call at a time.
package searching
