// SPDX-License-Identifier: Apache-2.0

// Package byhand has the changes that a user makes by hand and keeps until they
// undo them, and undoes by hand what a killed attune has left.
package byhand
