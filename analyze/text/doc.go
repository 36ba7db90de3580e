// Package text formats transactions for people: one line each (Lister), or a tree with every header, chunk,
// operation and field (Tree).
//
// Text from a peer never reaches the output unchanged: control characters, invalid UTF-8 and characters that
// change the writing direction are escaped, so that a file name cannot control a terminal.
package text
