// SPDX-License-Identifier: Apache-2.0

// Package configfile reads settings of a command from its files, the environment and its
// flags, later ones overriding. A file with a key that is not known is refused.
package configfile
