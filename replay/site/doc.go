// Package site is where a replay takes place: connections by the name of a
// fabric, and the built-in server that listens on several at a time.
package site
