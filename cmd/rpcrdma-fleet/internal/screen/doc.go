// Package screen shows a live.Fleet: as tables, as JSON, and as a screen that a person
// can move about in.
package screen
