// Package doubled tells two capture points apart that a capture shows as one.
//
// mergecap makes one interface of two that have the same description, so that a capture of the client and one of the server,
// merged into one file, have nothing left that distinguishes them. A switch that mirrors a packet where it comes in and where
// it goes out does the same, and a capture of all interfaces shows it at an interface, at the bond above that, and at a VLAN of it.
// Each packet is there twice or more often then, some time apart: the difference of two clocks, or the time in the
// switch. A decoder would take the copies for retransmissions, and those of a connection that has ended for another one.
//
// Open looks at the beginning of each file. If nearly every packet comes as often as the others, in both directions between two hosts, and
// the time between is nearly the same for all, the copies get a Tap of their own.
package doubled
