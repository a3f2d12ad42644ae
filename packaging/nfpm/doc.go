// SPDX-License-Identifier: Apache-2.0

// Package nfpm holds the lists of what the packages hold, for nfpm. Its tests install
// the packages in systems of their own, as root.
package nfpm
