// SPDX-License-Identifier: Apache-2.0

package search

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// process is a Gaussian process that was fitted to trials (Rasmussen and Williams
// 2006, algorithm 2.1). Values are standardised: the mean is that of the trials,
// and the variance before any trial is theirs.
type process struct {
	features    [][]float64
	mean, scale float64
	length      float64 // of the kernel, in units of the ranges
	noise       float64 // variance of one try, as a share of scale squared
	factor      mat.Cholesky
	solved      mat.VecDense // covariance⁻¹ · standardised values
	likelihood  float64      // logarithm, but for a constant
}

// lengths and noises are the candidates for these two. More of them gain little:
// there are few trials to tell them apart.
func lengths() []float64 { return []float64{0.1, 0.2, 0.4, 0.8, 1.6} }
func noises() []float64  { return []float64{1e-4, 1e-2, 0.05, 0.2, 0.5} }

// fit returns the process that the values are most likely of. weights says how many
// tries each value is the mean of. There is at least one trial.
func fit(features [][]float64, values, weights []float64) *process {
	mean, scale := stat.MeanStdDev(values, nil)
	if math.IsNaN(scale) || scale <= 0 {
		scale = max(math.Abs(mean)*1e-3, math.SmallestNonzeroFloat64) // all alike
	}
	standard := mat.NewVecDense(len(values), nil)
	for i, v := range values {
		standard.SetVec(i, (v-mean)/scale)
	}
	var best *process
	for _, length := range lengths() {
		for _, noise := range noises() {
			p := &process{features: features, mean: mean, scale: scale, length: length, noise: noise}
			if p.solve(standard, weights) && (best == nil || p.likelihood > best.likelihood) {
				best = p
			}
		}
	}
	return best // the noisiest covariance can always be factored
}

// solve fits to values; false if the covariance cannot be factored.
func (p *process) solve(values *mat.VecDense, weights []float64) bool {
	n := len(p.features)
	covariance := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			c := p.kernel(p.features[i], p.features[j])
			if i == j {
				c += p.noise / weights[i]
			}
			covariance.SetSym(i, j, c)
		}
	}
	if !p.factor.Factorize(covariance) || p.factor.SolveVecTo(&p.solved, values) != nil {
		return false
	}
	p.likelihood = -0.5*mat.Dot(values, &p.solved) - 0.5*p.factor.LogDet()
	return true
}

// kernel is the Matérn 5/2 covariance (Rasmussen and Williams 2006, equation 4.17).
func (p *process) kernel(a, b []float64) float64 {
	square := 0.0
	for i := range a {
		square += (a[i] - b[i]) * (a[i] - b[i])
	}
	r := math.Sqrt(5*square) / p.length
	return (1 + r + r*r/3) * math.Exp(-r)
}

// at returns what is expected at a place, and how sure that is.
func (p *process) at(features []float64) (mean, deviation float64) {
	k := mat.NewVecDense(len(p.features), nil)
	for i, other := range p.features {
		k.SetVec(i, p.kernel(features, other))
	}
	var solved mat.VecDense
	if p.factor.SolveVecTo(&solved, k) != nil {
		return p.mean, p.scale // the covariance is all but singular
	}
	variance := max(1-mat.Dot(k, &solved), 0)
	return p.mean + p.scale*mat.Dot(k, &p.solved), p.scale * math.Sqrt(variance)
}

// atTrials returns what is expected of each trial, were it tried again.
func (p *process) atTrials() []float64 {
	out := make([]float64, len(p.features))
	for i, f := range p.features {
		out[i], _ = p.at(f)
	}
	return out
}
