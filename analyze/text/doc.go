// Package text shows transactions to people: one line each (Lister), or as a
// tree with every header, chunk, operation and field (Tree).
//
// Nothing that a peer has sent reaches the output as it is: control
// characters, invalid UTF-8 and characters that change the direction of
// writing are escaped, so that a file name cannot rule a terminal.
package text
