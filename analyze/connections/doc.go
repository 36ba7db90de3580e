// Package connections lists connections: those of one tap, and those of many, of which each is listed once. A List
// holds any number of them; Table, Detail and JSON show it; a Recorder makes the section of a saved state, and a Merger
// a list of several.
package connections
