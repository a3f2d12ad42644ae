// SPDX-License-Identifier: Apache-2.0

// Command attune runs programs under control and tunes them while they run
// (attune run), and says what can be done on this machine (attune doctor).
//
// It is the only place of this program for cobra, viper and exit codes:
// inward travel plain structs. Attune's own trouble never harms the program
// and never replaces its exit code; docs/reference/exit-codes.md.
package main
