// Package state keeps what an NFSv4 server remembers about its clients: client records, sessions
// with their slots, open files with share reservations, byte-range locks, the stateids that stand
// for them, and leases. It serves NFSv4.0 (RFC 7530), 4.1 (RFC 8881) and 4.2 (RFC 7862) alike and
// knows only the keys of files, and nothing about transports.
//
// A Table has a part for each kind of state, whose methods are the operations of the protocol:
// Clients, Sessions, Stateids, Opens, Locks, Delegations, and Outsiders for NFSv3. The parts know
// what is below them: registry finds, files and owners keep, budget limits, Grace lets reclaim,
// reaper drops. reaper knows none of them; it tells them of each client that goes.
//
// Every count that a client can drive up has a limit (Limits), and what all
// clients share has one for each source (shares). A client whose lease has run out loses its
// state when it conflicts with another client, when its room is needed, or when Table.Reap is
// called after Options.Courtesy. Nobody loses opens or locks sooner.
//
// State belongs to the principal that created it. Its stateids give others no additional access.
package state
