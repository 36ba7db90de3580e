// Package state keeps what an NFSv4 server remembers of its clients: client
// records, sessions with their slots, open files with share reservations,
// byte-range locks, the stateids that stand for them, and leases. It serves
// NFSv4.0 (RFC 7530), 4.1 (RFC 8881) and 4.2 (RFC 7862) alike and knows nothing
// of files but a key, nor of the way messages travel.
//
// Every count that a client can drive up has a limit (Limits), and what all
// clients share has one for each source (shares). What a client holds goes when
// its lease has run out: at the latest when another client wants what it holds or the room
// that it takes, or when Table.Reap is called after Options.Courtesy. Nobody loses opens
// or locks sooner.
//
// State belongs to the principal that has made it. Others get no further with its
// stateids than without.
package state
