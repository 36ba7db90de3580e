// Package run executes plans: it prepares the files that a captured workload
// needs, sends the captured calls to a live server with the handles, state ids,
// sessions and sequence numbers of that server, compares each reply with the
// captured one, and reports what it found.
//
// One goroutine, the engine, decides what is sent and takes in what came back;
// the transports have their own. Everything that a capture names by symbols is
// kept in a world, one for each clone of the workload.
package run
