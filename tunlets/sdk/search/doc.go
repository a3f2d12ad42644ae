// SPDX-License-Identifier: Apache-2.0

// Package search finds good values of knobs for which a tunlet has no model.
//
// A [Search] is asked for the next values to try, and told what they achieved:
//
//	s, err := search.New(search.Options{Knobs: []search.Knob{{Name: "chunk", Kind: search.Integer, Min: 1, Max: 4096, Log: true}}, Tries: 15})
//	for {
//		p, err := s.Next(elapsed) // ErrSpent or ErrSettled: s.Best() is the result
//		s.Tell(p, measure(p))
//	}
//
// A tunlet proposes what Next returns, and tells what the objective was while it
// was in force. What it settles on is proposed like any other change, and proven
// by the Analyzer: a search only says what is worth a trial.
//
// Two methods share knobs, budgets and the treatment of noise. [Bayesian] is for
// few and noisy tries, which is what a running program allows: a Gaussian process
// with a Matérn 5/2 kernel, whose length and noise are those of greatest
// likelihood, tried where the expected improvement is greatest (Jones, Schonlau and
// Welch 1998; Snoek, Larochelle and Adams 2012). Numbers are rounded, and choices
// spread over one axis each, before the kernel sees them (Garrido-Merchán and
// Hernández-Lobato 2020). [NelderMead] (1965; gonum.org/v1/gonum/optimize) is for
// many tries of one or two numbers that vary smoothly.
//
// What is next depends on nothing but the options and what was told: there is no
// clock and no goroutine, and the same answers lead to the same questions. A
// Search is not safe for use by several goroutines.
package search
