// Package snapshot saves the memory of a program part to a file, and restores it in another process: structs with
// unexported fields, pointers into the middle of others, slices that share an array, maps, interfaces, cycles.
//
// A Plan says what belongs to it. Objects that every process makes anew, such as a tracker, are Fixed: restoring
// overwrites their fields in place, and pointers to them lead to the new ones. All that they refer to is saved
// and made again, with the same capacities. Nothing is left out unless a Leave names it: a field that is added
// later is saved without anybody thinking of it, and one that cannot be (a function, a channel) is an error of
// the Plan, which every test notices.
//
// # What a file holds
//
//	magic, version, flags
//	fingerprint: SHA-256 of the layout of all types, the processor's architecture, and the program's version
//	settings, notes: texts by name
//	the graph, compressed with zstd
//	HMAC-SHA256 of everything before
//
// A file is read only by a program with the same fingerprint and the same settings. The HMAC is checked before
// anything else is looked at. Without a key it is a checksum: it finds damage, but everybody can compute it.
//
// # What a hostile file can do
//
// Whoever has the key, or writes a file where none is in use, decides what is in memory afterwards. Load checks
// all that Go's memory safety depends on: each pointer leads to a whole object of the right type, slices stay
// within their arrays, each bool is 0 or 1, interfaces hold types of the Plan. It makes no more objects than
// Options.Limit bytes hold, whatever the file claims, and never panics. It cannot check what the program
// believes of its own data: that a list has no circle, that an index is in range, that a counter is what it
// counts. A forged state may therefore make the program panic, run forever or report what never was, though it
// cannot write to memory that it does not own.
package snapshot
