// SPDX-License-Identifier: Apache-2.0

// Package setting knows the settings of libraries by name: which there are, what they
// take, and how each is changed in a process that has the library. A setting is a row
// of the table with a method: words written in place (a variable with a symbol or
// without), calls of the library that read and set it, or the buffer of a stream.
// Control variables of MPI have a package of their own.
//
// What stands against a change is found before anything is touched, and refused.
package setting
