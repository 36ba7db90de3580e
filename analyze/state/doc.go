// Package state saves what analyzers have collected, so that other processes can merge it: the file format, a coder
// for the values in it, and the identity of a connection that several taps saw.
//
// A [File] is a set of [Unit]s. A unit is what one run found of the captures of one tap: it has a section for each
// analyzer that saved something. Its name is the SHA-256 of its contents, so a unit that is delivered twice is in the
// set once. To merge files is to form the union of their sets; it is therefore associative, commutative and
// idempotent, whatever the analyzers compute. An analyzer computes its result from all units, in the order of their
// names: see latency.Merge.
//
// # Format
//
//	magic     8 bytes: 89 'R' 'P' 'C' 'S' 0d 0a 1a
//	version   1 byte: 2
//	units     uvarint, number of units; in ascending order of their names, none twice
//	unit      size of the contents (uvarint), contents compressed with zstd (bytes), with a window of 1 MiB at most
//	contents  uvarint, number of sections; in ascending order of their kinds, none twice
//	section   kind (string), version (uvarint), body (bytes); strings and bytes begin with their length, a uvarint
//	checksum  SHA-256 of all bytes before it
//
// A unit is named by a hash of its contents before compression, so the name does not depend on the compressor.
//
// The checksum finds damage. It does not show who made the file: whoever can write it can also make it fit. All
// numbers in a file are therefore checked before they are used.
package state
