// SPDX-License-Identifier: Apache-2.0

// Package catalogue is the table of programs by which the tunlets are judged:
// those with a problem that a tunlet mends, and the controls without one, which
// must not be touched. A case is one literal in the list of its tunlet; whoever
// adds a tunlet adds its cases here, and the packages that they need to
// scripts/deps. bench/cmd/catalogue measures them.
package catalogue
